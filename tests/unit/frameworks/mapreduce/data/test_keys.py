"""Keys of lines, and the form that lines have for sorting."""

import pytest

from frameworks.mapreduce.data.keys import Keys
from mesos_py.errors import InvalidValue


@pytest.mark.parametrize(
    ("fields", "separator", "line", "key"),
    [
        (1, b"\t", b"a\tb\tc", b"a"),
        (2, b"\t", b"a\tb\tc", b"a\tb"),
        (3, b"\t", b"a\tb\tc", b"a\tb\tc"),
        (9, b"\t", b"a\tb\tc", b"a\tb\tc"),
        (1, b"\t", b"no separator", b"no separator"),
        (1, b"\t", b"", b""),
        (1, b"\t", b"\tvalue", b""),
        (1, b"\t", b"with newline\t1\n", b"with newline"),
        (2, b"::", b"a::b:::c", b"a::b"),
    ],
)
def test_the_key_is_the_first_fields(fields, separator, line, key):
    assert Keys(separator, fields).key(line) == key


def test_they_come_from_the_properties_of_the_job():
    keys = Keys.of(
        {
            "stream.map.output.field.separator": ".",
            "stream.num.map.output.key.fields": "4",
            "mapreduce.map.output.key.field.separator": "é",
            "mapreduce.job.output.key.comparator.class": (
                "org.apache.hadoop.mapreduce.lib.partition.KeyFieldBasedComparator"
            ),
            "mapreduce.partition.keycomparator.options": "-k2,2nr",
        }
    )
    assert (keys.separator, keys.fields, keys.part_separator) == (b".", 4, b"\xc3\xa9")
    assert [part.field for part in keys.parts] == [2]


def test_options_count_only_with_the_comparator():
    assert Keys.of({"mapreduce.partition.keycomparator.options": "-k2,2nr"}) == Keys()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("stream.map.output.field.separator", ""),
        ("stream.map.output.field.separator", "\n"),
        ("mapreduce.map.output.key.field.separator", ""),
        ("mapreduce.job.output.key.comparator.class", "org.example.Mine"),
    ],
)
def test_wrong_properties_are_named(name, value):
    with pytest.raises(InvalidValue, match=name):
        Keys.of({name: value})


def test_lines_without_rare_bytes_keep_their_length():
    block = b"b\t1\nno separator\na\tx\ty\n\n\t\n"
    assert Keys().sortable(block) == b"b\x001\nno separator\na\x00x\ty\n\n\x00\n"
    assert Keys().plain(Keys().sortable(block)) == block


def test_rare_bytes_in_a_key_are_written_as_two():
    form = Keys().sortable(b"\x00\x01\t\x00\x01\n")
    assert form == b"\x01\x01\x01\x02\x00\x00\x01\n"
    assert Keys().plain(form) == b"\x00\x01\t\x00\x01\n"


def test_a_block_must_end_with_a_newline():
    with pytest.raises(InvalidValue, match="no newline"):
        Keys().sortable(b"a\nb")
