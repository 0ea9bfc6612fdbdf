"""The older endpoints' pages, each made in slices between which the master goes on.

What there is gets written down in one short step, as for the operator API's lists
(snapshots.py); entries that went away before their turn are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, Final, NamedTuple, TypeVar

from master.api.convert import role_messages
from master.api.older import shapes
from master.api.older.roles import Standings
from master.api.older.shapes import AsJson, Shape, Tallies
from master.api.slices import SLICE_S, Pace, sliced
from master.core.cluster import Cluster
from master.core.records import Agent, Framework, Task
from mesos_py.http.shapes import pieces, text

DEFAULT_LIMIT: Final = 100
# Pieces of a page that are put into it at once.
_TOGETHER: Final = 64

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class About:
    """What /state says of the master itself.  Moments in seconds since the epoch."""

    version: str
    id: str
    hostname: str
    ip: str
    port: int
    started_wall_s: float
    elected_wall_s: float
    capabilities: Sequence[str] = ()
    flags: dict[str, str] = field(default_factory=dict)

    @property
    def pid(self) -> str:
        """The name under which libprocess would know it."""
        return f"master@{self.ip}:{self.port}"


class Wanted(NamedTuple):
    """Which tasks /tasks is to answer with; empty ids: all.  `newest`: first."""

    limit: int = DEFAULT_LIMIT
    offset: int = 0
    newest: bool = True
    framework_id: str = ""
    task_id: str = ""


class Pages:
    """Each method gives the body of one page, of what there was when it was called."""

    def __init__(
        self,
        cluster: Callable[[], Cluster],
        about: Callable[[], About],
        as_json: AsJson,
        slice_s: float = SLICE_S,
    ) -> None:
        self._cluster = cluster
        self._about = about
        self._as_json = as_json
        self._slice_s = slice_s

    async def state(self) -> bytes:
        c, about, pace = self._cluster(), self._about(), Pace(self._slice_s)
        there = _registered(c)
        books = [_Book(each) for each in c.frameworks.values()]
        completed = [_Book(each) for each in c.completed_frameworks.values()]
        head = _master(c, about)
        expected = [_recovered(each) for each in c.expected.values()]
        agents = await self._each(_present(c, shapes.agent), there, pace)
        lists: dict[str, Iterable[str | list[str]]] = {
            "slaves": agents,
            "recovered_slaves": [text(each) for each in expected],
            "frameworks": [await self._framework(c, book, pace) for book in books],
            "completed_frameworks": [await self._framework(c, book, pace) for book in completed],
            "orphan_tasks": [],
            "unregistered_frameworks": [],
        }
        return await _page(head, lists, pace)

    async def state_summary(self) -> bytes:
        c, about, pace = self._cluster(), self._about(), Pace(self._slice_s)
        there, frameworks = _registered(c), list(c.frameworks.values())
        books = [_Book(each) for each in (*frameworks, *c.completed_frameworks.values())]
        tallies = Tallies()
        for book in books:
            await sliced(tallies.add, book.all_tasks(), pace)
        agents = await self._each(
            _present(c, lambda c, each: shapes.agent(c, each) | tallies.of_agent(each.agent_id)),
            there,
            pace,
        )
        summaries = await self._each(
            lambda each: (
                shapes.framework_summary(c, each) | tallies.of_framework(each.framework_id)
            ),
            frameworks,
            pace,
        )
        lists = {"slaves": agents, "frameworks": summaries}
        return await _page({"hostname": about.hostname}, lists, pace)

    async def slaves(self, agent_id: str = "") -> bytes:
        """All agents, or the one of that id."""
        c, pace = self._cluster(), Pace(self._slice_s)
        there = [each for each in _registered(c) if agent_id in ("", each.agent_id)]
        absent = [each for each in c.expected.values() if agent_id in ("", each.agent_id)]
        agents = await self._each(
            _present(c, lambda c, each: shapes.agent_in_full(c, each, self._as_json)), there, pace
        )
        recovered = [text(_recovered(each)) for each in absent]
        return await _page({}, {"slaves": agents, "recovered_slaves": recovered}, pace)

    async def frameworks(self, framework_id: str = "") -> bytes:
        """All frameworks, or the one of that id."""
        c, pace = self._cluster(), Pace(self._slice_s)

        def books(among: Iterable[Framework]) -> list[_Book]:
            return [_Book(each) for each in among if framework_id in ("", each.framework_id)]

        present, completed = books(c.frameworks.values()), books(c.completed_frameworks.values())
        lists = {
            "frameworks": [await self._framework(c, book, pace) for book in present],
            "completed_frameworks": [await self._framework(c, book, pace) for book in completed],
            "unregistered_frameworks": [],
        }
        return await _page({}, lists, pace)

    async def tasks(self, wanted: Wanted) -> bytes:
        """Live, unreachable and ended tasks, in the order of their first statuses."""
        c, pace = self._cluster(), Pace(self._slice_s)
        found = [
            each
            for owner in (*c.frameworks.values(), *c.completed_frameworks.values())
            if wanted.framework_id in ("", owner.framework_id)
            for each in _Book(owner).all_tasks()
            if wanted.task_id in ("", each.task_id)
        ]
        moments = await sliced(lambda each: (_first_s(each), each), found, pace)
        moments.sort(key=lambda pair: pair[0], reverse=wanted.newest)
        chosen = moments[wanted.offset : wanted.offset + wanted.limit]
        tasks = await self._tasks([each for _, each in chosen], pace)
        return await _page({}, {"tasks": tasks}, pace)

    async def roles(self) -> bytes:
        c = self._cluster()
        standings = Standings(c)
        made = [shapes.role(each, standings.of(each.name)) for each in role_messages(c, {})]
        roles = [text(each) for each in made]
        return await _page({}, {"roles": roles}, Pace(self._slice_s))

    # ---- Parts --------------------------------------------------------------------

    async def _framework(self, c: Cluster, book: _Book, pace: Pace) -> list[str]:
        """In pieces."""
        given = book.framework
        offers = [c.offers[each] for each in given.offers]
        head = shapes.framework(c, given, self._as_json)
        lists = {
            "offers": [text(shapes.offer(c, each)) for each in offers],
            "executors": await self._each(
                lambda each: shapes.executor(each, self._as_json), book.executors, pace
            ),
            "tasks": await self._tasks(book.tasks, pace),
            "unreachable_tasks": await self._tasks(book.unreachable, pace),
            "completed_tasks": await self._tasks(book.completed, pace),
        }
        await pace.step()
        return pieces(head, lists)

    async def _tasks(self, tasks: Iterable[Task], pace: Pace) -> list[str]:
        return await self._each(lambda each: shapes.task(each, self._as_json), tasks, pace)

    async def _each(
        self, shape: Callable[[T], Shape | None], items: Iterable[T], pace: Pace
    ) -> list[str]:
        def one(item: T) -> str | None:
            made = shape(item)
            return None if made is None else text(made)

        return await sliced(one, items, pace)


class _Book:
    """The lists of one framework, as they are now."""

    def __init__(self, framework: Framework) -> None:
        self.framework = framework
        self.tasks = list(framework.tasks.values())
        self.unreachable = list(framework.unreachable_tasks.values())
        self.completed = list(framework.completed_tasks)
        self.executors = list(framework.executors.values())

    def all_tasks(self) -> list[Task]:
        return [*self.tasks, *self.unreachable, *self.completed]


def _registered(c: Cluster) -> list[Agent]:
    """Those that Mesos would count among its agents: it forgets unreachable ones."""
    return [each for each in c.agents.values() if each.unreachable is None]


def _present(
    c: Cluster, shape: Callable[[Cluster, Agent], Shape]
) -> Callable[[Agent], Shape | None]:
    return lambda each: shape(c, each) if c.agents.get(each.agent_id) is each else None


def _recovered(given: Any) -> Shape:
    """Of an agent that is known from before this master led, and has not come back."""
    info = given.info
    return {
        "id": given.agent_id,
        "hostname": info.hostname,
        "port": shapes.http_port(info),
        "attributes": shapes.attributes(info.attributes),
    }


def _master(c: Cluster, about: About) -> Shape:
    there = _registered(c)
    active = sum(each.connected for each in there)
    return {
        "version": about.version,
        "build_date": "",
        "build_time": 0.0,
        "build_user": "",
        "start_time": about.started_wall_s,
        "elected_time": about.elected_wall_s,
        "id": about.id,
        "pid": about.pid,
        "hostname": about.hostname,
        "capabilities": list(about.capabilities),
        "activated_slaves": float(active),
        "deactivated_slaves": float(len(there) - active),
        "unreachable_slaves": float(len(c.agents) - len(there)),
        "leader": about.pid,
        "leader_info": {
            "id": about.id,
            "pid": about.pid,
            "port": about.port,
            "hostname": about.hostname,
        },
        "flags": about.flags,
    }


def _first_s(task: Task) -> float:
    """When its first status is from; before that, when it was launched."""
    if len(task.statuses):
        return task.statuses[0].timestamp
    return task.launched_wall_s or 0.0


async def _page(head: Shape, lists: Mapping[str, Iterable[str | list[str]]], pace: Pace) -> bytes:
    """In slices, too: of megabytes each copy takes as long as several slices."""
    body = BytesIO()
    found = pieces(head, lists)
    for at in range(0, len(found), _TOGETHER):
        body.write("".join(found[at : at + _TOGETHER]).encode())
        await pace.step()
    return body.getvalue()
