"""What the kernel is told of connections whose other side may vanish."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from aiohttp import web

from mesos_py.http import silence
from mesos_py.http.server import HttpServer, Limits, Routes, empty
from tests.kit.raw_http import connected

TCP = socket.IPPROTO_TCP


def told(made: Any) -> dict[str, int]:
    return {
        "alive": made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE),
        "idle": made.getsockopt(TCP, socket.TCP_KEEPIDLE),
        "again": made.getsockopt(TCP, socket.TCP_KEEPINTVL),
        "silence": made.getsockopt(TCP, socket.TCP_USER_TIMEOUT),
    }


@pytest.mark.parametrize(
    ("silence_s", "pause_s", "silence_ms"),
    [(300, 75, 300_000), (0.5, 1, 500), (86_400, 21_600, 86_400_000), (200_000, 32_767, 2 * 10**8)],
)
def test_the_kernel_gives_up_after_as_long(silence_s, pause_s, silence_ms):
    with socket.socket() as made:
        silence.bound(made, silence_s)
        expected = {"alive": 1, "idle": pause_s, "again": pause_s, "silence": silence_ms}
        assert told(made) == expected


@pytest.mark.parametrize("silence_s", [0.0, 300.0])
async def test_connections_to_the_server_are_bounded_if_that_is_wanted(silence_s):
    found: list[int] = []

    async def look(request: web.Request) -> web.Response:
        assert server._runner is not None
        assert server._runner.server is not None
        for each in server._runner.server.connections:
            assert each.transport is not None
            found.append(told(each.transport.get_extra_info("socket"))["silence"])
        return empty(202)

    routes = Routes()
    routes.add("/", look)
    server = HttpServer(routes, Limits(silence_s=silence_s))
    await server.start("127.0.0.1", 0)
    try:
        # One whose client is gone in the middle of its first head is one of them.
        async with connected(server.port) as half, connected(server.port) as client:
            await half.send(b"GET / HTTP/1.1\r\n")
            for _ in range(2):
                head, _ = await client.ask("GET", "/")
                assert head.status == 202
    finally:
        await server.close()
    assert found == [int(silence_s * 1000)] * 4
