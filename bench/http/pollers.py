"""Dashboards that poll a page: a process of its own, so that what it does with the page is not
taken from those who are measured.

Lines on standard input: `on`, `off`.  At the end of it one line of JSON says what came.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import click

from bench.http.wire import head
from bench.stats import percentile
from mesos_py.address import Address, parse_address

PAGE: Final = "/state"
_END: Final = b"\r\n\r\n"
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *([0-9]+)", re.IGNORECASE)


@dataclass
class Seen:
    """What all of them have seen."""

    took_ms: list[float] = field(default_factory=list)
    received_bytes: int = 0
    refused: int = 0


class Poller(asyncio.Protocol):
    """Asks for the page at a rate; later if the last answer has not come."""

    def __init__(self, request: bytes, every_s: float, seen: Seen, on: Callable[[], bool]) -> None:
        self._request = request
        self._every_s = every_s
        self._seen = seen
        self._on = on
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._asked_s: float | None = None
        self._due_s = 0.0
        self._head = b""
        # Of the body that is being read; None: its head is.
        self._left: int | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def begin(self, after_s: float) -> None:
        self._due_s = self._loop.time() + after_s
        self._loop.call_at(self._due_s, self._ask)

    def _ask(self) -> None:
        if not self._on() or self._transport is None:
            return
        self._asked_s = time.monotonic()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._seen.received_bytes += len(data)
        if self._left is None:
            begun, found, data = (self._head + data).partition(_END)
            if not found:
                self._head = begun
                return
            self._head = b""
            self._seen.refused += not begun.startswith(b"HTTP/1.1 200")
            length = _LENGTH.search(begun + b"\r\n")
            self._left = int(length[1]) if length is not None else 0
        self._left -= len(data)
        if self._left <= 0:
            self._left = None
            self._answered()

    def _answered(self) -> None:
        if self._asked_s is not None:
            self._seen.took_ms.append((time.monotonic() - self._asked_s) * 1e3)
            self._asked_s = None
        self._due_s = max(self._loop.time(), self._due_s + self._every_s)
        self._loop.call_at(self._due_s, self._ask)


async def poll(to: Address, clients: int, every_s: float, packed: bool) -> Seen:
    """As standard input says, until that ends."""
    loop = asyncio.get_running_loop()
    seen, on = Seen(), False
    accept = ("Accept-Encoding: gzip",) if packed else ()
    request = head("GET", to, PAGE, *accept) + b"\r\n"
    pollers = []
    for _ in range(clients):
        _, poller = await loop.create_connection(
            lambda: Poller(request, every_s, seen, lambda: on), to.host, to.port
        )
        pollers.append(poller)
    lines = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := (await lines.readline()).strip():
        on = line == b"on"
        for number, poller in enumerate(pollers if on else []):
            poller.begin(every_s * number / clients)
    return seen


@click.command()
@click.option("--http", required=True, help="The master's.")
@click.option("--clients", type=int, required=True)
@click.option("--every-s", type=float, required=True)
@click.option("--packed/--plain", default=True, help="Whether they take compressed pages.")
def main(http: str, clients: int, every_s: float, packed: bool) -> None:
    seen = asyncio.run(poll(parse_address(http, "--http"), clients, every_s, packed))
    took = seen.took_ms or [0.0]
    told = {
        "answers": len(seen.took_ms),
        "refused": seen.refused,
        "bytes": seen.received_bytes,
        "p50_ms": percentile(took, 50),
        "p99_ms": percentile(took, 99),
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main()
