"""Command probes: run by the warden in the task's container."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from agent.checks.words import ending
from agent.containers.processes import MARKER, marked_container
from agent.containers.spawn import StartRequest
from agent.core.effects import Signal
from agent.core.health import Outcome
from agent.core.launch import argv_of
from agent.core.records import Exit
from mesos_py.v1 import types_pb2 as pb

# The core stops a probe that takes too long; should the agent be gone, the warden does.
WARDEN_SLACK_S: Final = 5.0

# Container, kind of check, number of the probe, what it found.
Ended: TypeAlias = Callable[[str, str, int, Outcome], None]
Messages: TypeAlias = Callable[[list[Any]], None]


@dataclass(frozen=True)
class _Wanted:
    """One probe as it was asked for."""

    request: StartRequest
    container_id: str
    kind: str
    number: int
    timeout_s: float


@dataclass(slots=True)
class _Running:
    wanted: _Wanted
    pid: int = 0
    stopped: bool = False
    # Asked for while this one is not gone.
    next: _Wanted | None = None


class CommandProbes:
    """Implements agent.checks.prober.Containers for those of the launcher.

    At most one process for each check of each container, whatever is asked for.
    """

    def __init__(self, send: Messages, ended: Ended) -> None:
        self._send = send
        self._ended = ended
        self._running: dict[str, _Running] = {}
        # How containers with such checks were started.  The warden remembers it as well,
        # for an agent that was started anew.
        self._bases: dict[str, StartRequest] = {}

    # ---- Orders ------------------------------------------------------------------------

    def probe(
        self,
        container_id: str,
        kind: str,
        number: int,
        command: pb.CommandInfo,
        timeout_s: float,
        like: StartRequest | None = None,
    ) -> None:
        """Flush the launcher afterwards.  `like`: how its task was started, if that is not
        its container's first process."""
        base = like or self._bases.get(container_id)
        request = _request(base, container_id, kind, command)
        wanted = _Wanted(request, container_id, kind, number, timeout_s)
        running = self._running.get(request["id"])
        if running is not None:
            # The one before was stopped, and is not gone: its turn comes after.
            running.next = wanted
            return
        self._start(wanted)

    def stop_probe(self, container_id: str, kind: str) -> None:
        """Flush the launcher afterwards."""
        probe = _id(container_id, kind)
        running = self._running.get(probe)
        if running is None:
            return
        running.next = None
        if not running.stopped:
            running.stopped = True
            self._send(["signal", probe, int(Signal.KILL)])

    # ---- What the launcher tells -----------------------------------------------------------

    def about_to_start(
        self, request: StartRequest, holders: Iterable[pb.TaskInfo | pb.ExecutorInfo]
    ) -> None:
        """Remember how, if its task has a command to check it by."""
        given = list(holders)
        if any(isinstance(each, pb.ExecutorInfo) and _is_ours(each) for each in given):
            return  # it runs as the agent does, which no check may
        if any(isinstance(each, pb.TaskInfo) and _has_command(each) for each in given):
            request["probed"] = True
            self._bases[request["id"]] = request

    def forget(self, container_id: str) -> None:
        """It is gone."""
        self._bases.pop(container_id, None)

    def heard(self, what: str, probe: str, detail: Any) -> None:
        """The warden has started one, or could not, or it has ended."""
        running = self._running.get(probe)
        if running is None:
            return
        if what == "probing":
            running.pid = detail
            return
        del self._running[probe]
        lost = what == "unprobed"
        self._tell(running, Outcome(None, None, detail) if lost else _outcome(*detail))
        if running.next is not None:
            self._start(running.next)

    def lost(self, take_in: Callable[[str, int], None]) -> None:
        """The warden is gone: what it had started ends, and has found out nothing.

        `take_in`: kill and reap one, given its mark and its pid (0: unknown).
        """
        running, self._running = self._running, {}
        for probe, each in running.items():
            take_in(probe, each.pid)
            waiting = each if each.next is None else _Running(each.next)
            self._tell(waiting, Outcome(None, None, "the process that ran it has ended"))

    def _start(self, wanted: _Wanted) -> None:
        self._running[wanted.request["id"]] = _Running(wanted)
        limit_s = wanted.timeout_s + WARDEN_SLACK_S if wanted.timeout_s else 0.0
        self._send(["probe", wanted.request, [wanted.container_id, limit_s]])

    def _tell(self, running: _Running, outcome: Outcome) -> None:
        wanted = running.wanted
        if not running.stopped:
            self._ended(wanted.container_id, wanted.kind, wanted.number, outcome)


def end_leftovers(container_ids: Collection[str]) -> None:
    """Kill probes whose warden was lost together with the agent: nobody else would."""
    with os.scandir("/proc") as entries:
        pids = [int(entry.name) for entry in entries if entry.name.isdigit()]
    for pid in pids:
        if not _is_probe(pid, container_ids):
            continue
        with contextlib.suppress(OSError):
            pidfd = os.pidfd_open(pid)
            try:
                # Looked at again: the number cannot have become another's since.
                if _is_probe(pid, container_ids):
                    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            finally:
                os.close(pidfd)


def _is_probe(pid: int, container_ids: Collection[str]) -> bool:
    container_id, dot, _ = marked_container(pid).partition(".")
    return bool(dot) and container_id in container_ids


def _is_ours(executor: pb.ExecutorInfo) -> bool:
    return executor.type == pb.ExecutorInfo.DEFAULT


def _has_command(task: pb.TaskInfo) -> bool:
    return task.health_check.HasField("command") or task.check.HasField("command")


def _id(container_id: str, kind: str) -> str:
    return f"{container_id}.{kind}"


def _request(
    base: StartRequest | None, container_id: str, kind: str, command: pb.CommandInfo
) -> StartRequest:
    """As its container's first process was started.  Without a `base` the sandbox is
    empty, and the warden fills in what it remembers."""
    probe = _id(container_id, kind)
    executable, argv = argv_of(command)
    given = {each.name: each.value for each in command.environment.variables}
    own = {MARKER.decode().rstrip("="): probe}
    return StartRequest(
        id=probe,
        exe=executable,
        argv=argv,
        env={**(base["env"] if base is not None else {}), **given, **own},
        sandbox=base["sandbox"] if base is not None else [],
        owner=base["owner"] if base is not None else (0, 0),
        user=base["user"] if base is not None else None,
        enter=base["enter"] if base is not None else [],
        namespaces=base["namespaces"] if base is not None else [],
        rlimits=base["rlimits"] if base is not None else [],
    )


def _outcome(status: int | None, output: str, why: str) -> Outcome:
    if status is None:
        return Outcome(False, None, f"it could not be run: {why}")
    exit = Exit(status)
    return Outcome(exit.code == 0, exit.code, ending(exit, output, why))
