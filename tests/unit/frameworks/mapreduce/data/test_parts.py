import gzip
import os

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFile, MemoryFileSystem

from frameworks.mapreduce.data import codecs, parts
from frameworks.mapreduce.data.parts import PartWriter
from mesos_py.errors import InternalError, InvalidValue


@pytest.fixture
def memory():
    fs = fsspec.filesystem("memory")
    yield fs
    fs.store.clear()
    fs.pseudo_dirs[:] = [""]


def left(directory):
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))


def test_nothing_is_there_before_commit(tmp_path):
    writer = PartWriter(f"file://{tmp_path}/out/_temporary/a/part-00000", None, conf={})
    writer.write(b"one\n")
    writer.write(b"")
    writer.write(b"two\n")
    part = tmp_path / "out/_temporary/a/part-00000"
    assert not part.exists()
    assert writer.commit() == 8
    assert part.read_bytes() == b"one\ntwo\n"
    assert left(part.parent) == ["part-00000"]
    writer.abort()
    assert part.exists()


def test_nothing_stays_after_abort(tmp_path):
    with PartWriter(f"{tmp_path}/part-00000", None, conf={}) as writer:
        writer.write(b"x" * 3_000_000)
    assert left(tmp_path) == []
    writer.abort()


def test_the_interim_name_is_hidden(tmp_path):
    with PartWriter(f"{tmp_path}/part-00000", None, conf={}):
        assert all(name.startswith("_") for name in left(tmp_path))


def test_a_packed_part(tmp_path):
    writer = PartWriter(f"{tmp_path}/part-00000.gz", codecs.Gzip(), conf={})
    for _ in range(1000):
        writer.write(b"some line\n")
    size = writer.commit()
    data = (tmp_path / "part-00000.gz").read_bytes()
    assert gzip.decompress(data) == b"some line\n" * 1000
    assert size == len(data)


def test_an_empty_part(tmp_path):
    assert PartWriter(f"{tmp_path}/part-00000", None, conf={}).commit() == 0
    assert (tmp_path / "part-00000").read_bytes() == b""


def test_one_is_ended_once(tmp_path):
    writer = PartWriter(f"{tmp_path}/part-00000", None, conf={})
    writer.commit()
    with pytest.raises(InternalError):
        writer.commit()


def test_two_writers_of_the_same_name_do_not_mix(tmp_path):
    one, two = (PartWriter(f"{tmp_path}/part", None, conf={}) for _ in range(2))
    one.write(b"one")
    two.write(b"two")
    one.commit()
    two.commit()
    assert (tmp_path / "part").read_bytes() == b"two"
    assert left(tmp_path) == ["part"]


def test_what_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"File exists|Not a directory"):
        PartWriter(f"{tmp_path}/file/part", None, conf={})


def test_a_full_disk_leaves_nothing(tmp_path):
    # A limit on the size of files does for a disk that is full.
    import resource
    import signal

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    writer = PartWriter(f"{tmp_path}/part", None, conf={})
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        writer.write(b"x" * 200_000)
        with pytest.raises(OSError, match="File too large"):
            writer.commit()
        writer.abort()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert left(tmp_path) == []


def test_a_file_system_that_renames(memory):
    writer = PartWriter("memory:///out/_temporary/a/part-00000", None, conf={})
    writer.write(b"one\n")
    assert not memory.exists("/out/_temporary/a/part-00000")
    assert writer.commit() == 4
    assert memory.find("/out") == ["/out/_temporary/a/part-00000"]
    with PartWriter("memory:///out/b", None, conf={}) as writer:
        writer.write(b"two")
    assert memory.find("/out") == ["/out/_temporary/a/part-00000"]


class Store(MemoryFileSystem):
    """Has a file when its writer commits, as object stores do."""

    protocol = "oss"
    discarded = 0

    @classmethod
    def _strip_protocol(cls, path):
        return super()._strip_protocol(path.removeprefix("oss://"))

    def _open(self, path, mode="rb", block_size=None, autocommit=True, **kwargs):
        if mode == "rb":
            return super()._open(path, mode, **kwargs)
        assert not autocommit
        return Upload(self, path)


class Upload(MemoryFile):
    def discard(self):
        type(self.fs).discarded += 1


def test_an_object_store(memory, monkeypatch):
    fsspec.register_implementation("oss", Store, clobber=True)
    monkeypatch.setattr(Store, "discarded", 0)
    writer = PartWriter("oss://bucket/out/part-00000", None, conf={})
    writer.write(b"one\n")
    assert writer.commit() == 4
    assert memory.find("/bucket") == ["/bucket/out/part-00000"]
    with PartWriter("oss://bucket/out/part-00001", None, conf={}) as writer:
        writer.write(b"two\n")
    assert memory.find("/bucket") == ["/bucket/out/part-00000"]
    assert Store.discarded == 1


def test_names_and_codecs():
    assert parts.part_name(7, None) == "part-00007"
    assert parts.part_name(123456, codecs.Zstd()) == "part-123456.zst"
    compress = {"mapreduce.output.fileoutputformat.compress": "true"}
    codec = "mapreduce.output.fileoutputformat.compress.codec"
    assert parts.output_codec({}) is None
    assert parts.output_codec({codec: "bzip2"}) is None
    assert isinstance(parts.output_codec(compress), codecs.Gzip)
    assert isinstance(parts.output_codec({**compress, codec: "bzip2"}), codecs.Bzip2)
    with pytest.raises(InvalidValue, match=r"compress\.codec: 'lzo'"):
        parts.output_codec({**compress, codec: "lzo"})


def test_permissions_are_those_that_the_user_gives_to_files(tmp_path):
    before = os.umask(0o027)
    try:
        PartWriter(f"{tmp_path}/part", None, conf={}).commit()
    finally:
        os.umask(before)
    assert (tmp_path / "part").stat().st_mode & 0o777 == 0o640
