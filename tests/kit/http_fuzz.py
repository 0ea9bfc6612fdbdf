"""Requests that are wrong in every way that a request can be, for each endpoint of a daemon.

Which there are is read from the daemon (`Routes.paths`): for each of them a test has an
`Endpoint`, and fails for one that it has not.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, Self
from urllib.parse import quote

from mesos_py.http.media import Media
from mesos_py.http.recordio import framed
from tests.kit.fuzz import WORDS
from tests.kit.raw_http import Connection, Head, opened, request

Bodies = Callable[[random.Random], bytes]

METHODS: Final = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW")
JSON: Final = Media.JSON.value
FORM: Final = "application/x-www-form-urlencoded"
TYPES: Final = (
    *(JSON, Media.PROTOBUF.value, "application/recordio", FORM, "text/plain", ""),
    *(
        "application/json; charset=utf-8",
        "APPLICATION/JSON",
        "multipart/form-data; boundary=x",
        "x",
    ),
)
# Headers that are sometimes there, and what they say then.
HEADERS: Final = {
    "Accept": (*TYPES, "*/*", "application/*;q=0", "text/html, */*;q=0.1"),
    "Message-Accept": TYPES,
    "Message-Content-Type": TYPES,
    "Mesos-Stream-Id": ("", "x", "130ae4e3-6b13-4ef4-baa9-9f2e85c3e9af"),
    "Authorization": ("Basic", "Basic eDp5", "Basic ?", "Bearer x"),
    "Accept-Encoding": ("gzip", "gzip;q=0", "br, *"),
    "If-None-Match": ("*", '"x"', 'W/"x", y'),
    "If-Modified-Since": ("Thu, 01 Jan 1970 00:00:00 GMT", "x"),
    "Range": ("bytes=0-1", "bytes=-1", "bytes=9-1", "x=1"),
    "Content-Encoding": ("gzip", "identity", "x"),
    "Expect": ("100-continue", "x"),
}
# What endpoints read of their query, and something that none does.
NAMES: Final = (
    *("path", "offset", "length", "jsonp", "timeout", "container_id", "level", "duration"),
    *("framework_id", "task_id", "limit", "order", "format", "slave_id", "x"),
)
VALUES: Final = (
    *WORDS,
    *("-1", "1e9", "9" * 30, "NaN", "%", "/" * 300, "5secs", "-5secs", "f(", "asc", "json"),
)
# All that is said with a status below 500, and 501 where docs/mesos-compatibility.md has it.
ALLOWED: Final = frozenset(
    {200, 202, 206, 304, 307, 400, 401, 403, 404, 405, 406, 409, 413, 415, 416, 417, 501}
)
_DOCS: Final = Path(__file__).parents[2] / "docs/mesos-compatibility.md"


@dataclass(frozen=True)
class Endpoint:
    """What is near to something that the endpoint takes."""

    methods: tuple[str, ...] = ("GET",)
    bodies: Bodies = field(default=lambda _: b"")
    kind: str = JSON
    # Values that mean something here.
    values: tuple[str, ...] = ()
    # How often its methods come for each time that another does.
    often: int = 4


class Asked(NamedTuple):
    """One request."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes | None

    def data(self) -> bytes:
        return request(self.method, self.target, self.headers, self.body)


def damaged(dice: random.Random, body: bytes) -> bytes:
    """With a few bytes altered, left out or put in, or cut off."""
    found = bytearray(body)
    for _ in range(dice.randint(1, 3)):
        at = dice.randrange(len(found) + 1)
        found[at : at + dice.randint(0, 2)] = dice.randbytes(dice.randint(0, 3))
    return bytes(found[: dice.randrange(len(found) + 1)] if dice.random() < 0.2 else found)


def requests(
    dice: random.Random, path: str, endpoint: Endpoint, rounds: int, pool: Sequence[Endpoint]
) -> Iterator[Asked]:
    """For the path: each method so often.  `pool`: all endpoints, whose bodies come too."""
    for method in METHODS:
        for _ in range(rounds * endpoint.often if method in endpoint.methods else rounds):
            kind, body = _body(dice, method, endpoint, pool)
            headers = {"Content-Type": kind} if kind is not None else {}
            for name in dice.sample(sorted(HEADERS), dice.choice((0, 0, 0, 1, 2))):
                headers[name] = dice.choice(HEADERS[name])
            yield Asked(method, _target(dice, path, endpoint), headers, body)


