"""One ZooKeeper session on an event loop: the one module that speaks to kazoo.

kazoo works in threads of its own and calls back in them.  Nothing is done there but to
hand what came to the event loop; requests are made on the loop only, and none of them
blocks.  kazoo goes on with a new session by itself when one has expired; this class does
not: a `Session` that is over stays so.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import functools
import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
    BadVersionError,
    ConnectionClosedError,
    InvalidACLError,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
    RuntimeInconsistency,
    SessionExpiredError,
)
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.connection import ConnectionHandler
from kazoo.protocol.serialization import Auth, Connect
from kazoo.protocol.states import KazooState, KeeperState
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from mesos_py import logs
from mesos_py.election.zookeeper.steps import Create, Delete, Put, Step
from mesos_py.election.zookeeper.url import ZooKeeperUrl
from mesos_py.errors import AlreadyExists, Conflict, MesosPyError, NotFound, Refused, Unavailable

log = logs.get("zookeeper")

# How long a session's end may take before its client is left to itself.
CLOSE_S: Final = 3.0
_FIRST_RECONNECT_S: Final = 0.1
_MAX_RECONNECT_S: Final = 1.0
_REPEAT_LOG_S: Final = 60.0
# At least so long a server may take to answer a new connection.
_GREETING_S: Final = 1.0
# What kazoo warns of though it is told by `Link`, or follows from closing.
_NOISE: Final = (
    "Transition to CONNECTING",
    "Session has expired",
    "Failed connecting to Zookeeper within the connection retry policy.",
)


class SessionLost(Unavailable):
    """The session is over: expired, closed or refused.  A new one may be opened."""

    code = "zookeeper-session-lost"


class Link(enum.Enum):
    """Where a session stands.  OVER is final."""

    CONNECTING = "connecting"
    CONNECTED = "connected"
    # The connection is lost; the session lives on for a while, and so may we in it.
    SUSPENDED = "suspended"
    OVER = "over"


class _Seen(NamedTuple):
    """What kazoo's thread saw of a change."""

    state: str
    client_state: str
    session_id: int
    timeout_s: float
    greeted_s: float


