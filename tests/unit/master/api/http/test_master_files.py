"""/files and the calls of files: a master has its own log, if that is a file, and nothing else."""

import base64
import contextlib
import os

import pytest

from master.api.http.files import OWN_LOG
from mesos_py.http.file_queries import MAX_READ_BYTES
from mesos_py.http.log_file import OwnLog
from tests.kit.master_http import http_master


@pytest.fixture
async def master(log):
    log.write_text("up\n")
    with log.open("ab") as file:
        async with http_master(OwnLog(OWN_LOG, file.fileno())) as made:
            yield made


@pytest.fixture
def log(tmp_path):
    return tmp_path / "master.log"


async def test_its_log_is_found_by_the_path_that_clients_know(master, log):
    assert await master.page("/files/debug") == {OWN_LOG: str(log)}
    assert await master.page(f"/files/browse?path={OWN_LOG}") == []
    read = f"/files/read?path={OWN_LOG}"
    assert await master.page(read) == {"data": "", "offset": 3}
    assert await master.page(f"{read}&offset=-1") == {"data": "", "offset": 3}
    assert await master.page(f"{read}&offset=1&length=1") == {"data": "p", "offset": 1}
    log.write_bytes(b"x" * (MAX_READ_BYTES + 1))
    assert len((await master.page(f"{read}&offset=0"))["data"]) == MAX_READ_BYTES


async def test_its_log_is_read_by_calls(master):
    found = (200, {"type": "READ_FILE", "read_file": {"size": 3, "data": _coded("p\n")}})
    assert await master.call("READ_FILE", read_file={"path": OWN_LOG, "offset": 1}) == found
    cut = {"path": OWN_LOG, "offset": 0, "length": 2}
    assert (await master.call("READ_FILE", read_file=cut))[1]["read_file"]["data"] == _coded("up")
    assert (await master.call("LIST_FILES", list_files={"path": OWN_LOG}))[0] == 200


async def test_its_log_is_downloaded(master):
    path = f"/files/download?path={OWN_LOG}"
    head, body = await master.ask(path)
    assert (head.status, body) == (200, b"up\n")
    assert head.headers["content-type"] == "application/octet-stream"
    assert head.headers["content-disposition"].startswith("attachment")
    head, body = await master.ask(path, headers={"Range": "bytes=1-1"})
    assert (head.status, body) == (206, b"p")


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("browse", 400),
        ("read?path=", 400),
        ("read?path=/master/log&offset=x", 400),
        ("read?path=/nothing&offset=-2", 400),
        ("browse?path=/master/log&jsonp=f(", 400),
        ("download", 400),
        ("browse?path=/master", 404),
        ("browse?path=/master/log/x", 404),
        ("read?path=/etc/passwd", 404),
        ("download?path=/nothing", 404),
        ("debug.json", 404),
    ],
)
async def test_what_else_is_asked_for(master, query, status):
    head, answer = await master.ask(f"/files/{query}")
    assert head.status == status, answer


async def test_a_master_that_does_not_lead_has_files_too(master):
    master.elsewhere()
    assert await master.page(f"/files/browse?path={OWN_LOG}") == []


async def test_a_log_that_is_no_file_is_not_found():
    with contextlib.ExitStack() as stack:
        reading, writing = os.pipe()
        stack.callback(os.close, reading)
        stack.callback(os.close, writing)
        async with http_master(OwnLog(OWN_LOG, writing)) as master:
            assert await master.page("/files/debug") == {}
            for name in ("browse", "read", "download"):
                head, _ = await master.ask(f"/files/{name}?path={OWN_LOG}")
                assert head.status == 404
            status, _ = await master.call("LIST_FILES", list_files={"path": OWN_LOG})
            assert status == 404


def _coded(text):
    return base64.b64encode(text.encode()).decode()
