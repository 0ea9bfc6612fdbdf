"""Docker's output streams: frames, positions, and going on after a break."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agent.containers.docker.logs import Entry, Frames, OutputFiles, Positions


def frame(kind: int, text: bytes) -> bytes:
    return bytes([kind, 0, 0, 0]) + len(text).to_bytes(4, "big") + text


def time(number: int) -> str:
    return f"2026-11-28T03:55:{number // 10:02}.{number % 10}00000000Z"


# ---- Frames ------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=20)), max_size=8),
    st.lists(st.integers(1, 40), max_size=30),
)
def test_frames_are_found_however_they_are_cut(texts, cuts):
    whole = b"".join(frame(kind, time(0).encode() + b" " + data) for kind, data in texts)
    frames, entries = Frames(), []
    for cut in cuts:
        entries += frames.feed(whole[:cut])
        whole = whole[cut:]
    entries += frames.feed(whole)
    assert entries == [Entry(kind - 1, time(0), data) for kind, data in texts]


@pytest.mark.parametrize(
    "data",
    [b"hello world", frame(3, b"t x"), b"\x01\0\0\0\xff\xff\xff\xff", frame(1, b"no-space")],
)
def test_what_is_no_frame_is_an_error(data):
    with pytest.raises(ValueError, match=r"no frame|without its time"):
        Frames().feed(data)


# ---- Positions -----------------------------------------------------------------------------

ENTRIES = st.lists(
    st.tuples(
        st.sampled_from([0, 1]),
        st.integers(0, 30),
        st.integers(0, 8),
        st.binary(min_size=1, max_size=4),
    ),
    max_size=12,
)


def entries_of(drawn) -> list[Entry]:
    """In an order as dockerd keeps: no stream's times fall, and both are nearly in order."""
    now, newest = 0, [0, 0]
    entries = []
    for stream, step, late, data in drawn:
        now += step
        newest[stream] = max(newest[stream], now - late)
        entries.append(Entry(stream, time(newest[stream]), data))
    return entries


def told_since(entries: list[Entry], since: str) -> list[Entry]:
    """What dockerd sends again: all from a time on."""
    seconds = float(since)
    if not seconds:
        return entries
    from datetime import datetime

    def of(entry: Entry) -> float:
        whole = datetime.fromisoformat(entry.time[:19] + "+00:00").timestamp()
        return whole + float(f"0.{entry.time[20:29]}")

    return [entry for entry in entries if of(entry) >= seconds]


def by_stream(entries: list[Entry]) -> list[bytes]:
    return [b"".join(e.data for e in entries if e.stream == n) for n in (0, 1)]


@given(ENTRIES, st.lists(st.integers(0, 12), max_size=4))
def test_after_any_breaks_all_is_written_once(drawn, breaks):
    entries = entries_of(drawn)
    positions = Positions()
    written = [b"", b""]

    def read(until: int | None) -> None:
        positions.resume()
        for entry in told_since(entries, positions.since())[:until]:
            pieces = positions.take([entry])
            for n in (0, 1):
                written[n] += pieces[n]

    for until in breaks:
        read(until)
    read(None)
    assert written == by_stream(entries)


@given(ENTRIES, st.integers(0, 12), st.integers(0, 12))
def test_a_restart_goes_on_from_an_old_note_and_the_files_sizes(drawn, noted_at, killed_at):
    entries = entries_of(drawn)
    noted_at, killed_at = sorted((min(noted_at, len(entries)), min(killed_at, len(entries))))
    before = Positions()
    before.resume()
    written = before.take(entries[:noted_at])
    note = before.to_text([len(each) for each in written])
    for n, more in enumerate(before.take(entries[noted_at:killed_at])):
        written[n] += more
    after = Positions.resumed(note, [len(each) for each in written])
    after.resume()
    for n, more in enumerate(after.take(told_since(entries, after.since()))):
        written[n] += more
    assert written == by_stream(entries)


@given(ENTRIES, st.integers(0, 12), st.integers(1, 12))
def test_the_last_entries_are_enough_if_the_first_of_them_is_known(drawn, read, tail):
    entries = entries_of(drawn)
    positions = Positions()
    written = positions.take(entries[:read])
    last = entries[-tail:]
    if len(last) == len(entries) or positions.know(last[0]):
        positions.resume()
        for n, more in enumerate(positions.take(last)):
            written[n] += more
        assert written == by_stream(entries)


@given(ENTRIES, st.integers(0, 12), st.integers(0, 12))
def test_what_dockerd_sends_twice_is_written_once(drawn, at, back):
    """As it does when it rotates its files."""
    entries = entries_of(drawn)
    times = [entry.time for entry in entries]
    again = entries[max(0, at - back) : at]
    # The last entry alone cannot be told from one with the same time.
    assume(all(times.count(each.time) == 1 for each in again) and len(again) != 1)
    by_itself = {0: [e for e in again if not e.stream], 1: [e for e in again if e.stream]}
    assume(all(len(each) != 1 for each in by_itself.values()))
    positions = Positions()
    assert positions.take([*entries[:at], *again, *entries[at:]]) == by_stream(entries)


def test_a_clock_that_is_set_back_costs_no_output():
    positions = Positions()
    entries = [Entry(0, time(n), b"%d" % n) for n in (50, 51, 20, 21, 22, 51, 52)]
    assert positions.take(entries[:5]) == [b"5051202122", b""]
    assert positions.take(entries[5:]) == [b"5152", b""]


@pytest.mark.parametrize("note", ["", "{", "null"])
def test_without_a_note_what_is_in_the_files_came_from_the_beginning(note):
    entries = [Entry(0, time(1), b"one"), Entry(1, time(1), b"e"), Entry(0, time(2), b"two")]
    after = Positions.resumed(note, [3, 0])
    assert after.since() == "0"
    assert after.take(entries) == [b"two", b"e"]


def test_a_file_that_was_rotated_loses_nothing():
    before = Positions()
    before.take([Entry(0, time(1), b"one"), Entry(0, time(2), b"two")])
    after = Positions.resumed(before.to_text([6, 0]), [0, 0])
    after.resume()
    entries = [Entry(0, time(1), b"one"), Entry(0, time(2), b"two"), Entry(0, time(3), b"three")]
    assert after.take(entries) == [b"three", b""]


# ---- Files -----------------------------------------------------------------------------------


def test_output_is_appended_and_sizes_are_told(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    files = OutputFiles(str(tmp_path), ("a", "b"), str(tmp_path / "note"))
    assert files.append([b"one", b""]) == [3, 0]
    assert files.append([b"two", b"err"]) == [6, 3]
    assert (tmp_path / "a/b/stdout").read_bytes() == b"onetwo"


def test_a_link_in_the_place_of_a_file_is_not_followed(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "secret").write_text("")
    (tmp_path / "a" / "stdout").symlink_to(tmp_path / "secret")
    files = OutputFiles(str(tmp_path), ("a",), str(tmp_path / "note"))
    with pytest.raises(OSError):  # noqa: PT011
        files.append([b"x", b""])
    assert (tmp_path / "secret").read_text() == ""


def test_a_note_is_kept_until_it_is_forgotten(tmp_path):
    files = OutputFiles(str(tmp_path), (), str(tmp_path / "note"))
    assert files.noted() == ""
    files.note("x")
    assert files.noted() == "x"
    files.forget()
    files.forget()
    assert files.noted() == ""
