"""A master with agents that run tasks, all of them pretended: for trying out a framework.

::

    with FakeCluster({"a1": Resources.of(cpus=4, mem=512)}) as cluster:
        SchedulerDriver(MyScheduler(), framework, cluster.address).run()

Tasks take no time: each status follows when the one before it was acknowledged.  Offers
are made as soon as something is free and nothing of that agent is on offer; what was
refused comes back when something else becomes free there, or with REVIVE.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from mesos_py.errors import MesosPyError
from mesos_py.resources import EMPTY, Resources, total
from mesos_py.states import (
    TASK_FINISHED,
    TASK_KILLED,
    TASK_LOST,
    TASK_RUNNING,
    TASK_STAGING,
    TASK_STARTING,
    TaskState,
    is_terminal,
)
from mesos_py.testing.builders import make_offer, make_status
from mesos_py.testing.fake_master import FakeMaster, update_event
from mesos_py.v1.scheduler_pb2 import Call, Event
from mesos_py.v1.types_pb2 import Offer, TaskInfo, TaskStatus

States = Sequence[TaskState.ValueType]
FINISHES: States = (TASK_STARTING, TASK_RUNNING, TASK_FINISHED)


@dataclass
class _Agent:
    free: Resources
    refused: bool = False
    offer_id: str | None = None


@dataclass
class _Task:
    info: TaskInfo
    agent_id: str
    resources: Resources
    states: list[TaskState.ValueType]
    status: TaskStatus | None = None
    past: list[TaskState.ValueType] = field(default_factory=lambda: [TASK_STAGING])


class FakeCluster(FakeMaster):
    """See the module's docstring.

    agents: what each has, by id; the id is its host name too.
    outcome: the states that a task goes through, the last one terminal (or none: it
        stays where it is until it is killed).
    """

    def __init__(
        self,
        agents: Mapping[str, Resources],
        outcome: Callable[[TaskInfo], States] = lambda _: FINISHES,
        *,
        heartbeat_s: float = 15.0,
    ) -> None:
        super().__init__(heartbeat_s=heartbeat_s)
        self._agents = {agent_id: _Agent(what) for agent_id, what in agents.items()}
        self._outcome = outcome
        self._tasks: dict[str, _Task] = {}
        self._offered: dict[str, tuple[str, Resources]] = {}
        self._suppressed = False
        # (task id, agent id) of every launch, in order.
        self.launched: list[tuple[str, str]] = []

    def _on_subscribed(self) -> None:
        for agent in self._agents.values():
            self._take_back(agent)
            agent.refused = False  # by a subscription that has ended
        for task in self._tasks.values():
            # It may have been lost with the last stream: an agent repeats it.
            if task.status is not None:
                self.reply(update_event(task.status))
        self._offer()

    def _on_call(self, call: Call) -> None:
        match call.type:
            case Call.ACCEPT:
                self._accept(call.accept)
            case Call.DECLINE:
                self._decline([item.value for item in call.decline.offer_ids])
            case Call.ACKNOWLEDGE:
                self._acknowledged(call.acknowledge.task_id.value, call.acknowledge.uuid)
            case Call.KILL:
                self._kill(call.kill.task_id.value)
            case Call.RECONCILE:
                self._reconcile([item.task_id.value for item in call.reconcile.tasks])
            case Call.SUPPRESS:
                self._suppressed = True
            case Call.REVIVE:
                self._suppressed = False
                for agent in self._agents.values():
                    agent.refused = False
                self._offer()
            case _:
                pass

    # ---- Offers --------------------------------------------------------------

    def _offer(self) -> None:
        offers: list[Offer] = []
        for agent_id, agent in self._agents.items():
            if self._suppressed or agent.refused or agent.offer_id is not None or not agent.free:
                continue
            offer = make_offer(agent_id=agent_id, hostname=agent_id, resources=agent.free)
            agent.offer_id = offer.id.value
            self._offered[offer.id.value] = (agent_id, agent.free)
            agent.free = EMPTY
            offers.append(offer)
        if offers:
            self.reply(Event(type=Event.OFFERS, offers=Event.Offers(offers=offers)))

    def _take_back(self, agent: _Agent) -> None:
        """The agent's offer, if there is one, has ended."""
        if agent.offer_id is not None:
            _, resources = self._offered.pop(agent.offer_id)
            agent.free = agent.free + resources
            agent.offer_id = None

    def _decline(self, offer_ids: list[str]) -> None:
        for offer_id in offer_ids:
            if offer_id in self._offered:
                agent = self._agents[self._offered[offer_id][0]]
                self._take_back(agent)
                agent.refused = True

    def _accept(self, accept: Call.Accept) -> None:
        offer_ids = [item.value for item in accept.offer_ids]
        known = bool(offer_ids) and all(offer_id in self._offered for offer_id in offer_ids)
        if known:
            agent_id = self._offered[offer_ids[0]][0]
            agent = self._agents[agent_id]
            self._take_back(agent)
            agent.refused = True
        for operation in accept.operations:
            for info in operation.launch.task_infos:
                if not known:
                    self._lose(info, "an offer is unknown")
                    continue
                try:
                    self._launch(info, agent_id, agent)
                except MesosPyError as error:
                    self._lose(info, error.message)

    # ---- Tasks ---------------------------------------------------------------

    def _launch(self, info: TaskInfo, agent_id: str, agent: _Agent) -> None:
        resources = total(
            [
                Resources.from_proto("task.resources", info.resources),
                Resources.from_proto("executor.resources", info.executor.resources),
            ]
        )
        agent.free = agent.free - resources
        task = _Task(info, agent_id, resources, list(self._outcome(info)))
        self._tasks[info.task_id.value] = task
        self.launched.append((info.task_id.value, agent_id))
        self._report(task)

    def _lose(self, info: TaskInfo, why: str) -> None:
        status = make_status(
            info.task_id.value,
            TASK_LOST,
            agent_id=info.agent_id.value,
            acknowledged=False,
            message=why,
            reason=TaskStatus.REASON_INVALID_OFFERS,
        )
        self.reply(update_event(status))

    def _report(self, task: _Task) -> None:
        """Send the next state, if there is one and none is in flight."""
        if task.status is not None or not task.states:
            return
        state = task.states.pop(0)
        task.past.append(state)
        task.status = make_status(task.info.task_id.value, state, agent_id=task.agent_id)
        self.reply(update_event(task.status))
        if is_terminal(state):
            agent = self._agents[task.agent_id]
            agent.free = agent.free + task.resources
            agent.refused = False
            self._offer()

    def _acknowledged(self, task_id: str, uuid: bytes) -> None:
        task = self._tasks.get(task_id)
        if task is None or task.status is None or task.status.uuid != uuid:
            return
        ended = is_terminal(task.status.state)
        task.status = None
        if ended:
            del self._tasks[task_id]
        else:
            self._report(task)

    def _kill(self, task_id: str) -> None:
        task = self._tasks.get(task_id)
        if task is None:
            self._reconcile([task_id])
        elif not is_terminal(task.past[-1]):
            task.states = [TASK_KILLED]
            self._report(task)

    def _reconcile(self, task_ids: list[str]) -> None:
        for task_id in task_ids or list(self._tasks):
            task = self._tasks.get(task_id)
            status = make_status(
                task_id,
                TASK_LOST if task is None else task.past[-1],
                agent_id="" if task is None else task.agent_id,
                acknowledged=False,
                reason=TaskStatus.REASON_RECONCILIATION,
            )
            self.reply(update_event(status))


__all__ = ["FINISHES", "FakeCluster"]
