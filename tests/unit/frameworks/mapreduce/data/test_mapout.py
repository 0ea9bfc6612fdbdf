"""The output file of a map."""

import itertools
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from frameworks.mapreduce.data import mapout
from frameworks.mapreduce.data import spills as spilling
from frameworks.mapreduce.data.keys import Keys
from frameworks.mapreduce.data.mapout import MapOutput
from frameworks.mapreduce.data.partitions import Partitioner
from frameworks.mapreduce.data.runs import whole_lines
from frameworks.mapreduce.data.segments import Damaged, codec_of, read_segment
from frameworks.mapreduce.data.spills import Spills
from frameworks.mapreduce.job import JobSpec, Program

MEMORY = 10**9


def spec(reduces=1, **conf):
    return JobSpec(
        job_id="job_20261128141500_0001",
        name="",
        user="",
        inputs=(),
        output="",
        mapper=Program(command="cat"),
        reduces=reduces,
        conf=conf,
    )


def words(count: int) -> list[bytes]:
    dice = random.Random(3)
    return [b"word%d\t1\n" % int(dice.paretovariate(0.5)) for _ in range(count)]


def blocks(lines: list[bytes], size: int = 100) -> Iterator[bytes]:
    for at in range(0, len(lines), size):
        yield b"".join(lines[at : at + size])


def made(out: MapOutput, given: Iterator[bytes]):
    try:
        for block in given:
            out.add(block)
        return out.finish()
    finally:
        out.close()


def contents(path: Path, job: JobSpec, segments) -> list[bytes]:
    keys = Keys.of(job.conf)
    return [
        b"".join(
            keys.plain(block) for block in whole_lines(read_segment(path, part, codec_of(job)))
        )
        for part in segments
    ]


def due(lines: list[bytes], job: JobSpec) -> list[bytes]:
    keys = Keys.of(job.conf)
    ordered = sorted(lines, key=lambda line: (keys.key(line), line))
    return Partitioner.of(job).divide(b"".join(ordered))


def counted(given: Iterator[bytes]) -> Iterator[bytes]:
    """A combiner that adds up."""
    lines = itertools.chain.from_iterable(block.splitlines() for block in given)
    for key, group in itertools.groupby(lines, lambda line: line.split(b"\t")[0]):
        yield b"%b\t%d\n" % (key, sum(int(line.split(b"\t")[1]) for line in group))


@pytest.fixture
def places(tmp_path: Path):
    """Where the output goes, and where spills go."""
    spills = tmp_path / "spills"
    spills.mkdir()
    yield tmp_path / "attempt.out", spills
    assert not list(spills.iterdir())
    assert {path.name for path in tmp_path.iterdir()} <= {"spills", "attempt.out"}


@pytest.mark.parametrize("memory", [1, 30_000, MEMORY])
@pytest.mark.parametrize("reduces", [1, 7])
@pytest.mark.parametrize("codec", ["", "gzip", "bzip2", "zstd"])
def test_each_partition_has_its_lines_sorted(places, memory, reduces, codec):
    path, spills = places
    job = spec(reduces)
    if codec:
        conf = {"mapreduce.map.output.compress": "true"}
        conf["mapreduce.map.output.compress.codec"] = codec
        job = spec(reduces, **conf)
    lines = words(1000)
    segments = made(MapOutput(path, job, memory, spills), blocks(lines))
    assert contents(path, job, segments) == due(lines, job)
    assert sum(part.length for part in segments) == path.stat().st_size


@pytest.mark.parametrize("memory", [100_000, MEMORY])
@pytest.mark.parametrize("combine", [None, counted])
def test_lines_that_come_again_are_kept_once(places, monkeypatch, memory, combine):
    monkeypatch.setattr(MapOutput, "SHOWN", 10_000)
    path, spills = places
    job = spec(3)
    often = [b"%d\t1\n" % (number * number % 17) for number in range(20_000)]
    seldom = [b"word%d\t1\n" % number for number in range(3000)]
    lines = [*often, *seldom, *often]
    out = MapOutput(path, job, memory, spills, combine)
    segments = made(out, blocks(lines, 1000))
    found, wanted = contents(path, job, segments), due(lines, job)
    if combine is None:
        assert found == wanted
        assert out.spilled_records == len(lines) * (1 if memory == MEMORY else 2)
    else:
        assert [b"".join(counted(iter([part]))) for part in found] == [
            b"".join(counted(iter([part]))) for part in wanted
        ]
        assert sum(map(len, found)) < sum(map(len, wanted))


@pytest.mark.long
def test_ten_thousand_partitions_need_no_file_each(places):
    path, spills = places
    job = spec(10_000)
    lines = [b"%d\t\n" % number for number in range(20_000)]
    segments = made(MapOutput(path, job, 500_000, spills), blocks(lines, 1000))
    assert contents(path, job, segments) == due(lines, job)


def test_one_partition_may_be_larger_than_memory(places):
    path, spills = places
    job = spec(3)
    lines = [*words(1000), *(b"skewed\t%d\n" % number for number in range(3000))]
    segments = made(MapOutput(path, job, 40_000, spills), blocks(lines, 500))
    assert contents(path, job, segments) == due(lines, job)