def _body(
    dice: random.Random, method: str, endpoint: Endpoint, pool: Sequence[Endpoint]
) -> tuple[str | None, bytes | None]:
    """A Content-Type, None: not said; and a body, None: there is none."""
    if method in ("GET", "HEAD") and dice.random() < 0.7:
        return None, None
    source = endpoint if dice.random() < 0.8 else dice.choice(pool)
    kind = source.kind if dice.random() < 0.8 else dice.choice((*TYPES, None))
    body = source.bodies(dice)
    if kind == Media.PROTOBUF.value and dice.random() < 0.5:
        body = dice.randbytes(dice.randint(0, 40))
    if kind == "application/recordio" and dice.random() < 0.5:
        body = framed(body or b"x")
    return kind, damaged(dice, body) if dice.random() < 0.5 else body


def _target(dice: random.Random, path: str, endpoint: Endpoint) -> str:
    below = dice.choice(("", "", "", "", "/", "/x", "//", "/%00", "/..", "/%2e%2e/x", ";x"))
    values = (*VALUES, *endpoint.values * 4)
    pairs = [
        f"{dice.choice(NAMES)}={quote(dice.choice(values), errors='replace')}"
        for _ in range(dice.choice((0, 1, 1, 2, 3)))
    ]
    broken = dice.choice(("", "", "", "", "&", "%", "&=&", "#x", "&path=%ff", "?"))
    return f"{path}{below}?{'&'.join(pairs)}{broken}" if pairs or broken else f"{path}{below}"


class Client:
    """Asks over a connection for as long as it is kept, then over another."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._held: Connection | None = None

    async def ask(self, asked: Asked) -> tuple[Head, bytes]:
        """The answer; of a stream only its head."""
        if self._held is None:
            self._held = await opened(self._port)
        head = await _head(self._held, asked)
        chunked = head.headers.get("transfer-encoding") == "chunked"
        empty = asked.method == "HEAD" or head.status == 304
        body = b"" if chunked or empty else await self._held.body(head)
        # A body that is not what its head says may end the connection, now or later.
        if chunked or asked.body is not None or head.headers.get("connection") == "close":
            await self.close()
        return head, body

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """The connection, if there is one."""
        if self._held is not None:
            held, self._held = self._held, None
            await held.close()


async def _head(connection: Connection, asked: Asked) -> Head:
    """That of the answer, after a "go on" that may come before."""
    await connection.send(asked.data())
    try:
        head = await connection.head()
        return await connection.head() if head.status == 100 else head
    except EOFError as error:
        raise AssertionError(f"no answer: {asked}") from error


def check(asked: Asked, head: Head, body: bytes) -> None:
    """The answer is one that a client can do something with."""
    assert head.status in ALLOWED, (asked, head, body)
    if head.status < 400 or asked.method == "HEAD":
        return
    # What it is about, and what is wrong with that.
    text = body.decode()
    if head.status == 400 and "server" in head.headers:
        # No request at all: it is the parser's word.
        assert "Invalid" in text, (asked, head, body)
        return
    if head.headers["content-type"].startswith(JSON):
        # Of our own files: for programs.
        text = f"{json.loads(text)['message']}\n"
    assert text.endswith("\n"), (asked, head, body)
    assert len(text) > 8, (asked, head, body)
    assert "Traceback" not in text, (asked, head, body)
    if head.status == 405:
        assert head.headers["allow"], (asked, head, body)
    if head.status == 501:
        _documented(asked, text)


def _documented(asked: Asked, text: str) -> None:
    """Whether the page says that this is not there: a path, or a type of calls."""
    what = text.split(": ")[1].strip("'")
    name = f"`/{what.split('/')[1]}`" if what.startswith("/") else what
    if what.endswith("_RESOURCE_PROVIDER_CONFIG"):
        name = f"{what.partition('_')[0]}_"
    assert name in _DOCS.read_text(), (asked, text)


__all__ = [
    "FORM",
    "JSON",
    "METHODS",
    "Asked",
    "Bodies",
    "Client",
    "Endpoint",
    "check",
    "damaged",
    "requests",
]
