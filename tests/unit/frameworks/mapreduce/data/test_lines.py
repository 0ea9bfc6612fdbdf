import os
import socket
import threading

import fsspec
import pytest

from frameworks.mapreduce.data.codecs import ALL, Gzip
from frameworks.mapreduce.data.files import Unreadable
from frameworks.mapreduce.data.lines import Reader
from frameworks.mapreduce.job import Piece


@pytest.fixture
def memory():
    fs = fsspec.filesystem("memory")
    yield fs
    fs.store.clear()


def piece(path, start=0, length=None):
    size = path.stat().st_size
    return Piece(f"file://{path}", start, size - start if length is None else length)


def written(tmp_path, data, name="in.txt"):
    path = tmp_path / name
    path.write_bytes(data)
    return path


def lines(*pieces, **options):
    return list(Reader(pieces, {}, **options).lines())


def through(reader, make=os.pipe):
    """What `copy_to` writes into a pipe, and what it says."""
    incoming, outgoing = make()
    told: list[int] = []
    data = []

    def read():
        with os.fdopen(incoming, "rb") as file:
            data.append(file.read())

    thread = threading.Thread(target=read)
    thread.start()
    try:
        reader.copy_to(outgoing, told.append)
    finally:
        os.close(outgoing)
        thread.join()
    return data[0], told


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (b"", []),
        (b"\n", [b""]),
        (b"a\nb\n", [b"a", b"b"]),
        (b"a\n\nb", [b"a", b"", b"b"]),
        (b"a\r\nb\rc\n", [b"a\r", b"b\rc"]),
        (b"\xff\0\n\x85\x1c\n", [b"\xff\0", b"\x85\x1c"]),
    ],
)
def test_lines_end_with_newlines_only(tmp_path, text, wanted):
    assert lines(piece(written(tmp_path, text))) == wanted


def test_a_line_is_of_the_piece_in_which_it_begins(tmp_path):
    path = written(tmp_path, b"aaaa\nbbbb\ncccc\n")
    found = [lines(piece(path, start, 5)) for start in (0, 5, 10)]
    assert found == [[b"aaaa"], [b"bbbb"], [b"cccc"]]
    found = [lines(piece(path, start, length)) for start, length in ((0, 6), (6, 3), (9, 6))]
    assert found == [[b"aaaa", b"bbbb"], [], [b"cccc"]]


def test_pieces_within_a_long_line_have_nothing(tmp_path):
    path = written(tmp_path, b"a\n" + b"x" * 100_000 + b"\nb\n")
    assert lines(piece(path, 3, 50_000)) == []
    assert lines(piece(path, 50_003, 49_999)) == []
    assert lines(piece(path, 100_002, 3)) == [b"b"]
    assert lines(piece(path, 2, 1)) == [b"x" * 100_000]


def test_pieces_of_several_files(tmp_path):
    pieces = [
        piece(written(tmp_path, text, name))
        for name, text in [("a", b"1\n2"), ("b", b""), ("c", b"3\n"), ("d", b"4")]
    ]
    reader = Reader(pieces, {})
    assert b"".join(reader.blocks()) == b"1\n2\n3\n4\n"
    assert (reader.records, reader.position) == (4, 6)


@pytest.mark.parametrize("codec", ALL, ids=lambda codec: codec.name)
def test_packed_files(tmp_path, codec):
    text = b"".join(b"%d\n" % i for i in range(100_000)) + b"last"
    path = written(tmp_path, codec.pack(text) + codec.pack(b" of all"), f"in{codec.extension}")
    reader = Reader([piece(path, 0, -1)], {})
    assert b"".join(reader.blocks()) == text + b" of all\n"
    assert (reader.records, reader.position) == (100_001, path.stat().st_size)
    data, told = through(Reader([piece(path, 0, -1)], {}))
    assert data == text + b" of all\n"
    assert sum(told) == len(data)


def test_a_packed_file_that_is_cut_off(tmp_path):
    packed = Gzip().pack(os.urandom(300_000))
    path = written(tmp_path, packed[:200_000], "in.gz")
    with pytest.raises(Unreadable, match=r"in\.gz at byte 200000: is cut off"):
        lines(piece(path, 0, -1))


