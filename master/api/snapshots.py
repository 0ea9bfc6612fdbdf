"""The long lists that operators ask for, made a little at a time.

A cluster of 50,000 agents has 100,000 tasks: seconds of work, in which nobody else was
heard if they were taken in one step.  So what there is gets written down in one short
step, and is turned into messages in slices, between which the master goes on.  Each entry
is in the answer once, as it is when its turn comes; agents that went away meanwhile are
left out.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

from master.api import convert
from master.api.slices import SLICE_S, sliced
from master.core.cluster import Cluster
from master.core.records import Agent, Framework, Task
from mesos_py.errors import NotFound
from mesos_py.v1 import operator_pb2 as op

T = TypeVar("T")
M = TypeVar("M")
Answer = Coroutine[Any, Any, op.Response]


class Snapshots:
    """Each method writes down what there is when it is called; the answer is awaited."""

    def __init__(self, cluster: Callable[[], Cluster], slice_s: float = SLICE_S) -> None:
        self._cluster = cluster
        self._slice_s = slice_s

    def agents(self) -> Answer:
        c = self._cluster()
        there = list(c.agents.values())
        absent = [(agent_id, "expected") for agent_id in c.expected]
        absent += [(agent_id, "gone") for agent_id in c.gone]

        def one(agent: Agent) -> op.Response.GetAgents.Agent | None:
            if c.agents.get(agent.agent_id) is not agent:
                return None
            return convert.agent_message(c, agent)

        async def answer() -> op.Response:
            found = await self._sliced(one, there)
            found += await self._sliced(lambda each: convert.absent_agent_message(c, *each), absent)
            return op.Response(
                type=op.Response.GET_AGENTS, get_agents=op.Response.GetAgents(agents=found)
            )

        return answer()

    def frameworks(self) -> Answer:
        c = self._cluster()
        present, completed = list(c.frameworks.values()), list(c.completed_frameworks.values())

        def one(framework: Framework) -> op.Response.GetFrameworks.Framework:
            return convert.framework_message(c, framework)

        async def answer() -> op.Response:
            found = op.Response.GetFrameworks(
                frameworks=await self._sliced(one, present),
                completed_frameworks=await self._sliced(one, completed),
            )
            return op.Response(type=op.Response.GET_FRAMEWORKS, get_frameworks=found)

        return answer()

    def executors(self) -> Answer:
        there = [
            executor
            for framework in self._cluster().frameworks.values()
            for executor in framework.executors.values()
        ]

        async def answer() -> op.Response:
            found = await self._sliced(convert.executor_message, there)
            return op.Response(
                type=op.Response.GET_EXECUTORS,
                get_executors=op.Response.GetExecutors(executors=found),
            )

        return answer()

    def tasks(self, framework_id: str = "", task_id: str = "") -> Answer:
        """Raises NotFound for a framework that nobody knows."""
        c = self._cluster()
        owners = [*c.frameworks.values(), *c.completed_frameworks.values()]
        if framework_id:
            owners = [each for each in owners if each.framework_id == framework_id]
            if not owners:
                raise NotFound("framework", framework_id)

        def wanted(tasks: Iterable[Task]) -> list[Task]:
            return [task for task in tasks if not task_id or task.task_id == task_id]

        live = [task for each in owners for task in wanted(each.tasks.values())]
        away = [task for each in owners for task in wanted(each.unreachable_tasks.values())]
        ended = [task for each in owners for task in wanted(each.completed_tasks)]

        async def answer() -> op.Response:
            found = op.Response.GetTasks()
            # An entry at a time into the answer: as a list beside it all would be there twice.
            await self._sliced(lambda each: found.tasks.append(convert.task_message(each)), live)
            await self._sliced(
                lambda each: found.unreachable_tasks.append(convert.task_message(each)), away
            )
            await self._sliced(
                lambda each: found.completed_tasks.append(convert.task_message(each)), ended
            )
            return op.Response(type=op.Response.GET_TASKS, get_tasks=found)

        return answer()

    def state(self) -> Answer:
        parts = (self.tasks(), self.executors(), self.frameworks(), self.agents())

        async def answer() -> op.Response:
            try:
                tasks, executors, frameworks, agents = [await part for part in parts]
            finally:
                # Who asked may be gone before the last one has begun.
                for part in parts:
                    part.close()
            found = op.Response.GetState(
                get_tasks=tasks.get_tasks,
                get_executors=executors.get_executors,
                get_frameworks=frameworks.get_frameworks,
                get_agents=agents.get_agents,
            )
            return op.Response(type=op.Response.GET_STATE, get_state=found)

        return answer()

    async def _sliced(self, convert: Callable[[T], M | None], items: Iterable[T]) -> list[M]:
        return await sliced(convert, items, self._slice_s)
