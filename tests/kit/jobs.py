"""A framework with a queue: whatever is offered is filled with what waits."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from typing import Final

from mesos_py import SchedulerDriver
from mesos_py.resources import Resources
from mesos_py.states import is_terminal, short_name
from mesos_py.tasks import Command
from mesos_py.v1.types_pb2 import Offer, TaskStatus
from tests.kit.framework import Framework, what
from tests.kit.recorder import PATIENCE_S

MEM: Final = 1


class Jobs(Framework):
    """Runs commands of `cpus` each, once; says that it needs nothing when none waits.

    A launch that came too late for its offer goes back into the queue.
    """

    def __init__(
        self, master: str, commands: Iterable[Command], *, name: str = "jobs", cpus: float = 0.1
    ) -> None:
        super().__init__(master, name)
        self._cpus = cpus
        self._waiting = deque(enumerate(commands))
        self._commands = dict(self._waiting)
        # How often a task was heard to have ended, and in which states.
        self.ends: Counter[str] = Counter()
        self.states_at_end: Counter[str] = Counter()
        self.late = 0

    def wait_for_all(self, limit_s: float = PATIENCE_S) -> None:
        """Until every job has ended."""
        self.wait_for_ends(len(self._commands), limit_s)

    def wait_for_ends(self, count: int, limit_s: float = PATIENCE_S) -> None:
        """Until so many jobs have ended."""
        self.seen.wait(
            lambda _: True if len(self.ends) >= count else None, f"{count} ends", limit_s
        )

    def resource_offers(self, driver: SchedulerDriver, offers: Sequence[Offer]) -> None:
        for offer in offers:
            room = self._room(what(offer))
            chosen = [self._waiting.popleft() for _ in range(min(room, len(self._waiting)))]
            tasks = [
                self.task(command, offer, task_id=str(number), cpus=self._cpus, mem=MEM)
                for number, command in chosen
            ]
            driver.launch_tasks(offer, tasks)
        if not self._waiting:
            driver.set_needs_offers(False)

    def _room(self, there: Resources) -> int:
        """How many jobs fit."""
        each = Resources.of(cpus=self._cpus, mem=MEM)
        count = 0
        while there.contains(each):
            there = there - each
            count += 1
        return count

    def status_update(self, driver: SchedulerDriver, status: TaskStatus) -> None:
        if status.reason == TaskStatus.REASON_INVALID_OFFERS:
            self.late += 1
            number = int(status.task_id.value)
            self._waiting.append((number, self._commands[number]))
            driver.set_needs_offers(True)
        elif is_terminal(status.state):
            self.ends[status.task_id.value] += 1
            self.states_at_end[short_name(status.state)] += 1
        super().status_update(driver, status)
