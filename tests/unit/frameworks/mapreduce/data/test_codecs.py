import bz2
import gzip
import pickle

import pytest
import zstandard

from frameworks.mapreduce.data import codecs
from frameworks.mapreduce.data.codecs import Bzip2, Gzip, Zstd
from frameworks.mapreduce.data.files import Unreadable
from mesos_py.errors import InvalidValue

by_name = pytest.mark.parametrize("codec", codecs.ALL, ids=lambda codec: codec.name)


def unpacked(codec, data, chunk=1 << 16):
    parts = [data[i : i + chunk] for i in range(0, len(data), chunk)]
    return b"".join(codec.unpack(parts, "u"))


def test_what_others_have_packed():
    assert unpacked(Gzip(), gzip.compress(b"text")) == b"text"
    assert unpacked(Bzip2(), bz2.compress(b"text")) == b"text"
    assert unpacked(Zstd(), zstandard.compress(b"text")) == b"text"


def test_what_others_can_unpack():
    assert gzip.decompress(Gzip().pack(b"text")) == b"text"
    assert bz2.decompress(Bzip2().pack(b"text")) == b"text"
    assert zstandard.ZstdDecompressor().decompressobj().decompress(Zstd().pack(b"text")) == b"text"


@by_name
def test_the_same_bytes_each_time(codec):
    assert codec.pack(b"text" * 1000) == codec.pack(b"text" * 1000)


@by_name
def test_nothing(codec):
    assert unpacked(codec, b"") == b""
    assert unpacked(codec, codec.pack(b"")) == b""


@by_name
def test_zeros_at_the_end_are_padding(codec):
    assert unpacked(codec, codec.pack(b"text") + b"\0" * 700, 100) == b"text"


@by_name
def test_what_follows_and_is_no_member(codec):
    packed = codec.pack(b"text")
    with pytest.raises(Unreadable, match=f"input u at byte {len(packed)}: is no {codec.name} data"):
        unpacked(codec, packed + b"rubbish that goes on")


@by_name
def test_damage_is_found(codec):
    packed = bytearray(codec.pack(bytes(range(256)) * 100))
    packed[len(packed) // 2] ^= 0x55
    with pytest.raises(Unreadable, match=r"^input u at byte "):
        unpacked(codec, bytes(packed))


@by_name
def test_what_is_much_larger_comes_in_blocks(codec):
    packed = codec.pack(bytes(50_000_000))
    sizes = [len(block) for block in codec.unpack([packed], "u")]
    assert sum(sizes) == 50_000_000
    assert max(sizes) <= 4 * codecs.BLOCK


def test_a_skippable_frame_of_zstd():
    skipped = (0x184D2A50).to_bytes(4, "little") + (3).to_bytes(4, "little") + b"abc"
    assert unpacked(Zstd(), skipped + Zstd().pack(b"text") + skipped) == b"text"


def test_names():
    assert codecs.named("f", "gzip").extension == ".gz"
    assert codecs.named("f", " GZip ").name == "gzip"
    assert codecs.named("f", "org.apache.hadoop.io.compress.BZip2Codec").name == "bzip2"
    assert codecs.named("f", "org.apache.hadoop.io.compress.ZStandardCodec").name == "zstd"
    with pytest.raises(InvalidValue, match=r"^f: 'gzp': is not one of .*did you mean gzip"):
        codecs.named("f", "gzp")
    with pytest.raises(InvalidValue, match="SnappyCodec"):
        codecs.named("f", "org.apache.hadoop.io.compress.SnappyCodec")


def test_extensions():
    found = [codecs.by_extension(f"s3://b/x{end}") for end in (".gz", ".bz2", ".zst", ".txt", "gz")]
    assert [codec and codec.name for codec in found] == ["gzip", "bzip2", "zstd", None, None]
    with pytest.raises(InvalidValue, match=r"^input: 's3://b/x\.xz': is packed in a way"):
        codecs.by_extension("s3://b/x.xz")


def test_the_error_travels():
    error = Unreadable("u", "is cut off", 7)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.url, again.position) == (str(error), "u", 7)
