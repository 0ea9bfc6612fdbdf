"""Whose bytes are whose, and what keepers report, however the stream is cut."""

import pytest

from frameworks.mpi.core.streams import Marks, Report, Reports, Text, parse_report

STREAM = b"own\n\x01K:0\x02hello\n\x01K:1\x02par\x01K:0\x02x\n\x01K:1\x02tial\nown2\n"


@pytest.mark.parametrize("size", [1, 2, 3, 7, len(STREAM)])
def test_pieces_are_told_apart_however_they_are_cut(size):
    marks = Marks(b"\x01K:", b"\x02")
    found: dict[int | None, bytes] = {}
    cuts = [STREAM[at : at + size] for at in range(0, len(STREAM), size)]
    texts = [text for cut in cuts for text in marks.feed(cut)]
    for text in [*texts, *marks.feed(b"", last=True)]:
        found[text.rank] = found.get(text.rank, b"") + text.data
    assert found == {None: b"own\nown2\n", 0: b"hello\nx\n", 1: b"partial\n"}


def test_reports_are_taken_out_of_what_the_rank_says():
    reports = Reports(b"W")
    assert reports.feed(Text(1, b"abcW1 end 3\nxyzW1 le")) == (b"abcxyz", [Report(1, 3)])
    assert reports.feed(Text(1, b"ft no\n")) == (b"", [Report(1, finished=False)])


@pytest.mark.parametrize("line", [b"", b"1", b"x start", b"1 end x", b"1 left maybe", b"1 end"])
def test_what_is_no_report_is_none(line):
    assert parse_report(line) is None
