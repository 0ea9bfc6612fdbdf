"""Processes of containers that are within others: asked of the warden, and heard of."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from agent.containers.spawn import StartRequest
from agent.core.records import Exit
from mesos_py.errors import Refused

# The files that a process gets as its input, output and error output.
Stdio = tuple[str, str, str]
Ended = Callable[[Exit], None]

_TOO_OLD: Final = (
    "the tasks of this agent are kept by a process that an earlier version of it has started, and"
    " that cannot do it; start the agent again when none of them runs"
)
_LOST: Final = "the process that had started it has ended"


@dataclass(slots=True)
class _Running:
    ended: Ended
    # Done with its pid.
    started: asyncio.Future[int]
    pid: int = 0


class Within:
    """Those of one launcher, by their marks.  Used from its event loop.

    The warden ends them with the container that they are in, and with the agent.
    """

    def __init__(self, send: Callable[[list[Any]], None]) -> None:
        self._send = send
        self._running: dict[str, _Running] = {}
        # Whether the warden knows of such: one of an earlier version of the agent does not.
        self.possible = True

    def start(
        self, request: StartRequest, container_id: str, stdio: Stdio | None, ended: Ended
    ) -> asyncio.Future[int]:
        """Start one in a container; its pid, or Refused.  Flush the launcher afterwards.

        `stdio` None: its output goes into its sandbox, which is made for it.  `ended` is
        called once when nothing of it runs any more, unless it was not started.
        """
        if not self.possible:
            raise Refused(_TOO_OLD)
        started: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._running[request["id"]] = _Running(ended, started)
        self._send(["within", request, [container_id, stdio]])
        return started

    def signal(self, mark: str, number: int) -> None:
        """Flush the launcher afterwards."""
        if mark in self._running:
            self._send(["signal", mark, number])

    def heard(self, what: str, mark: str, detail: Any) -> None:
        """What the warden says of one.  Of those of an earlier agent: nothing to us."""
        running = self._running.get(mark)
        if running is None:
            return
        if what == "probing":
            running.pid = detail
            if not running.started.done():
                running.started.set_result(detail)
            return
        del self._running[mark]
        if what == "unprobed":
            self._refuse(running, detail)
            return
        status, _, why = detail
        if status is None and not running.pid:
            self._refuse(running, why)
        else:
            running.ended(Exit(status))

    def lost(self, take_in: Callable[[str, int], None]) -> None:
        """The warden is gone, and they must end.

        `take_in`: kill and reap one, given its mark and its pid (0: unknown).
        """
        running, self._running = self._running, {}
        for mark, each in running.items():
            take_in(mark, each.pid)
            if each.pid:
                each.ended(Exit(None, _LOST))
            else:
                self._refuse(each, _LOST)

    def _refuse(self, running: _Running, why: str) -> None:
        if not running.started.done():
            running.started.set_exception(Refused(why))


__all__ = ["Ended", "Stdio", "Within"]
