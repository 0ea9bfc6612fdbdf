"""Containers within those of tasks and executors, launched by operators' calls.

They share all that the container has that they are in, and end with it.  Nothing of them is
written down: they end with the agent's process, too.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, Protocol

from agent.containers.discarding import discard
from agent.containers.isolating import Isolating
from agent.containers.session import Session
from agent.containers.spawn import StartRequest
from agent.containers.users import User, Users
from agent.containers.within import Within
from agent.core import nested
from agent.core.effects import Signal
from agent.core.nested import Allowed, Names, Outer, Wanted
from agent.core.records import Executor, Exit
from agent.core.state import AgentState
from mesos_py import logs
from mesos_py.errors import Conflict, InvalidValue, MesosPyError, NotFound, Refused, Unavailable
from mesos_py.v1 import types_pb2 as pb
from mesos_py.v1.agent_operator_pb2 import Response

log = logs.get("agent.nested")

# In one container of a task or an executor: so many that run, and so many whose end is known.
MAX_RUNNING: Final = 100
MAX_ENDED: Final = 100
# A start takes milliseconds, and seconds on a machine that is very busy; who a user is may be
# asked of servers, of which the first that is down costs up to half a minute.
START_LIMIT_S: Final = 60.0
_FIELD: Final = "container_id"
_KILL: Final = int(signal.SIGKILL)
_SIGNALS: Final = frozenset({0, *map(int, signal.valid_signals())})


@dataclass(slots=True, eq=False)
class _Container:
    names: Names
    outer: Outer
    # What it gives to those within it, once it is known.
    gives: Outer | None = None
    pid: int = 0
    # How its own processes ended; those within it may not have yet.
    exit: Exit | None = None
    # The signal that it is sent when it has started, or keeps it from that.
    pending: int = 0
    over: asyncio.Future[Exit] = field(default_factory=asyncio.Future)
    session: Session | None = None
    # Its start took too long: whoever asked was told that there is none.
    given_up: bool = False
    # Its directory was made for it: what an earlier one of its id has left is not given up
    # with it, were that one forgotten (or the agent started anew) since.
    owns_directory: bool = False

    @property
    def alive(self) -> bool:
        return not self.over.done()

    def end(self, exit: Exit) -> None:
        self.over.set_result(exit)
        if self.session is not None:
            self.session.over()


class Host(Protocol):
    """The launcher, as far as it is needed here."""

    users: Users
    isolating: Isolating
    within: Within

    def flush(self) -> None: ...


class Nested:
    """Those of one agent.  Used from its event loop."""

    def __init__(
        self,
        state: AgentState,
        launcher: Host,
        end: Callable[[str, Signal], None],
        is_docker: Callable[[str], bool],
        allowed: Allowed = Allowed.OWN_USER,
        start_limit_s: float = START_LIMIT_S,
    ) -> None:
        """`end`: has the container of a task or an executor ended."""
        self._s = state
        self._launcher = launcher
        self._end = end
        self._is_docker = is_docker
        self._allowed = allowed
        self._start_limit_s = start_limit_s
        # By the outermost container, in the order in which they were launched or ended.
        self._of: dict[str, dict[Names, _Container]] = {}
        # Who wants to know the end of a task's or an executor's own container.
        self._awaited: dict[str, asyncio.Future[Exit]] = {}
        self._starting: set[asyncio.Task[None]] = set()
        # Those whose directories are being removed.
        self._removing: set[Names] = set()

    # ---- Orders --------------------------------------------------------------------

    async def launch(
        self, container_id: pb.ContainerID, wanted: Wanted, session: Session | None = None
    ) -> bool:
        """Start one; False: it runs already.  One with a `session` has no directory, and the
        environment of the one that it is in, as one who looks into that wants it.

        Raises InvalidValue for whatever keeps it from being started, Refused if nothing may
        be, Conflict while another of its id is being removed or given up, and Unavailable
        when it has not started in time: should it do so later, it is ended at once.
        """
        if self._allowed is Allowed.OFF:
            raise Refused("this agent launches no containers within others (--nested-containers)")
        names = nested.names_of(_FIELD, container_id)
        if len(names) == 1:
            raise InvalidValue(f"{_FIELD}.parent", "", "must be there: nothing runs by itself")
        known = self._find(names)
        if known is not None and known.alive:
            if known.given_up:
                raise _busy(names, "the last one of this id is still being given up")
            return False
        self._require_not_removed(names)
        executor, outer = self._outer(names)
        self._require_room(names[0])
        container = _Container(names, outer, session=session)
        of = self._of.setdefault(names[0], {})
        of.pop(names, None)
        of[names] = container
        # Whoever asked may go away meanwhile; what has begun is brought to its end.
        starting = asyncio.create_task(self._start(container, executor, wanted))
        self._starting.add(starting)
        starting.add_done_callback(self._started)
        await asyncio.wait([starting], timeout=self._start_limit_s)
        if not starting.done():
            self._give_up(container)
            text = f"it has not started within {self._start_limit_s:g} s"
            raise Unavailable(_failed(names, text).message, container=nested.text_of(names))
        starting.result()
        return True

    async def open_session(self, container_id: pb.ContainerID, wanted: Wanted) -> Session | None:
        """Start one whose input and output are ours; None: it runs already.  `end_session`
        in any case in which there is one.  Raises as `launch`, and Unavailable."""
        # Before there is anything that would have to be closed.
        names = nested.names_of(_FIELD, container_id)
        try:
            session = Session(wanted.terminal)
        except OSError as error:
            raise Unavailable(f"no session can be opened: {error.strerror}") from None
        try:
            launched = await self.launch(container_id, wanted, session)
        except BaseException:
            self._end_session(names, session)
            raise
        if not launched:
            self._end_session(names, session)
            return None
        return session

    def end_session(self, container_id: pb.ContainerID, session: Session) -> None:
        """Nobody takes its output any more: it is ended."""
        self._end_session(nested.names_of(_FIELD, container_id), session)

    def _end_session(self, names: Names, session: Session) -> None:
        container = self._find(names)
        if container is not None and container.session is session and container.alive:
            self._signal(container, _KILL)
            self._launcher.flush()
            session.leave()
        else:
            session.close()
            session.handed_over()

    def session(self, container_id: pb.ContainerID) -> Session:
        """That of one that runs.  Raises NotFound, InvalidValue if it has none."""
        names = nested.names_of(_FIELD, container_id)
        if len(names) > 1:
            container = self._known(names)
            if container.alive and container.session is not None:
                return container.session
            if not container.alive:
                raise _unknown(names, "has ended already")
        elif names[0] not in self._s.containers:
            raise _unknown(names)
        text = "is no session: what it writes goes into files, and it reads nothing"
        raise InvalidValue(_FIELD, nested.text_of(names), text)

    async def wait(self, container_id: pb.ContainerID) -> Exit:
        """How it ended, when it has.  Raises NotFound."""
        names = nested.names_of(_FIELD, container_id)
        if len(names) > 1:
            return await asyncio.shield(self._known(names).over)
        if names[0] not in self._s.containers:
            raise _unknown(names)
        loop = asyncio.get_running_loop()
        return await asyncio.shield(self._awaited.setdefault(names[0], loop.create_future()))

    def kill(self, container_id: pb.ContainerID, number: int = _KILL) -> None:
        """Send a signal to all its processes.  Raises NotFound, InvalidValue."""
        names = nested.names_of(_FIELD, container_id)
        if number not in _SIGNALS:
            raise InvalidValue("signal", number, "is no signal")
        if len(names) == 1:
            self._kill_executors(names, number)
            return
        container = self._known(names)
        if not container.alive:
            raise _unknown(names, "has ended already")
        self._signal(container, number)
        self._launcher.flush()

    async def remove(self, container_id: pb.ContainerID) -> None:
        """Forget one that has ended, with its directory; nothing if there is none.

        Raises NotFound, InvalidValue for one of a task or an executor, and Conflict if it
        has not ended, or is being removed already.
        """
        names = nested.names_of(_FIELD, container_id)
        executor = self._s.containers.get(names[0])
        if executor is None:
            raise _unknown(names)
        self._require_not_removed(names)
        if len(names) == 1:
            text = "is that of a task or an executor: the agent removes it by itself"
            raise InvalidValue(_FIELD, nested.text_of(names), text)
        of = self._of.get(names[0], {})
        doomed = [each for each in of.values() if each.names[: len(names)] == names]
        if any(each.alive for each in doomed):
            raise _busy(names, "has not ended yet")
        for each in doomed:
            del of[each.names]
        parts = executor.sandbox
        for name in names[1:]:
            parts = nested.sandbox_within(parts, name)
        await asyncio.shield(self._begin_to_remove(names, parts))

    # ---- What there is -------------------------------------------------------------

    def shown(self) -> list[Response.GetContainers.Container]:
        """Those that run, as Mesos shows them: only the status has the whole id."""
        return [
            Response.GetContainers.Container(
                container_id=pb.ContainerID(value=each.names[-1]),
                container_status=pb.ContainerStatus(
                    container_id=nested.id_of(each.names), executor_pid=each.pid
                ),
            )
            for of in self._of.values()
            for each in of.values()
            if each.alive and each.pid
        ]

    # ---- What is heard -------------------------------------------------------------

    def outermost_over(self, container_id: str, exit: Exit) -> None:
        """Nothing of a task's or an executor's container runs any more, nor of what was
        within it."""
        awaited = self._awaited.pop(container_id, None)
        if awaited is not None and not awaited.done():
            awaited.set_result(exit)
        for each in self._of.pop(container_id, {}).values():
            if each.alive:
                self._signal(each, _KILL)
                each.end(each.exit or Exit(None, "it ended with its container"))

    # ---- Inside --------------------------------------------------------------------

    def _find(self, names: Names) -> _Container | None:
        return self._of.get(names[0], {}).get(names)

    def _known(self, names: Names) -> _Container:
        found = self._find(names)
        if found is None:
            raise _unknown(names)
        return found

    def _outer(self, names: Names) -> tuple[Executor, Outer]:
        """What it would be in.  Raises InvalidValue."""
        executor = self._s.containers.get(names[0])
        if len(names) > 2 and executor is not None:
            above = self._find(names[:-1])
            if above is None or not above.alive or above.gives is None:
                raise _no_parent(names, "does not exist")
            if not above.pid:
                raise _no_parent(names, "has not started yet")
            if above.exit is not None:
                # What is within it was told to end when it did.
                raise _no_parent(names, "is ending")
            if above.session is not None:
                # Its directory is another's, where those within that have theirs.
                raise _no_parent(names, "is a session: nothing can be launched within it")
            return executor, above.gives
        if executor is None:
            raise _no_parent(names, "does not exist")
        if self._is_docker(names[0]):
            raise _no_parent(names, "is dockerd's: nothing can be launched within it")
        if executor.pid is None:
            raise _no_parent(names, "has not started yet")
        return executor, nested.outer(self._s, executor)

    def _require_not_removed(self, names: Names) -> None:
        if names in self._removing:
            raise _busy(names, "is being removed")

    def _require_room(self, outermost: str) -> None:
        running = sum(each.alive for each in self._of.get(outermost, {}).values())
        if running >= MAX_RUNNING:
            text = f"{running} containers run within it, and no more are taken"
            raise InvalidValue(f"{_FIELD}.parent", outermost, text)

    async def _start(self, container: _Container, executor: Executor, wanted: Wanted) -> None:
        session = container.session
        try:
            request = await self._request(container, executor, wanted)
            if container.pending:
                raise _failed(container.names, "stopped before it was started")
            stdio = session.stdio(*request["owner"]) if session is not None else None
            starting = self._launcher.within.start(
                request, container.names[0], stdio, lambda exit: self._ended(container, exit)
            )
            self._launcher.flush()
            container.pid = await starting
        except Exception as error:
            self._left(container, Exit(None, "it was not started"), forget=True)
            if isinstance(error, InvalidValue):
                raise
            why = error.message if isinstance(error, MesosPyError) else str(error)
            raise _failed(container.names, why) from None
        finally:
            if session is not None:
                session.handed_over()
        self._send_pending(container)

    def _send_pending(self, container: _Container) -> None:
        """What came while it was being started."""
        if container.pending:
            self._signal(container, container.pending)
            self._launcher.flush()

    async def _request(
        self, container: _Container, executor: Executor, wanted: Wanted
    ) -> StartRequest:
        names, outer = container.names, container.outer
        user = await asyncio.to_thread(self._user, wanted.user, outer.user)
        extra = await self._launcher.isolating.join(names[0], executor.pid or 0)
        session = container.session is not None
        parts = outer.sandbox if session else nested.sandbox_within(outer.sandbox, names[-1])
        if session:
            given = {**extra.environment, **wanted.environment}
            environment = nested.environment_of_session(names, outer, given)
        else:
            directory = "/".join((self._s.settings.work_dir, *parts))
            container.owns_directory = await asyncio.to_thread(_is_missing, directory)
            given = {**extra.environment, **wanted.environment}
            environment = nested.environment_within(names, directory, given)
        container.gives = Outer(wanted.user or outer.user, environment, parts)
        request = StartRequest(
            id=nested.mark_of(names),
            exe=wanted.executable,
            argv=wanted.argv,
            env=environment,
            sandbox=list(parts),
            owner=(user.uid, user.gid),
            user=user.switch,
            enter=list(extra.enter),
            namespaces=list(extra.namespaces),
            rlimits=list(extra.rlimits),
        )
        if wanted.terminal is not None:
            request["terminal"] = True
        return request

    def _user(self, wanted: str, outer: str) -> User:
        """In a thread.  Raises Refused, and InvalidValue for one that may not be chosen."""
        user = self._launcher.users.find(wanted or outer)
        if self._allowed is not Allowed.ANY_USER and user != self._launcher.users.find(outer):
            text = "must be that of the container that it is in (--nested-containers)"
            raise InvalidValue("command.user", wanted, text)
        return user

    def _started(self, starting: asyncio.Task[None]) -> None:
        self._starting.discard(starting)
        if not starting.cancelled():
            starting.exception()  # told to whoever asked, if that one is still there

    def _kill_executors(self, names: Names, number: int) -> None:
        if names[0] not in self._s.containers:
            raise _unknown(names)
        if number not in (Signal.TERM, Signal.KILL):
            text = "must be 15 or 9 for the container of a task or an executor"
            raise InvalidValue("signal", number, text)
        # By whoever sees to it that KILL follows TERM.
        self._end(names[0], Signal(number))

    def _signal(self, container: _Container, number: int) -> None:
        if container.pid:
            self._launcher.within.signal(nested.mark_of(container.names), number)
        elif container.pending != _KILL:
            container.pending = number

    def _ended(self, container: _Container, exit: Exit) -> None:
        """Nothing of its own runs any more."""
        if not container.alive:
            return
        container.exit = exit
        within = list(self._alive_within(container.names))
        for each in within:
            self._signal(each, _KILL)
        self._launcher.flush()
        if not within:
            self._left(container, exit)

    def _left(self, container: _Container, exit: Exit, *, forget: bool = False) -> None:
        """Nothing of it and of those within it runs any more."""
        if container.alive:
            container.end(exit)
        names = container.names
        of = self._of.get(names[0])
        if of is None or of.pop(names, None) is None:
            return
        if container.given_up and container.owns_directory:
            self._begin_to_remove(names, nested.sandbox_within(container.outer.sandbox, names[-1]))
        if not forget and not container.given_up:
            of[names] = container
            ended = [each.names for each in of.values() if not each.alive]
            for oldest in ended[:-MAX_ENDED]:
                del of[oldest]
        above = of.get(names[:-1])
        waits = above is not None and above.alive and not any(self._alive_within(above.names))
        if above is not None and waits and above.exit is not None:
            self._left(above, above.exit)

    def _alive_within(self, names: Names) -> Iterator[_Container]:
        for each in self._of.get(names[0], {}).values():
            if each.alive and len(each.names) > len(names) and each.names[: len(names)] == names:
                yield each

    def _give_up(self, container: _Container) -> None:
        """It keeps its id and its place for as long as something may come of it."""
        container.given_up = True
        log.warning("start took too long", container=nested.text_of(container.names))
        self._signal(container, _KILL)
        self._launcher.flush()

    def _begin_to_remove(self, names: Names, parts: tuple[str, ...]) -> asyncio.Task[None]:
        """As with a start: nobody can take the id before its directory is gone."""
        self._removing.add(names)
        removing = asyncio.create_task(self._remove(names, parts))
        self._starting.add(removing)
        removing.add_done_callback(self._started)
        return removing

    async def _remove(self, names: Names, parts: tuple[str, ...]) -> None:
        try:
            await asyncio.to_thread(discard, self._s.settings.work_dir, parts)
        except OSError as error:
            log.warning("directory is left", container=nested.text_of(names), error=error)
        finally:
            self._removing.discard(names)


def _is_missing(path: str) -> bool:
    """Nothing is there, as far as can be seen for certain."""
    try:
        os.lstat(path)
    except OSError as error:
        return isinstance(error, FileNotFoundError)
    return False


def _unknown(names: Names, reason: str = "cannot be found") -> NotFound:
    return NotFound("container", nested.text_of(names), reason)


def _no_parent(names: Names, reason: str) -> InvalidValue:
    return InvalidValue(f"{_FIELD}.parent", nested.text_of(names[:-1]), reason)


def _busy(names: Names, why: str) -> Conflict:
    text = nested.text_of(names)
    return Conflict(f"{_FIELD}: {text!r}: {why}", container=text)


def _failed(names: Names, why: str) -> InvalidValue:
    return InvalidValue(_FIELD, nested.text_of(names), f"cannot be launched: {why}")


__all__ = ["MAX_ENDED", "MAX_RUNNING", "START_LIMIT_S", "Nested"]
