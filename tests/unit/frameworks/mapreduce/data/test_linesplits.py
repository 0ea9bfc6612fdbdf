"""NLineInputFormat: so many lines a map."""

import gzip

import pytest

from frameworks.mapreduce.data import linesplits
from frameworks.mapreduce.data.inputs import InputFile
from frameworks.mapreduce.data.lines import Reader
from mesos_py.errors import InvalidValue

LINES = "mapreduce.input.lineinputformat.linespermap"


def divided(path, lines=None, most=1000):
    conf = {} if lines is None else {LINES: str(lines)}
    file = InputFile(f"file://{path}", path.stat().st_size, not path.name.endswith(".gz"))
    return list(linesplits.divide([file], conf, most))


def read(split):
    return list(Reader(split.pieces, {}).lines())


@pytest.mark.parametrize("lines", [1, 2, 3, 7, 100_000, 200_000])
def test_each_map_has_so_many_lines_and_all_are_read(tmp_path, lines):
    path = tmp_path / "in.txt"
    # More than what is read at once, with lines longer and shorter than that.
    texts = [b"%d" % n * (n % 7) for n in range(1000)] + [b"x" * 600_000] + [b""] * 5 + [b"last"]
    path.write_bytes(b"\n".join(texts))
    got = [read(split) for split in divided(path, lines, most=10_000)]
    assert got == [texts[at : at + lines] for at in range(0, len(texts), lines)]


def test_one_line_unless_said(tmp_path):
    path = tmp_path / "in.txt"
    path.write_bytes(b"a\nb\n")
    assert [split.size for split in divided(path)] == [2, 2]


def test_an_empty_file_has_no_map(tmp_path):
    path = tmp_path / "in.txt"
    path.write_bytes(b"")
    assert divided(path) == []


def test_a_packed_file_is_refused(tmp_path):
    path = tmp_path / "in.gz"
    path.write_bytes(gzip.compress(b"a\nb\n"))
    with pytest.raises(InvalidValue, match=r"input: .*in.gz.*NLineInputFormat cannot part it"):
        divided(path)


def test_more_maps_than_can_be_meant(tmp_path):
    path = tmp_path / "in.txt"
    path.write_bytes(b"\n" * 11)
    with pytest.raises(InvalidValue, match=r"linespermap: '1': makes more than 10 splits"):
        divided(path, most=10)
