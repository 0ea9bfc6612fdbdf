import importlib

import pytest

from frameworks.mapreduce.data import locations
from frameworks.mapreduce.data.inputs import InputFile
from frameworks.mapreduce.data.locations import Block, Locator, Published
from frameworks.mapreduce.data.webhdfs import WebHdfs
from mesos_py.errors import InvalidValue


def made(text):
    return locations.locator({"mesos.locations": text})


def file(url, size=100):
    return InputFile(url, size, True)


def test_which_locator():
    assert isinstance(locations.locator({}), Published)
    assert isinstance(made("auto"), Published)
    assert isinstance(made("webhdfs://nn:9870"), WebHdfs)
    assert isinstance(made("swebhdfs://me@nn:9871/"), WebHdfs)


def test_published_files_are_at_their_agent():
    urls = [
        "http://node1:5051/files/F/E/latest/published/part-0",
        "http://10.0.0.2:5051/files/F/E/latest/x",
        "http://[::1]:5051/files/F/E/latest/x",
        "http://web/other/files/x",
        "file:///files/x",
        "s3://bucket/files/x",
    ]
    found = Published("auto", {}).hosts([file(url) for url in urls])
    assert found == [
        [Block(0, 100, ("node1",))],
        [Block(0, 100, ("10.0.0.2",))],
        [Block(0, 100, ("::1",))],
        [],
        [],
        [],
    ]


@pytest.mark.parametrize("text", ["webhdfs://nn", "webhdfs://:9870", "webhdfs://nn:x", "webhdfs:"])
def test_no_address_of_a_namenode(text):
    with pytest.raises(InvalidValue, match=r"^mesos\.locations: .*webhdfs://HOST:PORT"):
        made(text)


class Everywhere(Locator):
    """A plug-in, as another distribution may have it."""

    def hosts(self, files):
        return [[Block(0, one.size, (self.text,))] for one in files]


@pytest.fixture
def installed(monkeypatch, tmp_path):
    def install(value):
        info = tmp_path / "ours-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ours\nVersion: 1\n")
        (info / "entry_points.txt").write_text(f"[mesos_py.mapreduce_locators]\nours = {value}\n")
        monkeypatch.syspath_prepend(tmp_path)
        importlib.invalidate_caches()

    return install


def test_a_plug_in(installed):
    # This very module, wherever the runner has it.
    installed(f"{__name__}:Everywhere")
    locator = made("ours://some/where")
    assert locator.hosts([file("x", 5)]) == [[Block(0, 5, ("ours://some/where",))]]


def test_a_plug_in_that_is_none(installed):
    installed("builtins:zip")
    with pytest.raises(InvalidValue, match="ours makes a zip, not a Locator"):
        made("ours://x")
