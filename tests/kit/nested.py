"""Containers within others, where a list stands for the launcher and the test for its warden.

scene = NestedScene()
await scene.launch("a")
scene.ended("a", 3 << 8)
"""

from __future__ import annotations

import asyncio
import io
import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent.containers.isolating import Isolating
from agent.containers.nested import START_LIMIT_S, Nested
from agent.containers.session import Session
from agent.containers.users import Users
from agent.containers.within import Within
from agent.core.effects import Signal
from agent.core.nested import Allowed, Wanted
from agent.core.records import Exit
from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import AgentWorld, command

WANTED = Wanted("/bin/sh", ["sh", "-c", "sleep 9"], {"OWN": "1"}, "")


class Host:
    """Starts whatever it is asked to, unless told otherwise."""

    def __init__(self) -> None:
        self.users = Users()
        self.isolating = Isolating([])
        self.within = Within(self._take)
        # What the warden would have been told.
        self.sent: list[list[Any]] = []
        # Those of tasks and executors: what was wanted of them.
        self.killed: list[tuple[str, Signal]] = []
        # Why nothing is started; whether it is not even answered.
        self.refusal: str | None = None
        self.silent = False
        self.asked = asyncio.Event()
        self.signalled = asyncio.Event()
        # Of sessions, by their marks: input, output and error output of the process.
        self.opened: dict[str, list[io.FileIO]] = {}
        self._pids = itertools.count(1000)

    def _take(self, message: list[Any]) -> None:
        self.sent.append(message)
        if message[0] == "signal":
            self.signalled.set()
        if message[0] == "within":
            self.asked.set()
            if not self.silent:
                self._open(message[1]["id"], message[2][1] or ())
                self.answer(message[1]["id"])

    def _open(self, mark: str, stdio: Sequence[str]) -> None:
        """Have it in hand what its process would read and write."""
        self.opened[mark] = [
            io.FileIO(path, mode) for path, mode in zip(stdio, ("r", "w", "w"), strict=False)
        ]

    def close(self) -> None:
        """All that was started ends."""
        for mark, files in self.opened.items():
            self.within.heard("probed", mark, [9, "", ""])
            for each in files:
                each.close()

    def answer(self, mark: str) -> None:
        """As the warden does, a little later."""
        loop = asyncio.get_running_loop()
        if self.refusal is not None:
            loop.call_soon(self.within.heard, "probed", mark, [None, "", self.refusal])
        else:
            loop.call_soon(self.within.heard, "probing", mark, next(self._pids))

    def signals(self) -> list[tuple[str, int]]:
        return [(each[1], each[2]) for each in self.sent if each[0] == "signal"]

    def request(self) -> Any:
        """What was to be started last."""
        return next(each for each in reversed(self.sent) if each[0] == "within")

    def flush(self) -> None: ...

    def end(self, container_id: str, number: Signal) -> None:
        self.killed.append((container_id, number))


def within(
    world: AgentWorld,
    host: Host,
    allowed: Allowed = Allowed.OWN_USER,
    start_limit_s: float = START_LIMIT_S,
) -> Nested:
    is_docker = {"docker"}.__contains__
    return Nested(world.core.state, host, host.end, is_docker, allowed, start_limit_s)


class NestedScene:
    """One task, t1, whose container is c1, and what is launched within it."""

    def __init__(
        self,
        work_dir: Path | None = None,
        allowed: Allowed = Allowed.OWN_USER,
        start_limit_s: float = START_LIMIT_S,
    ) -> None:
        self.world = AgentWorld()
        self.world.framework.user = ""
        if work_dir is not None:
            state = self.world.core.state
            state.settings = replace(state.settings, work_dir=str(work_dir))
        self.world.run(command("t1"))
        self.world.started("t1")
        self.outermost = self.world.container("t1")
        self.host = Host()
        self.nested = within(self.world, self.host, allowed, start_limit_s)

    def id(self, *names: str) -> pb.ContainerID:
        """Of one within the task's container, from the outermost one on."""
        found = pb.ContainerID(value=self.outermost)
        for name in names:
            found = pb.ContainerID(value=name, parent=found)
        return found

    async def launch(
        self, *names: str, wanted: Wanted = WANTED, session: Session | None = None
    ) -> bool:
        return await self.nested.launch(self.id(*names), wanted, session)

    def mark(self, *names: str) -> str:
        return f"{self.outermost}..{'.'.join(names)}"

    def ended(self, *names: str, status: int = 0) -> None:
        """Nothing of it runs any more."""
        self.host.within.heard("probed", self.mark(*names), [status, "", ""])

    def outermost_ended(self, status: int = 0) -> None:
        self.nested.outermost_over(self.outermost, Exit(status))

    def shown(self) -> list[str]:
        return [each.container_id.value for each in self.nested.shown()]
