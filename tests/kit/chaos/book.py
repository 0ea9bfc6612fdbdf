"""What the workload has still to do.  Pure: entries of the ledger in, decisions out.

There are pieces of work, short and long ones; each is done when one attempt at it has
FINISHED.  An attempt is a task with an id of its own, which is used once, ever.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from mesos_py.states import TASK_FINISHED, TERMINAL, TaskState, short_name
from tests.kit.chaos.ledger import Entry

# Terminal states by their short names.  An answer UNKNOWN ends an attempt as well: the
# master has never heard of the task, nor of its agent.
ENDS: Final = frozenset(short_name(state) for state in TERMINAL) | {"UNKNOWN"}
_FINISHED: Final = short_name(TASK_FINISHED)


@dataclass
class Attempt:
    task_id: str
    work: str
    agent_id: str
    heard_s: float


@dataclass
class Book:
    """The state of a workload; `enter` brings it on, also from an earlier life's ledger."""

    works: list[str]
    open: dict[str, Attempt] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    framework_id: str = ""
    _tries: dict[str, int] = field(default_factory=dict)
    _waiting: deque[str] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self._waiting.extend(self.works)

    @property
    def finished(self) -> bool:
        return not self._waiting and not self.open

    @property
    def wants_offers(self) -> bool:
        return bool(self._waiting)

    def enter(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            kind = entry["kind"]
            if kind == "launch":
                self._launched(entry)
            elif kind == "update":
                self._updated(entry)
            elif kind == "registered":
                self.framework_id = entry["framework"]
            elif kind == "enough":
                self.works = [work for work in self.works if work in self._tries]
                self._waiting = deque(w for w in self._waiting if w in self._tries)

    def next_work(self) -> tuple[str, str]:
        """A piece of work that waits, and the id of the attempt at it."""
        work = self._waiting[0]
        return work, f"{work}.{self._tries.get(work, 0) + 1}"

    def unheard(self, before_s: float) -> list[tuple[str, str]]:
        """Attempts of which nothing was heard since then, as (task id, agent id)."""
        late = [each for each in self.open.values() if each.heard_s < before_s]
        return [(each.task_id, each.agent_id) for each in late]

    def _launched(self, entry: Entry) -> None:
        work, task_id = entry["work"], entry["task"]
        self._waiting.remove(work)
        self._tries[work] = self._tries.get(work, 0) + 1
        self.open[task_id] = Attempt(task_id, work, entry["agent"], entry["at"])

    def _updated(self, entry: Entry) -> None:
        attempt = self.open.get(entry["task"])
        if attempt is None:
            return
        attempt.heard_s = entry["at"]
        if entry["state"] not in ENDS:
            return
        del self.open[attempt.task_id]
        if entry["state"] == _FINISHED:
            self.done.add(attempt.work)
        else:
            self._waiting.append(attempt.work)


def works(short: int, long: int) -> list[str]:
    """Long ones first, so that they live through everything."""
    return [f"long{n}" for n in range(long)] + [f"short{n}" for n in range(short)]


def is_long(work: str) -> bool:
    return work.startswith("long")


def state_name(state: TaskState.ValueType) -> str:
    return short_name(state)
