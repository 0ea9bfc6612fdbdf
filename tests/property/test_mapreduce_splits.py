"""However files are cut, packed and read: each line once, in order."""

import os
import tempfile
import threading
from itertools import pairwise
from pathlib import Path

import fsspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frameworks.mapreduce.data import codecs, splits
from frameworks.mapreduce.data.files import Unreadable
from frameworks.mapreduce.data.inputs import InputFile
from frameworks.mapreduce.data.lines import Reader
from frameworks.mapreduce.data.locations import Block
from frameworks.mapreduce.job import Piece

# Long runs without a newline, so that a line goes through several pieces.
texts = st.one_of(
    st.binary(max_size=300),
    st.lists(st.sampled_from([b"\n", b"\r\n", b"a", b"x" * 40, b"\0", b"\xff"]), max_size=40).map(
        b"".join
    ),
)
hosts = st.lists(st.sampled_from(["a", "b", "c"]), max_size=2, unique=True).map(tuple)
blocks = st.lists(st.builds(Block, st.integers(-5, 200), st.integers(-5, 200), hosts), max_size=4)
confs = st.fixed_dictionaries(
    {
        "mapreduce.input.fileinputformat.split.maxsize": st.integers(1, 400).map(str),
        "mapreduce.input.fileinputformat.split.minsize": st.integers(0, 100).map(str),
        "mapreduce.job.maps": st.integers(1, 20).map(str),
        "mesos.input.combine": st.sampled_from(["true", "false"]),
    }
)
inputs = st.lists(
    st.tuples(texts, st.sampled_from([None, *codecs.ALL]), blocks), min_size=1, max_size=4
)


def ended(text):
    """With the newline that a last line gets."""
    return text + b"\n" if text and not text.endswith(b"\n") else text


def stored(directory, given_inputs):
    """In memory, or as files of this machine."""
    found = []
    for number, (text, codec, _) in enumerate(given_inputs):
        data = codec.pack(text) if codec else text
        name = f"{number}{codec.extension if codec else '.txt'}"
        if directory is None:
            url = f"memory:///splits/{name}"
            fsspec.filesystem("memory").pipe_file(f"/splits/{name}", data)
        else:
            url = f"file://{directory}/{name}"
            (directory / name).write_bytes(data)
        found.append(InputFile(url, len(data), codec is None))
    return found


def piped(reader):
    """What `copy_to` writes, and how much it said."""
    incoming, outgoing = os.pipe()
    told: list[int] = []

    def copy():
        try:
            reader.copy_to(outgoing, told.append)
        finally:
            os.close(outgoing)

    writer = threading.Thread(target=copy)
    writer.start()
    with os.fdopen(incoming, "rb") as file:
        data = file.read()
    writer.join()
    assert sum(told) == len(data)
    return data


def by_blocks(reader):
    found = list(reader.blocks())
    assert all(block.endswith(b"\n") for block in found)
    return b"".join(found)


def by_lines(reader):
    return b"".join(line + b"\n" for line in reader.lines())


def check(found, given_inputs, conf, read, chunk):
    made = splits.divide(found, [where for _, _, where in given_inputs], conf)
    pieces = [piece for split in made for piece in split.pieces]
    assert len(set(pieces)) == len(pieces)
    readers = []
    for file, (text, _, _) in zip(found, given_inputs, strict=True):
        # In the order of the file, whichever split they are in.
        own = sorted((piece for piece in pieces if piece.url == file.url), key=lambda p: p.start)
        reader = Reader(own, conf, chunk=chunk)
        assert read(reader) == ended(text)
        assert reader.position == file.size
        readers.append(reader)
    # As the maps read them.
    outputs = [read(Reader(split.pieces, conf, chunk=chunk)) for split in made]
    wanted = b"".join(ended(text) for text, _, _ in given_inputs)
    assert sorted(b"".join(outputs).split(b"\n")) == sorted(wanted.split(b"\n"))
    assert sum(reader.records for reader in readers) == sum(
        ended(text).count(b"\n") for text, _, _ in given_inputs
    )


@given(
    st.lists(st.tuples(st.integers(1, 60), hosts), max_size=12),
    st.integers(0, 500),
    confs,
)
def test_pieces_of_blocks_tile_the_file(given_blocks, size, conf):
    at = 0
    where = []
    for length, names in given_blocks:
        where.append(Block(at, length, names))
        at += length
    made = splits.divide([InputFile("f", size, True)], [where], conf)
    pieces = sorted((p for split in made for p in split.pieces), key=lambda p: p.start)
    assert [p.start for p in pieces] == [0, *(p.start + p.length for p in pieces[:-1])]
    assert sum(p.length for p in pieces) == size
    least = int(conf["mapreduce.input.fileinputformat.split.minsize"])
    most = int(conf["mapreduce.input.fileinputformat.split.maxsize"])
    assert all(p.length >= min(least, size) for p in pieces)
    # What is too small is put with a neighbour.
    assert all(p.length <= most + 4 * least for p in pieces)


@given(inputs, confs, st.integers(1, 64), st.sampled_from([by_blocks, by_lines]))
def test_files_in_a_store(given_inputs, conf, chunk, read):
    try:
        check(stored(None, given_inputs), given_inputs, conf, read, chunk)
    finally:
        fsspec.filesystem("memory").store.clear()


@given(inputs, confs, st.integers(1, 64))
def test_files_of_this_machine_into_a_pipe(given_inputs, conf, chunk):
    with tempfile.TemporaryDirectory() as directory:
        check(stored(Path(directory), given_inputs), given_inputs, conf, piped, chunk)


@given(texts, st.lists(st.integers(0, 300), max_size=8), st.integers(1, 64))
def test_any_cuts_give_each_line_to_one_piece(text, cuts, chunk):
    edges = sorted({0, len(text), *(min(cut, len(text)) for cut in cuts)})
    pieces = [Piece("memory:///cut", a, b - a) for a, b in pairwise(edges)]
    fsspec.filesystem("memory").pipe_file("/cut", text)
    begins = {0, *(i + 1 for i, byte in enumerate(text) if byte == 10)} - {len(text)}
    for piece in pieces:
        found = list(Reader([piece], {}, chunk=chunk).lines())
        own = [at for at in sorted(begins) if piece.start <= at < piece.start + piece.length]
        assert found == [text[at:].partition(b"\n")[0] for at in own]


@given(texts, st.sampled_from(codecs.ALL), st.integers(1, 64), st.data())
def test_packed_data_that_is_cut_off_is_an_error(text, codec, chunk, data):
    packed = codec.pack(text)
    cut = data.draw(st.integers(1, len(packed) - 1))
    parts = [packed[:cut][i : i + chunk] for i in range(0, cut, chunk)]
    with pytest.raises(Unreadable, match="cut off") as error:
        b"".join(codec.unpack(parts, "the file"))
    assert error.value.position in range(cut + 1)


@given(st.lists(texts, min_size=1, max_size=4), st.sampled_from(codecs.ALL), st.integers(1, 64))
def test_members_one_after_another_are_one(members, codec, chunk):
    packed = b"".join(map(codec.pack, members))
    parts = [packed[i : i + chunk] for i in range(0, len(packed), chunk)]
    assert b"".join(codec.unpack(parts, "the file")) == b"".join(members)
