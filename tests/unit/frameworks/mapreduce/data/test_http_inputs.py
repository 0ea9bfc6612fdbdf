"""Inputs on web servers, as agents serve the files that tasks have published."""

import asyncio
import gzip

import fsspec.asyn
import pytest
from aiohttp import web

from frameworks.mapreduce.data import inputs, splits
from frameworks.mapreduce.data.files import Unreadable
from frameworks.mapreduce.data.lines import Reader
from frameworks.mapreduce.job import JobSpec, Piece, Program
from mesos_py.errors import InvalidValue, NotFound

BASE = "/files/F/E/latest/published"
TEXT = b"".join(b"line %d\n" % i for i in range(1000))


@pytest.fixture(scope="module", autouse=True)
def loop_of_fsspec():
    """It has one for the process, once it is needed: no leak of a test."""
    fsspec.asyn.get_loop()


@pytest.fixture
async def server(tmp_path):
    (tmp_path / "part 0").write_bytes(TEXT)
    (tmp_path / "part-1.gz").write_bytes(gzip.compress(TEXT))
    (tmp_path / "_hidden").write_bytes(b"no")

    async def file(request):
        path = tmp_path / request.match_info["name"]
        return web.FileResponse(path) if path.is_file() else web.Response(status=404)

    async def directory(request):
        found = [
            {"name": path.name, "kind": "file", "size": path.stat().st_size, "modified": 0.5}
            for path in tmp_path.iterdir()
        ]
        return web.json_response({"entries": found, "more": "more" in request.query})

    async def page(request):
        return web.Response(text="<html>")

    async def stream(request):
        # No length, and no ranges.
        answer = web.StreamResponse(headers={"Accept-Ranges": "none"})
        answer.enable_chunked_encoding()
        await answer.prepare(request)
        if request.method != "HEAD":
            for i in range(0, len(TEXT), 1000):
                await answer.write(TEXT[i : i + 1000])
        return answer

    app = web.Application()
    app.router.add_get("/page/", page)
    app.router.add_get("/stream", stream)
    app.router.add_get(BASE + "/", directory)
    app.router.add_get(BASE + "/{name}", file)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    # The connections that fsspec keeps for the process.
    fsspec.get_filesystem_class("http").clear_instance_cache()
    await runner.cleanup()


def planned(*given, **conf):
    spec = JobSpec(
        job_id="j", name="", user="", inputs=given, output="", mapper=Program(), conf=conf
    )
    return splits.plan(spec)


async def test_what_a_task_has_published(server):
    url = f"{server}{BASE}/"
    conf = {"mapreduce.input.fileinputformat.split.maxsize": "5000"}
    made = await asyncio.to_thread(planned, url, **conf)
    pieces = [piece for split in made for piece in split.pieces]
    assert [(piece.url, piece.length) for piece in pieces] == [
        (f"{url}part%200", 4445),
        (f"{url}part%200", 4445),
        (f"{url}part-1.gz", -1),
    ]
    assert {split.hosts for split in made} == {("127.0.0.1",)}
    for some in (pieces[:2], pieces[2:]):
        found = await asyncio.to_thread(list, Reader(some, conf).blocks())
        assert b"".join(found) == TEXT


async def test_a_file_of_unknown_length(server):
    found = await asyncio.to_thread(inputs.find, [f"{server}/stream?x=[1],2"], {})
    assert found == [inputs.InputFile(f"{server}/stream?x=[1],2", -1, False)]
    reader = Reader([Piece(found[0].url, 0, -1)], {})
    assert await asyncio.to_thread(lambda: b"".join(reader.blocks())) == TEXT
    assert reader.position == len(TEXT)


@pytest.mark.parametrize(
    ("path", "error", "text"),
    [
        ("/files/none", NotFound, "is not there"),
        (BASE + "/none", NotFound, "is not there"),
        ("/page/", InvalidValue, "is no directory of an agent's file server"),
        (BASE + "/?more=1/", InvalidValue, "has more than 3 entries"),
    ],
)
async def test_what_is_no_input(server, path, error, text):
    with pytest.raises(error, match=text):
        await asyncio.to_thread(inputs.find, [server + path], {})


async def test_a_server_that_has_gone():
    with pytest.raises(Unreadable, match=r"^input http://127\.0\.0\.1:1/x: "):
        await asyncio.to_thread(
            lambda: list(Reader([Piece("http://127.0.0.1:1/x", 0, 9)], {}).lines())
        )
    fsspec.get_filesystem_class("http").clear_instance_cache()