def test_a_packed_file_that_is_damaged(tmp_path):
    path = written(tmp_path, b"this is text", "in.gz")
    with pytest.raises(Unreadable, match=r"in\.gz at byte 0: is no gzip data"):
        lines(piece(path, 0, -1))


@pytest.mark.parametrize("count", [True, False])
def test_a_large_file_goes_to_a_pipe(tmp_path, count):
    text = b"".join(b"line %d\r\n" % i for i in range(200_000)) + b"end"
    path = written(tmp_path, text)
    cut = text.index(b"\r\nline 7\r") + 3
    reader = Reader([piece(path, cut)], {}, count=count)
    data, told = through(reader)
    assert data == text[text.index(b"line 8\r") :] + b"\n"
    assert sum(told) == len(data)
    assert reader.records == (199_993 if count else 0)
    assert not reader.stopped


def test_a_large_file_goes_to_a_socket(tmp_path):
    def pair():
        one, two = socket.socketpair()
        return one.detach(), two.detach()

    text = b"0123456\n" * 100_000
    assert through(Reader([piece(written(tmp_path, text))], {}), pair)[0] == text


@pytest.mark.parametrize("name", ["in.txt", "in.gz"])
def test_who_stops_reading_gets_no_more(tmp_path, name):
    text = os.urandom(4_000_000)
    data = Gzip().pack(text) if name.endswith("gz") else text
    reader = Reader([piece(written(tmp_path, data, name), 0, -1 if name == "in.gz" else None)], {})
    incoming, outgoing = os.pipe()
    os.close(incoming)
    try:
        reader.copy_to(outgoing, lambda size: None)
    finally:
        os.close(outgoing)
    assert reader.stopped
    assert reader.position < len(data)


def test_a_descriptor_that_cannot_be_sent_to_is_written(tmp_path):
    # sendfile refuses files that are opened for appending.
    text = b"0123456\n" * 100_000 + b"end"
    out = tmp_path / "out"
    fd = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    reader = Reader([piece(written(tmp_path, text))], {})
    try:
        reader.copy_to(fd, lambda size: None)
    finally:
        os.close(fd)
    assert out.read_bytes() == text + b"\n"
    assert (reader.position, reader.records) == (len(text), 100_001)


def test_other_errors_of_the_pipe_are_told(tmp_path):
    fd = os.open("/dev/full", os.O_WRONLY)
    try:
        with pytest.raises(OSError, match="No space left"):
            Reader([piece(written(tmp_path, b"a\n"))], {}).copy_to(fd, lambda size: None)
    finally:
        os.close(fd)


def test_a_store(memory):
    memory.pipe_file("/in/x", b"one\ntwo\nthree")
    reader = Reader([Piece("memory:///in/x", 4, 9)], {}, chunk=2)
    assert list(reader.lines()) == [b"two", b"three"]
    assert through(Reader([Piece("memory:///in/x", 0, 4)], {}))[0] == b"one\n"


@pytest.mark.parametrize("url", ["file:///{}/gone", "memory:///gone"])
def test_a_file_that_has_gone(tmp_path, url):
    with pytest.raises(Unreadable, match=r"gone: is not there"):
        lines(Piece(url.format(tmp_path), 0, 5))


@pytest.mark.parametrize("place", ["file", "memory"])
def test_a_file_that_has_become_shorter(tmp_path, memory, place):
    url = f"file://{written(tmp_path, b'abc')}" if place == "file" else "memory:///in"
    memory.pipe_file("/in", b"abc")
    with pytest.raises(Unreadable, match="has 3 bytes, and had 5 or more when the job was"):
        lines(Piece(url, 2, 3))


def test_a_pipe_as_input_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "in")
    with pytest.raises(Unreadable, match="is no regular file"):
        lines(Piece(f"file://{tmp_path}/in", 0, 5))


def test_a_file_that_grows_has_its_lines_once(tmp_path):
    path = written(tmp_path, b"one\ntw")
    known = piece(path)
    path.write_bytes(b"one\ntwo\nthree\n")
    assert lines(known) == [b"one", b"two"]


def test_reading_that_ends_early_closes_the_file(tmp_path):
    # The leak check sees to the descriptor.
    found = Reader([piece(written(tmp_path, b"a\nb\n"))], {}).lines()
    assert next(found) == b"a"
    found.close()
