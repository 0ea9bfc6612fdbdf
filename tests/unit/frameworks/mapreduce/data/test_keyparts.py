"""Options as `sort -k` has them: read, and refused."""

import numpy as np
import pytest

from frameworks.mapreduce.data.blocks import positions
from frameworks.mapreduce.data.keyparts import KeyPart, parse
from mesos_py.errors import InvalidValue


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ()),
        ("-k1", (KeyPart(),)),
        ("-k1,1", (KeyPart(end_field=1),)),
        ("-k 2,3", (KeyPart(field=2, end_field=3),)),
        ("-k1.2,3nr", (KeyPart(byte=2, end_field=3, numeric=True, reverse=True),)),
        ("-k1r,3.4n", (KeyPart(end_field=3, end_byte=4, numeric=True, reverse=True),)),
        ("-k1,1 -k2,2nr", (KeyPart(end_field=1), KeyPart(2, 1, 2, 0, True, True))),
        ("-nr", (KeyPart(numeric=True, reverse=True),)),
        ("-n -k1,1 -k2,2r", (KeyPart(end_field=1, numeric=True), KeyPart(2, 1, 2, reverse=True))),
    ],
)
def test_options_are_read(text, parts):
    assert parse("options", text) == parts


@pytest.mark.parametrize("text", ["-k", "-k0", "-k1.0", "-k1,0", "-k1,2,3", "-k1b", "-x", "1,2"])
def test_what_is_wrong_is_named(text):
    with pytest.raises(InvalidValue, match=r"keycomparator\.options"):
        parse("keycomparator.options", text)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("-k1,1", b"11"),
        ("-k2,2", b"12"),
        ("-k2", b"12.1.2"),
        ("-k2.2,3", b"2.1"),
        ("-k3,4.1", b"1.2"),
        ("-k5", b""),
        ("-k4,9", b"2"),
        ("-k2,1", b""),
        ("-k1.4,2", b"12"),
        ("-k1,1.4", b"11.1"),
    ],
)
def test_a_part_of_a_key_is_the_same_alone_and_in_a_block(text, part):
    key = b"11.12.1.2"
    (found,) = parse("options", text)
    assert found.of(key, b".") == part
    begin, end = np.array([0]), np.array([len(key)])
    first, last = found.spans(positions(key, b"."), 1, begin, end)
    assert key[first[0] : last[0]] == part
