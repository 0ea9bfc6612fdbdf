"""What is documented of files, checkpoints and kept data."""

import bz2
import gzip
from pathlib import Path

import pytest

from frameworks.rdd import StorageLevel
from frameworks.rdd.errors import JobFailed
from mesos_py.errors import AlreadyExists, Conflict, InvalidValue

GZIP = "org.apache.hadoop.io.compress.GzipCodec"
BZIP2 = "org.apache.hadoop.io.compress.BZip2Codec"


def names(directory: Path) -> list[str]:
    return sorted(each.name for each in directory.iterdir())


class FilesContract:
    # ---- Text ------------------------------------------------------------------------------

    def test_lines_end_as_they_like(self, sc, tmp_path):
        file = tmp_path / "text"
        file.write_bytes(b"one\ntwo\r\nthree\rfour\n\nfive")
        assert sc.textFile(str(file), 1).collect() == ["one", "two", "three", "four", "", "five"]
        file.write_bytes(b"\n")
        assert sc.textFile(str(file)).collect() == [""]
        file.write_bytes(b"")
        assert sc.textFile(str(file)).collect() == []

    def test_each_line_is_read_once_however_a_file_is_cut(self, sc, tmp_path):
        file = tmp_path / "text"
        file.write_bytes(b"a\nbb\r\n\r\rccc\n" * 3 + b"end")
        lines = ["a", "bb", "", "", "ccc"] * 3 + ["end"]
        for parts in (1, 2, 3, 7, 20, 50):
            made = sc.textFile(str(file), parts)
            assert made.getNumPartitions() >= min(parts, file.stat().st_size)
            assert made.collect() == lines

    def test_text_that_is_no_utf_8(self, sc, tmp_path):
        (tmp_path / "text").write_bytes("größe\u2028x\x85\n".encode() + b"\xff\n")
        path = str(tmp_path / "text")
        assert sc.textFile(path, 1).collect() == ["größe\u2028x\x85", "\ufffd"]
        assert sc.textFile(path, 1, use_unicode=False).collect()[1] == b"\xff"

    def test_paths(self, sc, tmp_path):
        for name in ("a1.txt", "a2.txt", "b.txt", "_hidden", ".hidden"):
            (tmp_path / name).write_text(name)
        here = str(tmp_path)
        assert sc.textFile(here).collect() == ["a1.txt", "a2.txt", "b.txt"]
        assert sc.textFile(f"file://{here}/a*.txt").collect() == ["a1.txt", "a2.txt"]
        assert sc.textFile(f"file:{here}/a?.txt").count() == 2
        assert sc.textFile(f"{here}/{{a1,b}}.txt").collect() == ["a1.txt", "b.txt"]
        assert sc.textFile(f"{here}/b.txt,{here}/a1.txt").collect() == ["b.txt", "a1.txt"]
        assert sc.textFile(f"{here}/_hidden").collect() == ["_hidden"]
        for nothing in ("c.txt", "c*.txt"):
            with pytest.raises(InvalidValue, match="Input path does not exist"):
                sc.textFile(f"{here}/{nothing}")
        (tmp_path / "deep").mkdir()
        with pytest.raises(InvalidValue, match="directory in it"):
            sc.textFile(here)
        with pytest.raises(InvalidValue, match="nonsense"):
            sc.textFile("nonsense://x/y")

    def test_packed_text_is_read_as_one(self, sc, tmp_path):
        (tmp_path / "x.gz").write_bytes(gzip.compress(b"a\nb\n") + gzip.compress(b"c"))
        (tmp_path / "y.bz2").write_bytes(bz2.compress(b"d\ne"))
        made = sc.textFile(str(tmp_path), 8)
        assert made.getNumPartitions() == 2
        assert made.collect() == ["a", "b", "c", "d", "e"]
        (tmp_path / "z.gz").write_bytes(b"no gzip")
        with pytest.raises(JobFailed, match="gzip"):
            sc.textFile(str(tmp_path / "z.gz")).collect()

    # ---- Whole files and records -------------------------------------------------------------

    def test_whole_files(self, sc, tmp_path):
        (tmp_path / "1.txt").write_text("123")
        (tmp_path / "2.txt").write_bytes(b"x\ny\xff")
        texts = sc.wholeTextFiles(str(tmp_path)).collect()
        assert texts == [
            (f"file:{tmp_path}/1.txt", "123"),
            (f"file:{tmp_path}/2.txt", "x\ny\ufffd"),
        ]
        blobs = sc.binaryFiles(str(tmp_path)).values().collect()
        assert blobs == [b"123", b"x\ny\xff"]
        assert sc.wholeTextFiles(str(tmp_path), use_unicode=False).values().first() == b"123"
        assert sc.binaryFiles(str(tmp_path), 1).getNumPartitions() == 1

    def test_records(self, sc, tmp_path):
        file = tmp_path / "records"
        file.write_bytes(b"".join(b"%03d" % i for i in range(100)))
        made = sc.binaryRecords(str(file), 3)
        assert made.getNumPartitions() >= 2
        assert made.map(int).collect() == list(range(100))
        with pytest.raises(JobFailed, match="no whole number of records"):
            sc.binaryRecords(str(file), 7).collect()
        with pytest.raises(InvalidValue, match="recordLength"):
            sc.binaryRecords(str(file), 0)

    # ---- Saving ----------------------------------------------------------------------------

    def test_text_is_saved_as_parts(self, sc, tmp_path):
        out = tmp_path / "deep" / "out"
        sc.parallelize(["", "foo", b"bar", 7, None], 3).saveAsTextFile(str(out))
        assert names(out) == ["_SUCCESS", "part-00000", "part-00001", "part-00002"]
        assert [(out / name).read_text() for name in names(out)] == [
            "", "\n", "foo\nbar\n", "7\nNone\n",
        ]  # fmt: skip
        assert sc.textFile(str(out)).count() == 5

    @pytest.mark.parametrize(("codec", "extension"), [(GZIP, ".gz"), (BZIP2, ".bz2")])
    def test_text_is_saved_packed(self, sc, tmp_path, codec, extension):
        out = tmp_path / "out"
        sc.parallelize(["foo", "bar"], 1).saveAsTextFile(str(out), codec)
        assert names(out) == ["_SUCCESS", f"part-00000{extension}"]
        assert sc.textFile(str(out)).collect() == ["foo", "bar"]

    def test_pickles(self, sc, tmp_path):
        elements = [1, None, {"a": [1]}, "x", ("t",), b"b", 2.5]
        out = str(tmp_path / "out")
        sc.parallelize(elements, 3).saveAsPickleFile(out, 2)
        assert sc.pickleFile(out).collect() == elements
        assert sc.pickleFile(out, 5).count() == 7
        sc.range(1000).saveAsPickleFile(out + "0", 0)
        assert sc.pickleFile(out + "0").sum() == 499500

    def test_what_is_there_is_not_written_over(self, sc, tmp_path):
        (tmp_path / "out").mkdir()
        with pytest.raises(AlreadyExists, match="already exists"):
            sc.parallelize(["x"]).saveAsTextFile(str(tmp_path / "out"))
        assert names(tmp_path / "out") == []
        with pytest.raises(InvalidValue, match="compressionCodecClass"):
            sc.parallelize(["x"]).saveAsTextFile(str(tmp_path / "new"), "my.Codec")

    def test_a_job_that_fails_leaves_nothing(self, sc, tmp_path):
        out = tmp_path / "out"
        failing = sc.parallelize([1, 0], 2).map(lambda x: 1 // x)
        with pytest.raises(JobFailed, match="ZeroDivisionError"):
            failing.saveAsTextFile(str(out))
        assert not out.exists()

    # ---- Kept ------------------------------------------------------------------------------

    def test_levels(self, sc):
        numbers = sc.parallelize([1, 2])
        assert not numbers.is_cached
        assert repr(numbers.getStorageLevel()) == "StorageLevel(False, False, False, False, 1)"
        assert str(numbers.getStorageLevel()) == "Serialized 1x Replicated"
        assert numbers.cache() is numbers
        assert numbers.is_cached
        assert str(numbers.getStorageLevel()) == "Memory Serialized 1x Replicated"
        assert numbers.persist() is numbers
        with pytest.raises(Conflict, match="Cannot change storage level"):
            numbers.persist(StorageLevel.DISK_ONLY)
        assert numbers.unpersist() is numbers
        assert not numbers.is_cached
        numbers.persist(StorageLevel.MEMORY_AND_DISK)
        assert str(numbers.getStorageLevel()) == "Disk Memory Serialized 1x Replicated"
        numbers.unpersist(blocking=True)

    @pytest.mark.parametrize("level", ["MEMORY_ONLY", "MEMORY_AND_DISK", "DISK_ONLY"])
    def test_what_is_kept_is_computed_once(self, sc, level):
        computed = sc.accumulator(0)

        def counted(x):
            computed.add(1)
            return [x]

        kept = sc.parallelize(range(6), 2).map(counted).persist(getattr(StorageLevel, level))
        assert kept.count() == kept.count() == 6
        assert computed.value == 6
        # What users do to elements does not change what is kept.
        kept.foreach(lambda each: each.append("changed"))
        assert kept.collect() == [[0], [1], [2], [3], [4], [5]]
        kept.unpersist(blocking=True)
        assert kept.count() == 6
        assert computed.value == 12

    # ---- Checkpoints -----------------------------------------------------------------------

    def test_a_checkpoint_cuts_the_lineage(self, sc, tmp_path):
        computed = sc.accumulator(0)

        def counted(x):
            computed.add(1)
            return x * 2

        sc.setCheckpointDir(str(tmp_path / "checkpoints"))
        assert sc.getCheckpointDir().startswith(f"file:{tmp_path}/checkpoints/")
        doubled = sc.parallelize(range(4), 2).map(counted).cache()
        more = doubled.map(lambda x: x + 1)
        doubled.checkpoint()
        assert doubled.is_checkpointed
        assert not doubled.isCheckpointed()
        assert doubled.getCheckpointFile() is None
        assert more.collect() == [1, 3, 5, 7]
        assert doubled.isCheckpointed()
        assert doubled.getCheckpointFile().startswith(sc.getCheckpointDir())
        assert b"ParallelCollectionRDD" not in doubled.toDebugString()
        doubled.unpersist(blocking=True)
        assert computed.value == 4
        assert more.collect() == [1, 3, 5, 7]
        assert doubled.take(1) == [0]
        assert computed.value == 4

    def test_a_checkpoint_behind_a_shuffle(self, sc, tmp_path):
        sc.setCheckpointDir(str(tmp_path))
        counts = sc.parallelize([(1, 1), (2, 1), (1, 1)], 2).reduceByKey(lambda a, b: a + b)
        counts.checkpoint()
        counts.checkpoint()
        assert counts.count() == 2
        assert b"+-" not in counts.toDebugString()
        assert sorted(counts.join(counts).collect()) == [(1, (2, 2)), (2, (1, 1))]

    def test_checkpoints_need_a_directory(self, sc):
        sc._checkpoint_dir = None
        with pytest.raises(Conflict, match="Checkpoint directory has not been set"):
            sc.parallelize([1]).checkpoint()

    def test_local_checkpoints(self, sc):
        numbers = sc.range(5)
        assert not numbers.isLocallyCheckpointed()
        numbers.localCheckpoint()
        assert numbers.isLocallyCheckpointed()
        assert numbers.isCheckpointed()
        assert numbers.count() == 5
        assert numbers.getCheckpointFile() is None
        numbers.unpersist()