class Session:
    """All methods are for the loop's thread.  `notify` is called after changes of `link`.

    Requests raise SessionLost when the session is over, NotFound, AlreadyExists and
    Refused (access denied) as the server says, and Unavailable when the answer was lost
    or did not come within the time-out: such a request may have been done all the same.
    """

    def __init__(self, url: ZooKeeperUrl, timeout_s: float, notify: Callable[[], None]) -> None:
        self._url = url
        self._notify = notify
        self._loop = asyncio.get_running_loop()
        self._asked: set[asyncio.Future[Any]] = set()
        self._opened = False
        self._client = _Client(url, timeout_s)
        # Nodes that are made with credentials are for their owner to change.
        owned = CREATOR_ALL_ACL + READ_ACL_UNSAFE
        self._acl = owned if url.credentials is not None else OPEN_ACL_UNSAFE
        self.link = Link.CONNECTING
        # Why the session is over: SessionLost, or Refused where another one would fare alike.
        self.over: MesosPyError | None = None
        self.session_id = 0
        # What is asked for, and from the first connection on what the servers grant.
        self.timeout_s = timeout_s
        # When the greeting of the newest connection was sent, on the monotonic clock.
        self.greeted_s = 0.0

    def open(self) -> None:
        """Start to connect; `link` tells when that has succeeded."""
        self._client.add_listener(self._state_changed)
        self._opened = True
        self._client.start_async()

    async def close(self, within_s: float = CLOSE_S) -> None:
        """End the session, which removes its ephemeral nodes if a server can be told.

        Returns in `within_s` at the latest; what is not done by then goes on in a
        thread that holds nobody up.  Idempotent.
        """
        self._end("it was closed here")
        if not self._opened:
            return
        self._opened = False
        done = asyncio.Event()
        closing = threading.Thread(target=self._stop_client, args=(done,), daemon=True)
        closing.start()
        try:
            async with asyncio.timeout(within_s):
                await done.wait()
        except TimeoutError:
            log.warning("no zookeeper server takes the end of a session", servers=self._url.servers)

    def _stop_client(self, done: asyncio.Event) -> None:
        try:
            self._client.stop()
            self._client.close()
        except Exception as error:
            log.warning("a zookeeper client did not end well", error=type(error).__name__)
        finally:
            self._post(done.set)

    # ---- Requests --------------------------------------------------------------------

    async def make_path(self, path: str) -> None:
        """Create the node and those above it, as far as they are not there."""
        made = ""
        for name in path.strip("/").split("/"):
            made = f"{made}/{name}"
            if await self.owner(made) is None:
                with contextlib.suppress(AlreadyExists):
                    await self._make(made)

    async def _make(self, path: str) -> None:
        await self._ask(path, lambda: self._client.create_async(path, b"", self._acl))

    async def create_candidate(self, prefix: str, data: bytes) -> str:
        """Create an ephemeral node with a number after `prefix`; its path."""
        created = await self._ask(
            prefix,
            lambda: self._client.create_async(
                prefix, data, self._acl, ephemeral=True, sequence=True
            ),
        )
        return str(created)

    async def children(self, path: str, changed: Callable[[], None]) -> list[str]:
        """The names below `path`; `changed` is called once, on the loop, when they change.

        It is also called when the connection is lost: the watch is lost with it.
        """
        watch = self._watch(changed)
        return list(await self._ask(path, lambda: self._client.get_children_async(path, watch)))

    async def read(self, path: str) -> bytes:
        data, _ = await self._ask(path, lambda: self._client.get_async(path))
        return bytes(data)

    async def read_versioned(self, path: str) -> tuple[bytes, int]:
        """What the node holds, and its version, which grows by one with each Put."""
        data, stat = await self._ask(path, lambda: self._client.get_async(path))
        return bytes(data), int(stat.version)

    async def commit(self, steps: Sequence[Step]) -> None:
        """All steps or none.  Raises Conflict if one of them does not fit what is there."""

        def transact() -> Any:
            transaction = self._client.transaction()
            for step in steps:
                match step:
                    case Create(path, data):
                        transaction.create(path, data, self._acl)
                    case Put(path, data, version):
                        transaction.set_data(path, data, -1 if version is None else version)
                    case Delete(path):
                        transaction.delete(path)
            return transaction.commit_async()

        answers = await self._ask(steps[0].path, transact)
        for step, answer in zip(steps, answers, strict=True):
            # Of the others it is only said that they were not done.
            if isinstance(answer, (BadVersionError, NoNodeError, NodeExistsError, NotEmptyError)):
                raise Conflict(
                    f"zookeeper node {step.path}: {type(answer).__name__}", path=step.path
                )
            if isinstance(answer, (RolledBackError, RuntimeInconsistency)):
                continue
            if isinstance(answer, Exception):
                raise _converted(answer, step.path)

    async def owner(self, path: str, changed: Callable[[], None] | None = None) -> int | None:
        """The session that an existing node is bound to (0: none); None: no such node.

        `changed` as with `children`: the node comes, goes or gets other content.
        """
        watch = None if changed is None else self._watch(changed)
        stat = await self._ask(path, lambda: self._client.exists_async(path, watch))
        return None if stat is None else int(stat.ephemeralOwner)

    async def catch_up(self, path: str) -> None:
        """Let the server that answers us see all that was agreed on before."""
        await self._ask(path, lambda: self._client.sync_async(path))

    async def probe(self, path: str, changed: Callable[[], None]) -> int | None:
        """As `owner`, but only after a majority of servers has agreed that the node is there.

        A server that was cut off from the others still answers reads, not this.
        """

        def check() -> Any:
            transaction = self._client.transaction()
            transaction.check(path, -1)
            return transaction.commit_async()

        (answer,) = await self._ask(path, check)
        if isinstance(answer, NoNodeError):
            return None
        if isinstance(answer, Exception):
            raise _converted(answer, path)
        return await self.owner(path, changed)

    async def _ask(self, path: str, request: Callable[[], Any]) -> Any:
        if self.over is not None:
            raise self.over
        future: asyncio.Future[Any] = self._loop.create_future()
        self._asked.add(future)
        try:
            async with asyncio.timeout(self.timeout_s):
                request().rawlink(functools.partial(self._answered, future))
                return await future
        except TimeoutError:
            raise Unavailable(f"no answer from {self._url.servers} about {path}") from None
        except (KazooException, RuntimeError) as error:
            raise _converted(error, path) from error
        finally:
            self._asked.discard(future)

    # ---- In kazoo's threads ----------------------------------------------------------

    def _post(self, callback: Callable[..., object], *args: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has been closed
            self._loop.call_soon_threadsafe(callback, *args)

    def _answered(self, future: asyncio.Future[Any], result: Any) -> None:
        self._post(_settle, future, result.exception, result.value)

    def _state_changed(self, state: str) -> None:
        client = self._client
        session_id = client.client_id[0] if client.client_id is not None else 0
        seen = _Seen(state, client.client_state, session_id, client.granted_s, client.greeted_s)
        self._post(self._take, seen)

    def _watch(self, changed: Callable[[], None]) -> Callable[[object], None]:
        return _Watch(self._post, changed)

    # ---- On the loop -----------------------------------------------------------------

    def _take(self, seen: _Seen) -> None:
        if self.link is Link.OVER:
            return
        if seen.state == KazooState.CONNECTED:
            self._connected(seen)
        elif seen.state == KazooState.SUSPENDED:
            self.link = Link.SUSPENDED
            log.warning("zookeeper connection lost", servers=self._url.servers)
            self._notify()
        elif seen.client_state == KeeperState.AUTH_FAILED:
            self._end("the servers refuse the credentials", Refused)
        else:
            self._end("it has expired")

    def _connected(self, seen: _Seen) -> None:
        if self.session_id not in (0, seen.session_id):
            # kazoo has opened another one by itself.
            self._end("it has expired")
            return
        self.session_id, self.timeout_s = seen.session_id, seen.timeout_s
        self.greeted_s = seen.greeted_s
        self.link = Link.CONNECTED
        log.info(
            "zookeeper connected",
            servers=self._url.servers,
            session=f"{seen.session_id:#x}",
            timeout_s=seen.timeout_s,
        )
        self._notify()

    def _end(self, why: str, kind: type[MesosPyError] = SessionLost) -> None:
        if self.over is not None:
            return
        self.link = Link.OVER
        self.over = kind(f"the session with {self._url.servers} is over: {why}")
        for future in self._asked:
            if not future.done():
                future.set_exception(self.over)
        self._notify()


def _settle(future: asyncio.Future[Any], error: BaseException | None, value: object) -> None:
    # kazoo may answer twice when a connection breaks off.
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(value)


class _Watch:
    """A callback for kazoo; equal ones are called once, however often they were armed."""

    def __init__(self, post: Callable[..., None], changed: Callable[[], None]) -> None:
        self._post = post
        self._changed = changed

    def __call__(self, event: object) -> None:
        self._post(self._changed)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Watch) and self._changed == other._changed

    def __hash__(self) -> int:
        return hash(self._changed)


