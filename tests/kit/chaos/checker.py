"""What must hold after anything whatever has happened to a cluster.  Pure.

`findings` takes what the workload's scheduler wrote down, what its tasks left behind, and
what masters and agents say when all is at rest, and returns what is wrong, in words.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from mesos_py.states import TERMINAL, short_name
from tests.kit.chaos.book import Book, works
from tests.kit.chaos.ledger import Entry
from tests.kit.chaos.marks import Run

_TERMINAL: Final = frozenset(short_name(state) for state in TERMINAL)
# A task that ended so has never run.
NEVER_RAN: Final = frozenset({"DROPPED", "LOST", "GONE", "UNKNOWN"})


@dataclass(frozen=True)
class AgentView:
    """An agent as the master sees it, and the containers that it has itself."""

    name: str
    state: str
    total: str
    allocated: str
    offered: str
    running_tasks: int
    containers: tuple[str, ...] = ()


@dataclass(frozen=True)
class View:
    """What the leading master says."""

    agents: tuple[AgentView, ...]
    tasks: tuple[str, ...]
    step_failures: float = 0
    # The number that a writer had them store last; see `leaders.py`.
    stored: int | None = None


@dataclass
class Told:
    """What the framework was told of one task."""

    task_id: str
    host: str = ""
    states: list[str] = field(default_factory=list)
    finals: list[str] = field(default_factory=list)
    went_back: list[str] = field(default_factory=list)


def findings(
    short: int,
    long: int,
    ledger: Sequence[Entry],
    runs: Sequence[Run],
    *,
    may_fail: Collection[str] = (),
) -> list[str]:
    """What is wrong with the tasks.  `may_fail`: hosts whose tasks may fail by what was done."""
    told = _told(ledger)
    by_task: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        by_task[run.task_id].append(run)
    found = [f"{task_id}: ran and was never launched" for task_id in by_task.keys() - told.keys()]
    for each in told.values():
        found += _of_states(each)
        found += _of_runs(each, by_task.get(each.task_id, []), each.host in may_fail)
    found += _of_works(short, long, ledger)
    return found


def _told(ledger: Iterable[Entry]) -> dict[str, Told]:
    told: dict[str, Told] = {}
    for entry in ledger:
        if entry["kind"] == "launch":
            told[entry["task"]] = Told(entry["task"], entry["host"])
        elif entry["kind"] == "update":
            each = told.setdefault(entry["task"], Told(entry["task"]))
            state = entry["state"]
            if each.finals and state not in _TERMINAL:
                each.went_back.append(state)
            each.states.append(state)
            # The same end may be told more than once: at least once is the promise.
            if state in _TERMINAL and state not in each.finals:
                each.finals.append(state)
    return told


def _of_states(told: Told) -> list[str]:
    story = " ".join(told.states) or "nothing"
    found = []
    unheard_of = told.states[-1:] == ["UNKNOWN"]
    if not told.finals and not unheard_of:
        found.append(f"{told.task_id}: has no final state, was told {story}")
    if len(told.finals) > 1:
        found.append(f"{told.task_id}: has several final states, was told {story}")
    if told.went_back:
        found.append(f"{told.task_id}: was told something else after its end: {story}")
    return found


def _of_runs(told: Told, runs: Sequence[Run], may_fail: bool) -> list[str]:
    story = " ".join(told.states) or "nothing"
    task_id = told.task_id
    final = told.finals[0] if told.finals else "UNKNOWN"
    if len(runs) > 1:
        how = "twice at once" if _overlap(runs) else "twice"
        return [f"{task_id}: ran {how}: {runs}; was told {story}"]
    if final in NEVER_RAN:
        return [f"{task_id}: ended as {final} and has run: {run}; was told {story}" for run in runs]
    if final == "FINISHED":
        if not runs or runs[0].ended is None:
            return [f"{task_id}: FINISHED and has left no mark of it: {runs}; was told {story}"]
        return []
    if may_fail and final == "FAILED":
        return []
    return [f"{task_id}: nobody ended it, and it ended as {final}: {runs}; was told {story}"]


def _overlap(runs: Sequence[Run]) -> bool:
    """Whether one began before another one is known to have ended."""
    ordered = sorted(runs, key=lambda run: run.begun)
    return any(
        earlier.ended is None or later.begun < earlier.ended
        for earlier, later in itertools.pairwise(ordered)
    )


def _of_works(short: int, long: int, ledger: Sequence[Entry]) -> list[str]:
    book = Book(works(short, long))
    book.enter(ledger)
    missing = [work for work in book.works if work not in book.done]
    return [f"work that was never done: {' '.join(missing)}"] if missing else []


def of_rest(view: View, agents: int) -> list[str]:
    """What is wrong with a cluster in which nothing runs any more."""
    found = []
    if len(view.agents) != agents:
        names = " ".join(f"{each.name} ({each.state})" for each in view.agents)
        found.append(f"{agents} agents were started, the master knows {names}")
    if view.tasks:
        found.append(f"the master still has tasks: {' '.join(view.tasks)}")
    if view.step_failures:
        found.append(f"the master had {view.step_failures:g} internal errors")
    for agent in view.agents:
        if agent.state != "connected":
            found.append(f"{agent.name} is {agent.state}")
        if agent.allocated or agent.running_tasks:
            found.append(
                f"{agent.name}: nothing runs, and allocated are {agent.allocated!r} for "
                f"{agent.running_tasks} tasks"
            )
        if agent.containers:
            found.append(f"{agent.name} still has containers: {' '.join(agent.containers)}")
    return found
