import json
import re

import pytest

from frameworks.mapreduce.data import locations
from frameworks.mapreduce.data.inputs import InputFile
from frameworks.mapreduce.data.locations import Block
from frameworks.mapreduce.data.manifests import Manifest
from mesos_py.errors import InvalidValue


def made(text):
    return locations.locator({"mesos.locations": text})


def file(url):
    return InputFile(url, 100, True)


@pytest.fixture
def manifest(tmp_path):
    def write(given):
        text = given if isinstance(given, str) else json.dumps(given)
        (tmp_path / "where.json").write_text(text)
        return str(tmp_path / "where.json")

    return write


def test_a_manifest(manifest, tmp_path):
    blocks = [
        {"start": 0, "length": 60, "hosts": ["a"]},
        {"start": 60, "length": 40, "hosts": ["b", "c"]},
    ]
    locator = made(
        manifest(
            {
                "version": 1,
                "files": {
                    "near.txt": ["a", "b"],
                    "/mnt/x/../far.txt": blocks,
                    "s3://bucket/key": ["c"],
                    "/bricks/": ["d"],
                    "/bricks/7/": ["e"],
                    "/bricks/7/none": [],
                },
            }
        )
    )
    assert isinstance(locator, Manifest)
    urls = {
        f"file://{tmp_path}/near.txt": [("a", "b")],
        "file:///mnt/far.txt": [("a",), ("b", "c")],
        "s3://bucket/key": [("c",)],
        "s3://bucket/other": [],
        "file:///bricks/3/deep/x": [("d",)],
        "file:///bricks/7/x": [("e",)],
        "file:///bricks/7/none": [],
        "file:///bricks": [],
        "http://web/x": [],
    }
    found = locator.hosts([file(url) for url in urls])
    assert [[block.hosts for block in blocks] for blocks in found] == list(urls.values())
    assert found[1] == [Block(0, 60, ("a",)), Block(60, 40, ("b", "c"))]


def test_a_manifest_by_its_kind(manifest):
    assert isinstance(made(f"manifest:{manifest({'files': {}})}"), Manifest)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("{", "is no location manifest"),
        ({"files": []}, "is no location manifest: Expected `object`, got `array` - at `$.files`"),
        (
            {"files": {"a": [{"start": 0}]}},
            "missing required field `length` - at `$.files[...][0]`",
        ),
        ({"files": {}, "more": 1}, "unknown field `more`"),
        ({"files": {"a": ["h", {"start": 0, "length": 1, "hosts": []}]}}, "a has both hosts and"),
        ({"files": {}, "version": 2}, "has version 2; known is 1"),
    ],
)
def test_a_manifest_that_is_no_good(manifest, given, text):
    path = manifest(given)
    with pytest.raises(InvalidValue, match=rf"^mesos\.locations: '{path}': .*{re.escape(text)}"):
        made(path)


@pytest.mark.parametrize("name", ["gone.json", "ceph"])
def test_no_manifest(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidValue, match=rf"^mesos\.locations: '{name}': cannot be read: is not"):
        made(name)