def test_large_partitions_are_merged_alone_and_small_ones_together(places, monkeypatch):
    monkeypatch.setattr(spilling, "LARGE", 10_000)
    path, spills = places
    job = spec(7)
    lines = [*words(500), *(b"skewed\t%d\n" % number for number in range(3000))]
    out = MapOutput(path, job, 100_000, spills)
    segments = made(out, blocks(lines, 500))
    assert contents(path, job, segments) == due(lines, job)
    assert out.spilled_records == 2 * len(lines)


def test_many_spills_are_merged_on_the_way(places, monkeypatch):
    monkeypatch.setattr(Spills, "AT_ONCE", 3)
    path, spills = places
    job = spec(2)
    lines = words(1500)
    segments = made(MapOutput(path, job, 1, spills), blocks(lines))
    assert contents(path, job, segments) == due(lines, job)


@pytest.mark.parametrize("memory", [1, 30_000, MEMORY])
def test_combined_lines_have_the_same_sums(places, memory):
    path, spills = places
    job = spec(3)
    lines = words(2000)
    out = MapOutput(path, job, memory, spills, counted)
    segments = made(out, blocks(lines))
    found = contents(path, job, segments)
    sums = [b"".join(counted(iter([part]))) for part in due(lines, job)]
    assert [b"".join(counted(iter([part]))) for part in found] == sums
    assert sum(map(len, found)) < sum(map(len, lines))
    if memory == MEMORY:
        assert found == sums


def test_three_spills_are_combined_again(places, monkeypatch):
    monkeypatch.setattr(mapout, "COMBINED_BYTES", 1)
    path, spills = places
    job = spec(3)
    lines = words(2000)
    segments = made(MapOutput(path, job, 50_000, spills, counted), blocks(lines))
    assert contents(path, job, segments) == [
        b"".join(counted(iter([part]))) for part in due(lines, job)
    ]


def test_a_combiner_may_change_keys_and_break_the_order(places, monkeypatch):
    monkeypatch.setattr(mapout, "COMBINED_BYTES", 1)

    def odd(given: Iterator[bytes]) -> Iterator[bytes]:
        lines = b"".join(given).splitlines(keepends=True)
        yield from (line[::-1].strip() + b"\n" for line in reversed(lines))

    path, spills = places
    job = spec(5)
    lines = words(500)
    segments = made(MapOutput(path, job, MEMORY, spills, odd), blocks(lines))
    assert contents(path, job, segments) == due([line[::-1].strip() + b"\n" for line in lines], job)
    # Of what is combined more than once, each line still is where its key belongs.
    segments = made(MapOutput(path, job, 1, spills, odd), blocks(lines))
    for number, part in enumerate(contents(path, job, segments)):
        divided = Partitioner.of(job).divide(part)
        assert divided[number] == part


def test_a_combiner_may_make_more_than_memory_holds(places):
    path, spills = places
    job = spec(2)

    def more(given: Iterator[bytes]) -> Iterator[bytes]:
        for block in given:
            yield from (block, block, block)

    lines = words(1000)
    segments = made(MapOutput(path, job, 100_000, spills, more), blocks(lines, 1000))
    assert contents(path, job, segments) == due(lines * 3, job)


def test_what_a_combiner_raises_leaves_nothing(places):
    path, spills = places

    def broken(given: Iterator[bytes]) -> Iterator[bytes]:
        yield next(given)
        raise ValueError("line 37")

    with pytest.raises(ValueError, match="line 37"):
        made(MapOutput(path, spec(2), 1, spills, broken), blocks(words(10)))
    assert not path.exists()


def test_no_lines_make_an_empty_file(places):
    path, spills = places
    segments = made(MapOutput(path, spec(2), MEMORY, spills), iter(()))
    assert path.read_bytes() == b""
    assert [part.length for part in segments] == [0, 0]


def test_a_file_of_an_earlier_run_is_replaced(places):
    path, spills = places
    path.write_bytes(b"old")
    job = spec()
    segments = made(MapOutput(path, job, MEMORY, spills), iter([b"a\n"]))
    assert contents(path, job, segments) == [b"a\n"]


def test_spilled_records_are_counted(places):
    path, spills = places
    out = MapOutput(path, spec(), MEMORY, spills)
    made(out, iter([b"a\nb\n"]))
    assert (out.spilled_records, out.spilled_bytes) == (2, 4)
    out = MapOutput(path, spec(), 1, spills)
    made(out, iter([b"a\nb\n", b"c\n"]))
    assert (out.spilled_records, out.spilled_bytes) == (6, 12)


@pytest.mark.parametrize("change", [{"crc": 1}, {"length": 99}, {"raw": 99}])
def test_damage_is_noticed(places, change):
    path, spills = places
    job = spec()
    (segment,) = made(MapOutput(path, job, MEMORY, spills), iter([b"a\nb\n"]))
    wrong = type(segment)(
        **{**{n: getattr(segment, n) for n in segment.__struct_fields__}, **change}
    )
    with pytest.raises(Damaged):
        list(read_segment(path, wrong, None))
