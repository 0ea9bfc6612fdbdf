"""The pages of an agent's older endpoints, made in slices between which the agent goes on.

What there is gets written down in one short step; then each entry is made from its own
record, which may have changed meanwhile.
"""

from __future__ import annotations

import posixpath
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from agent.api.older import shapes
from agent.core import listing
from agent.core.listing import Container
from agent.core.records import Executor, Framework, Task
from agent.core.state import AgentState
from mesos_py.http.shapes import AsJson, Shape, joined, text
from mesos_py.slices import SLICE_S, Pace, sliced

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class About:
    """What /state says of the agent's process.  Moments in seconds since the epoch."""

    version: str
    started_wall_s: float
    flags: dict[str, str] = field(default_factory=dict)
    # The file that it logs to, if that is one.
    log_file: str | None = None


class Pages:
    """Each method gives the body of one page."""

    def __init__(
        self,
        state: AgentState,
        about: About,
        containers: Callable[[], Awaitable[list[Container]]],
        as_json: AsJson,
        slice_s: float = SLICE_S,
    ) -> None:
        """`containers`: with what they use."""
        self._s = state
        self._about = about
        self._containers = containers
        self._as_json = as_json
        self._slice_s = slice_s

    async def state(self) -> bytes:
        s = self._s
        about = self._about
        head = shapes.agent(
            s,
            version_text=about.version,
            started_wall_s=about.started_wall_s,
            as_json=self._as_json,
        )
        if about.log_file is not None:
            head["external_log_file"] = about.log_file
        head["flags"] = about.flags
        books = [_Book(s, each) for each in listing.present(s)]
        completed = [_Book(s, each) for each in listing.completed(s)]
        pace = Pace(self._slice_s)
        lists = {
            "frameworks": [await self._framework(book, pace) for book in books],
            "completed_frameworks": [await self._framework(book, pace) for book in completed],
        }
        return joined(head, lists).encode()

    async def containers(self, container_id: str | None = None) -> bytes:
        """All containers, or the one of that id."""
        found = await self._containers()
        chosen = [each for each in found if container_id in (None, each.container_id.value)]
        return await self._of(
            lambda each: shapes.container(each, self._source(each), self._as_json), chosen
        )

    async def statistics(self) -> bytes:
        """What containers use, of those of which it is known."""
        found = await self._containers()
        known = [each for each in found if each.HasField("resource_statistics")]
        return await self._of(
            lambda each: shapes.usage(each, self._source(each), self._as_json), known
        )

    # ---- Parts --------------------------------------------------------------------

    async def _framework(self, book: _Book, pace: Pace) -> str:
        lists = {
            "executors": [await self._executor(page, pace) for page in book.executors],
            "completed_executors": [await self._executor(page, pace) for page in book.completed],
        }
        return joined(shapes.framework(book.framework), lists)

    async def _executor(self, page: _Page, pace: Pace) -> str:
        s, given = self._s, page.executor
        directory = posixpath.join(s.settings.work_dir, *given.sandbox)
        head = shapes.executor(given, directory)
        lists = {
            "tasks": await self._tasks(shapes.task, page.tasks, pace),
            "queued_tasks": await self._tasks(shapes.queued, page.queued, pace),
            "completed_tasks": await self._tasks(shapes.task, page.completed, pace),
        }
        await pace.step()
        return joined(head, lists)

    async def _tasks(
        self, shape: Callable[[AgentState, Task, AsJson], Shape], tasks: list[Task], pace: Pace
    ) -> list[str]:
        made: list[str] = []
        for task in tasks:
            made.append(text(shape(self._s, task, self._as_json)))
            await pace.step()
        return made

    def _source(self, given: Container) -> str:
        executor = self._s.containers.get(given.container_id.value)
        return listing.executor_info(executor).source if executor is not None else ""

    async def _each(self, shape: Callable[[T], Shape], items: Iterable[T]) -> list[str]:
        return await sliced(lambda item: text(shape(item)), items, self._slice_s)

    async def _of(self, shape: Callable[[T], Shape], items: Iterable[T]) -> bytes:
        return f"[{','.join(await self._each(shape, items))}]".encode()


class _Page:
    """The tasks of one executor, as they are now."""

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self.queued = [each for each in executor.tasks.values() if listing.is_queued(each)]
        self.tasks = [each for each in executor.tasks.values() if not listing.is_queued(each)]
        self.completed = list(executor.completed)


class _Book:
    """The executors of one framework, as they are now."""

    def __init__(self, s: AgentState, framework: Framework) -> None:
        self.framework = framework
        its = framework.framework_id
        self.executors = [_Page(each) for each in s.executors.values() if each.key[0] == its]
        self.completed = [_Page(each) for each in s.past if each.key[0] == its]
