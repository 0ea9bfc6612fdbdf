"""Any lines, keys and memory: the order is that of a model in Python, and that of GNU sort;
lines with the same key share a partition."""

import subprocess
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from frameworks.mapreduce.data.blocks import Lines
from frameworks.mapreduce.data.keyparts import KeyPart
from frameworks.mapreduce.data.keys import Keys
from frameworks.mapreduce.data.mapout import MapOutput
from frameworks.mapreduce.data.ordering import gathered, grouped, order
from frameworks.mapreduce.data.partitions import Partitioner
from frameworks.mapreduce.data.runs import whole_lines
from frameworks.mapreduce.data.segments import read_segment
from frameworks.mapreduce.data.sorting import Sorter
from frameworks.mapreduce.job import JobSpec, Program

_ANY = st.binary(max_size=12).map(lambda line: line.replace(b"\n", b""))
# Bytes that have a meaning somewhere, in lines that are alike.
_ALIKE = st.builds(
    lambda head, tail: head + bytes(tail),
    st.sampled_from((b"", b"a", b"the same beginning", b"x" * 60)),
    st.lists(st.sampled_from((0, 1, 2, 8, 9, 32, 44, 48, 97, 255)), max_size=8),
)
LINES = st.lists(_ANY | _ALIKE, max_size=30)

SEPARATORS = st.sampled_from((b"\t", b",", b"a", b"\x00", b"\x01", b"\xff", b"::", b"\t,"))
PARTS = st.lists(
    st.builds(
        KeyPart,
        field=st.integers(1, 3),
        byte=st.integers(1, 4),
        end_field=st.integers(0, 3),
        end_byte=st.integers(0, 3),
        numeric=st.booleans(),
        reverse=st.booleans(),
    ),
    max_size=2,
).map(tuple)
KEYS = st.builds(
    Keys, separator=SEPARATORS, fields=st.integers(1, 3), parts=PARTS, part_separator=SEPARATORS
)

_NUMBERS = st.lists(
    st.sampled_from((b"-", b".", b"0", b"1", b"9", b"10", b" ", b"\t", b"x", b":")), max_size=6
).map(b"".join)


def block(lines: list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def gnu_sort(lines: list[bytes], *options: bytes) -> bytes:
    return subprocess.run(
        [b"sort", *options],
        input=block(lines),
        stdout=subprocess.PIPE,
        check=True,
        env={"LC_ALL": "C"},
    ).stdout


def through(sorter: Sorter, lines: list[bytes]) -> bytes:
    try:
        for at in range(0, len(lines), 3):
            sorter.add(block(lines[at : at + 3]))
        return b"".join(sorter.result())
    finally:
        sorter.close()


@given(LINES, st.lists(st.integers(0, 70_000), min_size=30, max_size=30))
def test_lines_are_ordered_by_group_and_then_by_bytes(lines, numbers):
    found = Lines.of(block(lines))
    assert b"".join(gathered(found, order(found))) == block(sorted(lines))
    groups = np.array(numbers[: len(lines)], np.uint32)
    wanted = order(found, groups)
    due = sorted(zip(groups.tolist(), lines, strict=True))
    pieces = list(grouped(found, wanted, groups[wanted]))
    assert b"".join(piece for _, piece in pieces) == block([line for _, line in due])
    assert [number for number, _ in pieces] == sorted(set(groups.tolist()))


@given(KEYS, LINES)
@example(Keys(), [b"a\tx", b"a\x01\tx", b"a", b"a\ty", b"a\x00\t", b"\x01\x01\t\x00"])
def test_the_form_is_taken_back(keys, lines):
    form = keys.sortable(block(lines))
    assert form.count(b"\n") == len(lines)
    assert keys.plain(form) == block(lines)


@given(st.builds(Keys, separator=SEPARATORS, fields=st.integers(1, 3)), LINES)
def test_lines_are_sorted_by_key_and_then_by_line(keys, lines):
    due = block(sorted(lines, key=lambda line: (keys.key(line), line)))
    with tempfile.TemporaryDirectory() as directory:
        for memory in (10**9, 1, 400):
            assert through(Sorter(keys, memory, Path(directory)), lines) == due


@given(st.sampled_from((b"\t", b",", b"a", b"\xff")), st.integers(1, 3), LINES)
def test_that_is_the_order_of_gnu_sort(separator, fields, lines):
    with tempfile.TemporaryDirectory() as directory:
        found = through(Sorter(Keys(separator, fields), 10**9, Path(directory)), lines)
    assert found == gnu_sort(lines, b"-t", separator, b"-k1,%d" % fields)


@given(KEYS, LINES)
def test_memory_makes_no_difference(keys, lines):
    with tempfile.TemporaryDirectory() as directory:
        due = through(Sorter(keys, 10**9, Path(directory)), lines)
        for memory in (1, 400):
            assert through(Sorter(keys, memory, Path(directory)), lines) == due


def option(part: KeyPart) -> bytes:
    text = b"-k%d.%d" % (part.field, part.byte)
    if part.end_field:
        text += b",%d" % part.end_field
        text += b".%d" % part.end_byte if part.end_byte else b""
    return text + b"n" * part.numeric + b"r" * part.reverse


@given(st.sampled_from((b":", b"1", b"\t")), PARTS, st.lists(_NUMBERS | _ALIKE, max_size=20))
def test_parts_of_keys_are_ordered_as_gnu_sort_orders_them(separator, parts, lines):
    """All of a line is its key here, since to sort there is nothing else."""
    keys = Keys(b"\x02\x03", 1, parts, separator)
    with tempfile.TemporaryDirectory() as directory:
        found = through(Sorter(keys, 10**9, Path(directory)), lines)
    assert found == gnu_sort(lines, b"-t", separator, *map(option, parts))


@given(KEYS, PARTS, st.integers(1, 5), LINES)
def test_a_line_is_where_its_key_is(keys, parts, count, lines):
    partitioner = Partitioner(keys, count, parts)
    due = [
        [line for line in lines if partitioner.of_key(keys.key(line)) == number]
        for number in range(count)
    ]
    assert partitioner.divide(block(lines)) == list(map(block, due))


class AtOnce(MapOutput):
    """Looks at once whether lines come again."""

    SHOWN = 0


@given(
    st.sampled_from((MapOutput, AtOnce)),
    st.integers(1, 20),
    st.integers(1, 20_000),
    st.lists(LINES.flatmap(lambda lines: st.sampled_from((lines, lines * 7))), max_size=3).map(
        lambda parts: [line for part in parts for line in part]
    ),
)
def test_output_of_a_map_has_each_line_once_in_its_place(kind, reduces, memory, lines):
    spec = JobSpec(
        job_id="job_20261128141500_0001",
        name="",
        user="",
        inputs=(),
        output="",
        mapper=Program(command="cat"),
        reduces=reduces,
    )
    keys = Keys()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "out"
        out = kind(path, spec, memory, Path(directory))
        for at in range(0, len(lines), 30):
            out.add(block(lines[at : at + 30]))
        segments = out.finish()
        found = [
            b"".join(map(keys.plain, whole_lines(read_segment(path, segment, None))))
            for segment in segments
        ]
        assert [each.name for each in Path(directory).iterdir()] == ["out"]
    due = sorted(lines, key=lambda line: (keys.key(line), line))
    assert found == Partitioner.of(spec).divide(block(due))
