"""A conversation over HTTP as Mesos has it: a stream of records that answers the opening
call, and every other call in a request of its own, one after the other.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar
from urllib.parse import urlsplit

import aiohttp
from google.protobuf.message import DecodeError, Message

from mesos_py.address import Address
from mesos_py.conversation import Conversation, closed_by
from mesos_py.errors import (
    InternalError,
    InvalidValue,
    MesosPyError,
    NotLeader,
    Refused,
    TooLarge,
    Unavailable,
    shortened,
)
from mesos_py.http.media import Media
from mesos_py.http.recordio import Reader

Call = TypeVar("Call", bound=Message)
Event = TypeVar("Event", bound=Message)

STREAM_ID: Final = "Mesos-Stream-Id"
# A request that fails often fails since the stream has: within this time that is known.
MOMENT_S: Final = 0.5
# For an answer to a call while nothing is known of the peer's heartbeat.
CALL_S: Final = 60.0
# A larger body is given to aiohttp in pieces: it warns of those that it gets at once.
_LARGE: Final = 512 * 1024
_MAX_REASON: Final = 1_000
# Masters that have just started do not know all their paths yet; who is too slow, or comes too
# often, may come again.
_NOT_YET: Final = frozenset({404, 408, 429})


@dataclass(frozen=True)
class Api(Generic[Call, Event]):
    """What is spoken, and where."""

    url: str
    event: type[Event]
    # A batch of events for `receive`.
    events: Callable[[list[Event]], Any]
    # What `receive` is to be told of a call that is refused with these words.
    refused: Callable[[Call, str], Event]
    # Whether the peer ends the stream because of this call.
    ends: Callable[[Call], bool]
    # Such as Authorization.
    headers: Mapping[str, str] = field(default_factory=dict)
    # Whether the answer to a call may take as long as the connection is there.
    patient: bool = False


class HttpConversation(Conversation[Any, Any], Generic[Call, Event]):
    """See Conversation; `opening` and what `take` gives are batches with `calls`."""

    def __init__(
        self,
        http: aiohttp.ClientSession,
        api: Api[Call, Event],
        peer: str,
        *,
        opening: Any,
        take: Callable[[], Any],
        receive: Callable[[Any], Awaitable[None]],
        answer_s: float,
    ) -> None:
        super().__init__(peer, opening=opening, take=take, receive=receive, answer_s=answer_s)
        self._http = http
        self._api = api
        self._headers = {
            "Content-Type": Media.PROTOBUF.value,
            "Accept": Media.PROTOBUF.value,
            # A stream that is packed comes late.
            "Accept-Encoding": "identity",
            **api.headers,
        }
        self._holding: asyncio.Task[MesosPyError | None] | None = None
        self._late: asyncio.TimerHandle | None = None

    async def run(self) -> MesosPyError | None:
        if self._over:
            return self._cut
        self._begin_watch()
        holding = self._holding = asyncio.create_task(self._hold())
        try:
            ended = self._outcome(await holding)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            ended = self._cut
        finally:
            self._end_watch()
            if self._late is not None:
                self._late.cancel()
            holding.cancel()
            await asyncio.gather(holding, return_exceptions=True)
        return ended

    def _outcome(self, ended: MesosPyError | None) -> MesosPyError | None:
        return self._cut if self._over else ended

    def _break(self) -> None:
        if self._holding is not None:
            self._holding.cancel()

    # ---- The stream --------------------------------------------------------------

    async def _hold(self) -> MesosPyError | None:
        """Why the stream has ended."""
        writer: asyncio.Task[None] | None = None
        try:
            async with self._request(self._opening.calls[0], {}, None) as answer:
                if answer.status != 200:
                    failure = await self._failure(answer)
                    if answer.status in _NOT_YET:
                        return Unavailable(failure.message, address=self._peer)
                    return failure
                headers = dict(self._headers)
                if STREAM_ID in answer.headers:
                    headers[STREAM_ID] = answer.headers[STREAM_ID]
                writer = asyncio.create_task(self._write(headers))
                await self._read(answer)
        except (aiohttp.ClientError, OSError) as error:
            return _unreachable(self._peer, error) if writer is None else closed_by(self._peer)
        except (InvalidValue, TooLarge, DecodeError) as error:
            return Unavailable(f"{self._peer} sent what cannot be read: {error}")
        finally:
            if writer is not None:
                writer.cancel()
                await asyncio.gather(writer, return_exceptions=True)
        return None if self._finishing else closed_by(self._peer)

    async def _read(self, answer: aiohttp.ClientResponse) -> None:
        reader, api = Reader(), self._api
        parse = api.event.FromString
        async for data in answer.content.iter_any():
            events = [parse(record) for record in reader.feed(data)]
            self._heard = self._loop.time()
            if events:
                await self._hear(api.events(events))

    # ---- Calls -------------------------------------------------------------------

    async def _write(self, headers: Mapping[str, str]) -> None:
        last: Call | None = None
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                while (batch := self._take()) is not None:
                    for last in batch.calls:
                        await self._call(last, headers)
                if self._finishing:
                    # There is no half of a connection that could be closed.
                    if last is None or not self._api.ends(last):
                        self.cut(None)
                    return
        except MesosPyError as error:
            # If it is the stream that has ended, its reader knows better why.
            self._late = self._loop.call_later(MOMENT_S, self.cut, error)
        except Exception as error:
            broken = InternalError(f"cannot write to {self._peer}: {error!r}")
            broken.__cause__ = error
            self.cut(broken)

    async def _call(self, call: Call, headers: Mapping[str, str]) -> None:
        """Have a call carried out.  Raises if nothing more can be said on this stream."""
        within_s = self._silence_s
        if within_s is None and not self._api.patient:
            within_s = CALL_S
        try:
            async with self._request(call, headers, within_s) as answer:
                if answer.status < 300:
                    await answer.read()
                    return
                failure = await self._failure(answer)
        except (aiohttp.ClientError, OSError) as error:
            if within_s is not None and isinstance(error, TimeoutError):
                late = f"no answer to a call from {self._peer} for {within_s:g} s"
                raise Unavailable(late) from None
            raise _unreachable(self._peer, error) from error
        if answer.status in _NOT_YET:
            raise Unavailable(failure.message, address=self._peer)
        if answer.status in (401, 403) or not isinstance(failure, Refused):
            # 403: by the peer's book this stream has ended.
            raise Unavailable(failure.message) if isinstance(failure, Refused) else failure
        # A peer that does not know of this stream (any more) answers as it answers a bad
        # call.  Then the stream ends now, and what becomes of the call is known elsewhere.
        await asyncio.sleep(MOMENT_S)
        if not self._over:
            await self._receive(self._api.events([self._api.refused(call, failure.message)]))

    def _request(self, call: Message, headers: Mapping[str, str], within_s: float | None) -> Any:
        body = Media.PROTOBUF.dumps(call)
        return self._http.post(
            self._api.url,
            data=body if len(body) <= _LARGE else io.BytesIO(body),
            headers={**self._headers, **headers},
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=within_s),
        )

    async def _failure(self, answer: aiohttp.ClientResponse) -> MesosPyError:
        """What an answer says that is no success."""
        status = answer.status
        if status in (301, 302, 307, 308):
            return NotLeader(_place(answer.headers.get("Location", "")))
        said = await answer.content.read(_MAX_REASON)
        reason = shortened(said.decode(errors="replace").strip() or answer.reason or "no reason")
        text = f"{self._peer} answers {status}: {reason}"
        # 501 is no fault of the peer's: it does not have what is asked for.
        if 400 <= status < 500 or status == 501:
            return Refused(text, status=status, reason=reason)
        return Unavailable(text, address=self._peer)


class Connections:
    """To one peer."""

    def __init__(self, agent: str) -> None:
        """`agent`: how this client calls itself.  On the loop that uses it."""
        # Whether one was ever made.
        self.any = False
        trace = aiohttp.TraceConfig()
        trace.on_connection_create_end.append(self._connected)
        self.http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": agent},
            trace_configs=[trace],
        )

    async def _connected(self, *_: object) -> None:
        self.any = True

    async def close(self) -> None:
        await self.http.close()


def _unreachable(peer: str, error: Exception) -> Unavailable:
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    reason = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
    return Unavailable(f"cannot reach {peer}: {reason}", address=peer)


def _place(location: str) -> str | None:
    """`host:port` of a Location, with or without a scheme; None if there is none in it."""
    try:
        parts = urlsplit(location)
        if not parts.hostname:
            return None
        return str(Address(parts.hostname, parts.port or 80))
    except ValueError:
        return None


__all__ = ["STREAM_ID", "Api", "Connections", "HttpConversation"]
