"""URIs as frameworks give them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.fetcher.uris import item_of, path_of, shown
from mesos_py.errors import InvalidValue
from mesos_py.v1 import types_pb2 as pb

URI = pb.CommandInfo.URI


@pytest.mark.parametrize(
    ("value", "uri", "target"),
    [
        ("http://h/a/b.tgz", "http://h/a/b.tgz", ["b.tgz"]),
        ("https://h:8080/x?y=1", "https://h:8080/x?y=1", ["x?y=1"]),
        ("file:///etc/hosts", "file:///etc/hosts", ["hosts"]),
        ("file://localhost/etc/hosts", "file://localhost/etc/hosts", ["hosts"]),
        ("/etc/hosts", "file:///etc/hosts", ["hosts"]),
        ("job/run.sh", "file:///home/frameworks/job/run.sh", ["run.sh"]),
        ("s3://bucket/key", "s3://bucket/key", ["key"]),
        ("hdfs:///user/data", "hdfs:///user/data", ["data"]),
    ],
)
def test_where_it_is_and_what_it_is_called(value, uri, target):
    item = item_of(URI(value=value), "/home/frameworks")
    assert (item["uri"], item["target"]) == (uri, target)
    assert item["extract"]
    assert not item["executable"]
    assert item["checksum"] is None


def test_a_plain_path_has_no_escapes():
    item = item_of(URI(value="/data/100%25#1?"))
    assert path_of(item["uri"]) == "/data/100%25#1?"


def test_what_is_executable_is_not_unpacked():
    assert not item_of(URI(value="/a.tgz", executable=True, extract=True))["extract"]
    assert not item_of(URI(value="/a.tgz", extract=False))["extract"]


def test_an_output_file_may_be_in_a_directory():
    item = item_of(URI(value="http://h/a", output_file="./bin/tool"))
    assert item["target"] == ["bin", "tool"]


@pytest.mark.parametrize("kind", ["sha256", "sha512"])
def test_a_checksum_is_no_part_of_the_uri_or_the_name(kind):
    digits = "aB" * (32 if kind == "sha256" else 64)
    item = item_of(URI(value=f"http://h/f#{kind}={digits}"))
    assert item["uri"] == "http://h/f"
    assert item["target"] == ["f"]
    assert item["checksum"] == (kind, digits.lower())


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("", "characters"),
        ("http://h/" + "x" * 9000, "characters"),
        ("http://h/a b", "spaces"),
        ("http://h/a'b", "quotes"),
        ("http://h/a\\b", "backslashes"),
        ("http://h/a\0b", "control"),
        ("http://h/a\nb", "control"),
        ("gopher://h/a", "no known scheme"),
        ("memory://a/b", "no known scheme"),
        ("simplecache::http://h/a", "no known scheme"),
        ("http:///a", "no host"),
        ("http://h", "names no file"),
        ("http://h/", "names no file"),
        ("http://[h/a", "Invalid IPv6"),
        ("file://other/a", "another host"),
        ("file:///a%00b", "null character"),
        ("http://h/..", "beneath the sandbox"),
        ("http://h/dir/", "name a file"),
        ("http://h/f#sha256=12", "has 2 hexadecimal digits, not 64"),
        ("http://h/f#md5=12", "no known checksum"),
        ("relative/path", "no --frameworks-home"),
    ],
)
def test_what_cannot_be_fetched_is_refused_in_words(value, why):
    with pytest.raises(InvalidValue, match=why):
        item_of(URI(value=value))


@pytest.mark.parametrize(
    "name", ["/etc/x", "../x", "a/../../x", "a//b", "", "a/", "x\0", "y" * 256]
)
def test_an_output_file_elsewhere_is_refused(name):
    with pytest.raises(InvalidValue, match=r"uris\.output_file"):
        item_of(URI(value="http://h/a", output_file=name))


@pytest.mark.parametrize(
    ("uri", "text"),
    [
        ("http://joe:pw@h:1/a?sig=s#f", "http://h:1/a?..."),
        ("https://token@h/a", "https://h/a"),
        ("file:///etc/hosts", "file:///etc/hosts"),
        ("http://[secret@h/a", "http:..."),
    ],
)
def test_people_see_no_secrets(uri, text):
    assert shown(uri) == text


@given(st.text(max_size=60), st.none() | st.text(max_size=60))
def test_any_text_is_taken_or_refused_and_stays_beneath(value, output_file):
    try:
        item = item_of(URI(value=value, output_file=output_file), "/home")
    except InvalidValue:
        return
    assert item["target"]
    for part in item["target"]:
        assert part not in ("", ".", "..")
        assert "/" not in part
