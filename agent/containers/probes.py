"""Commands that are run in a container beside its processes, to see how it is.

A probe is started like a container's first process, has a session and a marker of its
own, and is thus never taken for a process of its container: that one's end does not wait
for it.  What it writes comes back here, up to a limit, and so does its wait status.

A container within another is started in the same way, and is not looked at otherwise: its
output goes elsewhere, and the end of the one that it is in is told when its own has come.

The warden imports this module: it must stay small (no mesos_py, no grpc).
"""

from __future__ import annotations

import os
import selectors
import time
from typing import Final, cast

from agent.containers.spawn import Spawner, StartRequest

# Of the output the end is kept; a probe that writes more than the limit is killed.
_KEPT_BYTES: Final = 1024
LIMIT_BYTES: Final = 1024 * 1024


class Probe:
    """One that runs."""

    __slots__ = (
        *("container_id", "deadline_s", "id", "output", "pipe", "why_killed", "within", "written"),
    )

    def __init__(
        self,
        id: str,
        container_id: str,
        pipe: int,
        deadline_s: float | None,
        *,
        within: bool = False,
    ) -> None:
        """`within`: it is a container within that one."""
        self.within = within
        self.id = id
        self.container_id = container_id
        self.pipe = pipe
        self.deadline_s = deadline_s
        self.output = bytearray()
        self.written = 0
        self.why_killed = ""


class Probes:
    """Those of all containers.  Whoever starts them also waits for them and kills them."""

    def __init__(self, spawner: Spawner, selector: selectors.BaseSelector) -> None:
        self._spawner = spawner
        self._selector = selector
        self._probes: dict[str, Probe] = {}
        # How the containers were started that have commands to check them by.
        self._bases: dict[str, StartRequest] = {}

    def remember(self, request: StartRequest) -> None:
        """It was started."""
        if request.get("probed"):
            self._bases[request["id"]] = request

    def forget(self, container_id: str) -> list[str]:
        """It is gone; the probes that must be killed therefore."""
        self._bases.pop(container_id, None)
        return [p.id for p in self._probes.values() if p.container_id == container_id]

    def all(self) -> list[str]:
        return list(self._probes)

    def __contains__(self, probe_id: str) -> bool:
        return probe_id in self._probes

    def start(self, request: StartRequest, container_id: str, limit_s: float) -> int:
        """Start one; its pid.  `limit_s` 0: it may take for ever.

        Raises StartError, and others where that says nothing of the container.
        """
        if not request["sandbox"]:
            # From an agent that was started anew.
            base = self._bases.get(container_id)
            if base is None:
                raise LookupError("it is not known how the container was started")
            own = {"id": request["id"], "exe": request["exe"], "argv": request["argv"]}
            request = cast(StartRequest, {**base, **own, "env": {**base["env"], **request["env"]}})
        reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            # What is to be written to is the program's, and blocks as it expects.
            os.set_blocking(writing, True)
            pid = self._spawner.start(request, (self._spawner.null, writing, writing), joins=True)
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        deadline_s = time.monotonic() + limit_s if limit_s else None
        probe = Probe(request["id"], container_id, reading, deadline_s)
        self._probes[probe.id] = probe
        self._selector.register(reading, selectors.EVENT_READ, lambda _: self.read(probe))
        return pid

    def start_within(
        self, request: StartRequest, container_id: str, stdio: list[str] | None
    ) -> int:
        """Start a container within another: its pid.  It may take for ever, and its output is
        none of ours.  `stdio`: files for it, else as of any container.  Raises as `start`.
        """
        opened: list[int] = []
        terminal = request.get("terminal")
        ways = (os.O_RDWR,) * 3 if terminal else (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY)
        try:
            for path, how in zip(stdio or (), ways, strict=False):
                # Not to be waited for here, should nobody be at the other end.
                fd = os.open(path, how | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
                opened.append(fd)
                os.set_blocking(fd, True)
            given = (opened[0], opened[1], opened[2]) if opened else None
            pid = self._spawner.start(request, given, joins=True)
        finally:
            for fd in opened:
                os.close(fd)
        self._probes[request["id"]] = Probe(request["id"], container_id, -1, None, within=True)
        return pid

    def within(self, container_id: str) -> bool:
        """Whether there are containers in it that have not ended."""
        return any(p.within and p.container_id == container_id for p in self._probes.values())

    def container_of(self, probe_id: str) -> str:
        return self._probes[probe_id].container_id

    def read(self, probe: Probe) -> None:
        """Take in some of its output."""
        if probe.pipe < 0:
            return
        try:
            piece = os.read(probe.pipe, 65536)
        except BlockingIOError:
            return
        probe.output += piece
        probe.written += len(piece)
        del probe.output[:-_KEPT_BYTES]
        if not piece:
            self._close(probe)
        elif probe.written > LIMIT_BYTES:
            self._close(probe)
            probe.why_killed = f"it wrote more than {LIMIT_BYTES >> 20} MiB"
            probe.deadline_s = 0.0

    def overdue(self) -> list[str]:
        """Those that must be killed now: each is told once."""
        if not self._probes:
            return []
        now_s = time.monotonic()
        found = []
        for probe in self._probes.values():
            if probe.deadline_s is not None and probe.deadline_s <= now_s:
                probe.deadline_s = None
                probe.why_killed = probe.why_killed or "it took too long"
                found.append(probe.id)
        return found

    def pause_s(self) -> float | None:
        """How long until `late` has something to say, None if never."""
        deadlines = [p.deadline_s for p in self._probes.values() if p.deadline_s is not None]
        return max(0.0, min(deadlines) - time.monotonic()) if deadlines else None

    def ended(self, probe_id: str) -> tuple[str, str]:
        """Its processes are gone: the end of its output, and why it was killed, or ""."""
        probe = self._probes.pop(probe_id)
        while probe.pipe >= 0:
            before = probe.written
            self.read(probe)
            if probe.written == before:
                # Nothing more in it, though somebody else may still have it open.
                self._close(probe)
        return probe.output.decode("utf-8", "replace"), probe.why_killed

    def _close(self, probe: Probe) -> None:
        if probe.pipe >= 0:
            self._selector.unregister(probe.pipe)
            os.close(probe.pipe)
            probe.pipe = -1