def _converted(error: Exception, path: str) -> MesosPyError:
    """kazoo's errors as ours."""
    if isinstance(error, NoNodeError):
        return NotFound("zookeeper node", path)
    if isinstance(error, NodeExistsError):
        return AlreadyExists(f"zookeeper node {path} exists", path=path)
    if isinstance(error, (NoAuthError, InvalidACLError, AuthFailedError)):
        return Refused(f"zookeeper refuses access to {path}: {type(error).__name__}", path=path)
    if isinstance(error, (SessionExpiredError, ConnectionClosedError)):
        return SessionLost("the session is over")
    return Unavailable(f"zookeeper did not answer about {path}: {type(error).__name__}", path=path)


# ---- kazoo, with what it does not tell ------------------------------------------------------


class _Client(KazooClient):  # type: ignore[misc]
    """Tells what was granted and when the greeting was sent; never waits long to connect."""

    def __init__(self, url: ZooKeeperUrl, timeout_s: float) -> None:
        self.granted_s = 0.0
        self.greeted_s = 0.0
        auth = [("digest", url.credentials)] if url.credentials is not None else []
        super().__init__(
            hosts=url.servers,
            timeout=timeout_s,
            # One server that swallows packets must leave time for the others.
            handler=_Handler(timeout_s / (2 * len(url.hosts))),
            auth_data=auth,
            connection_retry={
                "max_tries": -1,
                "delay": _FIRST_RECONNECT_S,
                "max_delay": min(_MAX_RECONNECT_S, timeout_s / 5),
            },
            logger=_kazoo_log(),
        )
        self._connection = _Connection(self, self._conn_retry.copy(), logger=self.logger)


class _Handler(SequentialThreadingHandler):  # type: ignore[misc]
    def __init__(self, connect_s: float) -> None:
        super().__init__()
        self._connect_s = connect_s

    def create_connection(self, *args: Any, **options: Any) -> Any:
        return super().create_connection(*args, **{**options, "timeout": self._connect_s})


class _Connection(ConnectionHandler):  # type: ignore[misc]
    def _invoke(self, timeout: float, request: Any, xid: int | None = None) -> Any:
        sent_s = time.monotonic()
        if isinstance(request, Connect):
            # A server that is just starting may take a connection and never answer on it.
            # Waited for as long as kazoo does, it would cost the session.
            timeout = min(timeout, max(_GREETING_S, timeout / 3))
        answer = super()._invoke(timeout, request, xid)
        if isinstance(request, Connect):
            self.client.greeted_s = sent_s
            self.client.granted_s = answer[0].time_out / 1000
        return answer


class _KazooFilter(logging.Filter):
    """Of kazoo's records only problems, none of them over and over, and no credentials."""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[object, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        now = time.monotonic()
        if record.levelno < logging.WARNING or record.msg in _NOISE:
            return False
        if isinstance(record.args, dict):
            return False
        if any(isinstance(each, Auth) for each in record.args or ()):
            return False
        # By the text without its arguments: their number is bounded.
        if now - self._last.get(record.msg, -_REPEAT_LOG_S) < _REPEAT_LOG_S:
            return False
        self._last[record.msg] = now
        return True


@functools.cache
def _kazoo_log() -> logging.Logger:
    kazoo_log = logging.getLogger(f"{logs.ROOT}.zookeeper.kazoo")
    kazoo_log.addFilter(_KazooFilter())
    return kazoo_log
