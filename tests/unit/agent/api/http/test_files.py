"""/files/browse, read and debug: what they answer of a real sandbox."""

import json
import os
import stat
from functools import partial

import pytest
from aiohttp.test_utils import make_mocked_request
from yarl import URL

from agent.api.http.files import FilesEndpoints
from agent.api.http.sandboxes import SandboxFiles
from agent.api.virtual_files import OWN_LOG, VirtualFiles
from agent.sandboxes.removals import Removals
from mesos_py.errors import InvalidValue, NotFound
from mesos_py.http.file_queries import MAX_READ_BYTES
from mesos_py.http.log_file import OwnLog
from mesos_py.metrics import Metrics
from tests.kit.agent_core import AgentWorld, command


class Place:
    """One sandbox and the endpoints over it."""

    def __init__(self, tmp_path):
        self.world = AgentWorld()
        self.work_dir = tmp_path / "work"
        self.runs = self.work_dir / "agents/A1/frameworks/F1/executors/t1/runs"
        self.sandbox = self.runs / "c1"
        self.sandbox.mkdir(parents=True)
        (self.runs / "latest").symlink_to("c1")
        sandboxes = SandboxFiles(
            str(self.work_dir),
            lambda: "A1",
            lambda _: True,
            Removals(tmp_path / "removed"),
            lambda *_: pytest.fail("not followed"),
            Metrics(),
        )
        self.log = tmp_path / "agent.log"
        self.log.write_text("up\n")
        self.log_fd = os.open(self.log, os.O_WRONLY)
        self.files = VirtualFiles(
            str(self.work_dir), lambda: "A1", sandboxes.open, OwnLog(OWN_LOG, self.log_fd)
        )
        self.endpoints = FilesEndpoints()
        self.endpoints.open(self.files, self.world.core.state)

    async def get(self, name, **query):
        url = URL(f"/files/{name}").with_query({key: str(value) for key, value in query.items()})
        answer = await getattr(self.endpoints, name)(make_mocked_request("GET", str(url)))
        return json.loads(answer.body) if "jsonp" not in query else answer.body.decode()

    def path(self, name=""):
        return str(self.sandbox / name)


@pytest.fixture
def place(tmp_path):
    made = Place(tmp_path)
    yield made
    os.close(made.log_fd)


async def test_a_directory_is_listed_under_the_path_that_was_asked_for(place):
    (place.sandbox / "stdout").write_text("hello\n")
    (place.sandbox / "sub").mkdir()
    (place.sandbox / "link").symlink_to("/etc/passwd")
    found = await place.get("browse", path=place.path())
    assert [each["path"] for each in found] == [place.path(n) for n in ("link", "stdout", "sub")]
    link, file, sub = found
    assert set(file) == {"gid", "mode", "mtime", "nlink", "path", "size", "uid"}
    assert (file["mode"][0], file["size"], file["nlink"]) == ("-", 6, 1)
    # Not what it leads to.
    assert (link["mode"][0], sub["mode"][0]) == ("l", "d")
    assert file["mtime"] == float(int(file["mtime"]))
    short = "/frameworks/F1/executors/t1/runs/latest"
    assert (await place.get("browse", path=short))[1]["path"] == f"{short}/stdout"
    assert await place.get("browse", path=place.path("stdout")) == []
    latest = str(place.runs / "latest")
    assert [each["path"] for each in await place.get("browse", path=f"{latest}/")] == [
        f"{latest}/{name}" for name in ("link", "stdout", "sub")
    ]


async def test_what_is_no_directory_has_nothing_in_it(place):
    os.mkfifo(place.sandbox / "pipe")
    os.mknod(place.sandbox / "socket", stat.S_IFSOCK | 0o600)
    for name in ("pipe", "socket"):
        assert await place.get("browse", path=place.path(name)) == []


