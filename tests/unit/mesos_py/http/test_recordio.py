"""RecordIO, cut into pieces at every place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesos_py.errors import InvalidValue, TooLarge
from mesos_py.http.recordio import Reader, framed

RECORDS = [b'{"type":"HEARTBEAT"}', b"1", b"5\nhello", b"\n", bytes(range(256))]


def test_a_record_is_its_length_and_itself() -> None:
    assert framed(b"hello") == b"5\nhello"


def test_there_is_no_empty_record() -> None:
    with pytest.raises(InvalidValue, match="is empty"):
        framed(b"")


@pytest.mark.parametrize("cut", range(len(b"".join(map(framed, RECORDS))) + 1))
def test_a_stream_cut_in_two_anywhere(cut: int) -> None:
    data = b"".join(map(framed, RECORDS))
    reader = Reader()
    assert reader.feed(data[:cut]) + reader.feed(data[cut:]) == RECORDS
    assert not reader.within


def test_a_stream_that_comes_byte_by_byte() -> None:
    reader = Reader()
    data = b"".join(map(framed, RECORDS))
    found = [record for at in range(len(data)) for record in reader.feed(data[at : at + 1])]
    assert found == RECORDS


@given(st.lists(st.binary(min_size=1, max_size=40)), st.data())
def test_any_records_in_any_pieces(records: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(map(framed, records))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)))))
    reader, found = Reader(), []
    for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += reader.feed(stream[begin:end])
    assert found == records


def test_whether_a_record_has_begun_is_known() -> None:
    reader = Reader()
    within = [reader.within]
    for piece in (b"5", b"\n", b"hello"):
        reader.feed(piece)
        within.append(reader.within)
    assert within == [False, True, True, False]


@pytest.mark.parametrize(
    "data", [b"x", b"-1\n", b"\n", b"0\n", b"1 \n2", b"{}", b"5\r\nhello", b"1" * 21, b"\xb2\n"]
)
def test_what_is_no_length(data: bytes) -> None:
    reader = Reader()
    with pytest.raises(InvalidValue, match="is not the length of a record"):
        reader.feed(data)
    # It does not take what follows for records.
    with pytest.raises(InvalidValue):
        reader.feed(b"2\nok")


def test_a_record_over_the_bound_is_refused_before_it_has_come() -> None:
    with pytest.raises(TooLarge, match="of 11 bytes; allowed are 10"):
        Reader(max_record_bytes=10).feed(b"11\n")
    assert Reader(max_record_bytes=10).feed(b"10\n0123456789") == [b"0123456789"]
