"""The server, by what it puts on the wire."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from mesos_py.errors import InvalidValue, NotFound, PortInUse
from mesos_py.http.answers import HttpRefusal
from mesos_py.http.server import HttpServer, Limits, Routes, empty, text
from tests.kit.raw_http import PATIENCE_S, connected, request


@contextlib.asynccontextmanager
async def serving(
    limits: Limits | None = None, begun: asyncio.Event | None = None
) -> AsyncIterator[HttpServer]:
    routes = Routes("master")
    server = HttpServer(routes, limits)

    async def echo(request: web.Request) -> web.Response:
        if begun is not None:
            begun.set()
        return text(200, str(len(await server.body(request))))

    async def fail(request: web.Request) -> web.Response:
        match request.query["how"]:
            case "wrong":
                raise InvalidValue("speed", 7, "is too fast")
            case "unknown":
                raise NotFound("task", "t")
            case "realm":
                raise HttpRefusal(401, "who?", {"WWW-Authenticate": "Basic"})
        raise RuntimeError("secret")

    async def nothing(_: web.Request) -> web.Response:
        return empty(202)

    routes.add("/echo", echo)
    routes.add("/fail", fail)
    routes.add("/nothing", nothing, exact=True)
    await server.start("127.0.0.1", 0)
    try:
        yield server
    finally:
        await server.close()


async def test_an_answer_without_body_says_no_more_than_that() -> None:
    async with serving() as server, connected(server.port) as client:
        head, body = await client.ask("POST", "/nothing", body=b"x")
    assert (head.status, body) == (202, b"")
    assert head.headers["content-length"] == "0"
    assert not {"content-type", "server"} & set(head.headers)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/echo", 200),
        ("/echo/", 200),
        ("/echo/more/of/it", 200),
        ("/master/echo", 200),
        ("//echo", 200),
        ("/echo?x=1", 200),
        ("/echoes", 404),
        ("/agent/echo", 404),
        ("/master/master/echo", 404),
        ("/", 404),
        ("/master", 404),
        ("/nothing", 202),
        ("/nothing/more", 404),
    ],
)
async def test_paths(path: str, status: int) -> None:
    async with serving() as server, connected(server.port) as client:
        head, _ = await client.ask("POST", path, body=b"")
    assert head.status == status


@pytest.mark.parametrize(
    ("how", "status", "says"),
    [
        ("wrong", 400, b"speed: 7: is too fast\n"),
        ("unknown", 404, b"task 't': unknown\n"),
        ("realm", 401, b"who?\n"),
        ("bug", 503, b"the request could not be carried out; see the log\n"),
    ],
)
async def test_errors_are_statuses_and_text(how: str, status: int, says: bytes) -> None:
    async with serving() as server, connected(server.port) as client:
        head, body = await client.ask("GET", f"/fail?how={how}")
        assert (head.status, body) == (status, says)
        assert head.headers["content-type"].startswith("text/plain")
        # One bad request is not the end of the connection.
        assert (await client.ask("POST", "/echo", body=b"abc"))[1] == b"3"
        assert server.answered == {status: 1, 200: 1}
        assert server.failures == (how == "bug")


async def test_bodies_that_are_chunked_and_large() -> None:
    async with serving() as server, connected(server.port) as client:
        await client.send(request("POST", "/echo", {"Transfer-Encoding": "chunked"}))
        for _ in range(10):
            await client.send(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
        await client.send(b"0\r\n\r\n")
        assert await client.body(await client.head()) == str(10 * 0x10000).encode()


async def test_a_client_that_waits_to_be_told_to_go_on() -> None:
    async with serving() as server, connected(server.port) as client:
        waits = {"Expect": "100-Continue", "Content-Length": "1"}
        await client.send(request("POST", "/echo", waits))
        assert (await client.head()).status == 100
        await client.send(b"x")
        head = await client.head()
        assert (head.status, await client.body(head)) == (200, b"1")
        head, body = await client.ask("POST", "/echo", {"Expect": "wonders"}, b"x")
        assert (head.status, body) == (417, b"Expect: 'wonders': must be 100-continue\n")
        # Older clients are told nothing in between, and nothing is asked of them.
        old = request("POST", "/echo", {"Expect": "wonders"}, b"x").replace(b"/1.1", b"/1.0")
        await client.send(old)
        head = await client.head()
        assert (head.status, await client.body(head)) == (200, b"1")


async def test_a_body_over_the_bound() -> None:
    async with serving(Limits(body_bytes=10)) as server, connected(server.port) as client:
        head, body = await client.ask("POST", "/echo", body=b"x" * 11)
        assert (head.status, body) == (413, b"body: allowed are 10 bytes\n")
    async with serving(Limits(body_bytes=10)) as server, connected(server.port) as client:
        assert (await client.ask("POST", "/echo", body=b"x" * 10))[1] == b"10"


async def test_a_body_that_does_not_come() -> None:
    async with serving(Limits(body_s=0.01)) as server, connected(server.port) as client:
        await client.send(b"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab")
        head = await client.head()
        assert head.status == 408
        assert await client.body(head) == b"body: did not end within 0.01 s\n"


@pytest.mark.parametrize(
    "data",
    [
        b"\r\n\0\1\2\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /echo HTTP/1.1\r\nHost: h\r\nX: " + b"y" * 20_000 + b"\r\n\r\n",
        b"GET /" + b"y" * 20_000 + b" HTTP/1.1\r\nHost: h\r\n\r\n",
    ],
)
async def test_what_is_no_http_is_a_400(data: bytes) -> None:
    async with serving() as server:
        async with connected(server.port) as client:
            await client.send(data)
            assert (await client.head()).status == 400
        async with connected(server.port) as client:
            assert (await client.ask("POST", "/echo", body=b""))[0].status == 200


async def test_what_cannot_be_read_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    packed = {"Content-Encoding": "gzip"}
    async with serving() as server:
        for data, status in (
            (request("GET", "/nothing", {"a b": "c"}), 400),
            (request("GET", "/nothing") + request("BREW", "/nothing"), 400),
            (request("POST", "/nothing", packed, b"no gzip at all"), 202),
            (request("POST", "/echo", packed, b"no gzip at all"), 400),
        ):
            async with connected(server.port) as client:
                await client.send(data)
                assert (await client.head()).status == status
                async with asyncio.timeout(PATIENCE_S):
                    await client.reader.read()
        assert server.unreadable >= 3
        assert server.failures == 0
    assert not [each for each in caplog.records if each.name.startswith("aiohttp") or each.exc_info]


async def test_when_there_is_no_room_who_is_idle_for_longest_goes() -> None:
    limits = Limits(connections=2)
    async with (
        serving(limits) as server,
        connected(server.port) as first,
        connected(server.port) as second,
    ):
        await first.ask("POST", "/echo", body=b"")
        await second.ask("POST", "/echo", body=b"")
        await first.ask("POST", "/echo", body=b"")
        async with connected(server.port) as third:
            assert (await third.ask("POST", "/echo", body=b""))[0].status == 200
            assert await second.ended()
            assert (await first.ask("POST", "/echo", body=b""))[0].status == 200
        assert server.crowded_out == 1


async def test_who_has_sent_nothing_is_idle_too() -> None:
    async with serving(Limits(connections=1)) as server, connected(server.port) as silent:
        async with connected(server.port) as client:
            assert (await client.ask("POST", "/echo", body=b""))[0].status == 200
        assert await silent.ended()


async def test_when_all_are_busy_a_newcomer_is_told() -> None:
    begun = asyncio.Event()
    async with serving(Limits(connections=1), begun) as server, connected(server.port) as busy:
        await busy.send(b"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab")
        async with asyncio.timeout(PATIENCE_S):
            await begun.wait()
        async with connected(server.port) as late:
            head = await late.head()
            assert (head.status, await late.body(head)) == (503, b"too many connections\n")
            assert await late.ended()
        await busy.send(b"cde")
        assert (await busy.head()).status == 200


async def test_a_port_that_is_taken_names_the_flag() -> None:
    async with serving() as server:
        with pytest.raises(PortInUse, match=f"http-port: 127.0.0.1:{server.port} cannot be"):
            await HttpServer(Routes()).start("127.0.0.1", server.port)


async def test_closing_ends_idle_connections_and_may_be_repeated() -> None:
    async with serving() as server, connected(server.port) as client:
        await client.ask("POST", "/echo", body=b"")
        await server.close()
        await server.close()
        assert await client.ended()