async def test_a_file_is_read_from_where_one_says(place):
    (place.sandbox / "stdout").write_text("hällo\n")
    read = partial(place.get, "read", path=place.path("stdout"))
    assert await read() == {"data": "", "offset": 7}
    assert await read(offset=-1) == {"data": "", "offset": 7}
    assert await read(offset=0) == {"data": "hällo\n", "offset": 0}
    assert await read(offset=3, length=2) == {"data": "ll", "offset": 3}
    assert await read(offset=3, length=-1) == {"data": "llo\n", "offset": 3}
    assert await read(offset=3, length=0) == {"data": "", "offset": 3}
    assert await read(offset=5000) == {"data": "", "offset": 5000}
    assert await read(offset=0, length=1, jsonp="cb") == 'cb({"data":"h","offset":0})'


async def test_one_answer_has_an_end(place):
    (place.sandbox / "big").write_bytes(b"x" * (MAX_READ_BYTES + 1))
    for more in ({}, {"length": 10**9}):
        found = await place.get("read", path=place.path("big"), offset=0, **more)
        assert len(found["data"]) == MAX_READ_BYTES
    (place.sandbox / "binary").write_bytes(b"\xff\0ab")
    found = await place.get("read", path=place.path("binary"), offset=0)
    assert found["data"] == "\N{REPLACEMENT CHARACTER}\0ab"


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("browse", {}),
        ("read", {"path": ""}),
        ("read", {"offset": "x"}),
        ("read", {"offset": ""}),
        ("read", {"offset": -2}),
        ("read", {"length": -5}),
        ("read", {"length": "1e3"}),
        ("read", {"name": "sub"}),
        ("download", {"name": "sub"}),
        ("browse", {"name": "link"}),
        ("read", {"name": "link"}),
        ("read", {"name": "link/x"}),
        ("read", {"name": "pipe"}),
        ("browse", {"name": "../.."}),
        ("browse", {"name": "", "jsonp": "a("}),
    ],
)
async def test_what_cannot_be_done_is_a_bad_request(place, name, query):
    (place.sandbox / "sub").mkdir()
    (place.sandbox / "link").symlink_to("/etc/passwd")
    os.mkfifo(place.sandbox / "pipe")
    (place.sandbox / "stdout").touch()
    asked = dict(query)
    if "path" not in asked and asked:
        asked["path"] = place.path("sub/../" + asked.pop("name", "stdout"))
    with pytest.raises(InvalidValue):
        await place.get(name, **asked)


@pytest.mark.parametrize("name", ["browse", "read", "download"])
async def test_what_is_not_there_is_not_found(place, name):
    (place.sandbox / "stdout").touch()
    (place.sandbox / "sub").mkdir()
    os.mkfifo(place.sandbox / "sub/pipe")
    beneath_files = [place.path(name) for name in ("stdout/x", "stdout/x/y", "sub/pipe/x")]
    for path in beneath_files:
        with pytest.raises(NotFound):
            await place.get(name, path=path, offset=0)
    for path in (place.path("nope"), "/etc/passwd", str(place.runs), str(place.runs / "c2")):
        with pytest.raises(NotFound):
            await place.get(name, path=path, offset=0)


async def test_the_agents_own_log_if_that_is_a_file(place):
    assert (await place.get("read", path=OWN_LOG, offset=0))["data"] == "up\n"
    assert (await place.get("debug"))[OWN_LOG] == str(place.log)
    reading, writing = os.pipe()
    try:
        piped = VirtualFiles(
            "/w", lambda: "A1", lambda _: pytest.fail("no sandbox"), OwnLog(OWN_LOG, writing)
        )
        with pytest.raises(NotFound):
            await piped.read(OWN_LOG, 0, None)
        assert piped.table(place.world.core.state) == {}
    finally:
        os.close(reading)
        os.close(writing)


async def test_which_path_leads_where(place):
    place.world.run(command("t1"), command("t2"))
    place.world.started("t1")
    place.world.ended("t1")
    found = await place.get("debug")
    del found[OWN_LOG]
    for name in ("t1", "t2"):
        runs = f"/srv/agent/agents/A1/frameworks/F1/executors/{name}/runs"
        real = f"{runs}/{place.world.container(name)}"
        for path in (real, f"{runs}/latest", f"/frameworks/F1/executors/{name}/runs/latest"):
            assert found.pop(path) == real
    assert found == {}
