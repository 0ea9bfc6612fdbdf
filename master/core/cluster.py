"""The state of one master, and the few steps that every topic shares."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from dataclasses import dataclass

from master.allocator import base as alloc
from master.allocator.base import AgentRow, Allocator, FrameworkRow
from master.core.ledger import Holder
from master.core.limiter import Limiter
from master.core.machines import Machines
from master.core.news import News
from master.core.outbox import Outbox
from master.core.places import Places
from master.core.records import (
    Admission,
    Agent,
    Expected,
    Framework,
    Guarantees,
    Inverse,
    NeedsBook,
    Offer,
    OfferNumbers,
    Recovery,
    Standby,
    Tally,
    Task,
)
from master.core.registry import AGENT, Registry
from master.core.said import Said
from master.core.takings import Revoking
from master.core.tenants import TenantLedger
from master.core.timers import JUDGED, PULSE_S, Timers
from mesos_py.clock import Now
from mesos_py.errors import MesosPyError, shortened
from mesos_py.ids import IdSource
from mesos_py.v1 import agent_pb2, scheduler_pb2
from mesos_py.v1 import types_pb2 as pb

MAX_ENDED_OFFERS = 10_000
MAX_TALLIES = 100


@dataclass(frozen=True, slots=True)
class Options:
    """What the operator may choose; the defaults follow Mesos unless noted.

    `offer_timeout_s`: Mesos never expires offers, which lets one silent framework
    starve the others.  It is the most; each framework begins with
    `first_offer_timeout_s` (patience.py).  `revocation_grace_s`: what a framework has to
    choose what it gives up.  `agent_timeout_s`: from the loss of the link, or from the
    beginning of this leadership, until the agent counts as unreachable (Mesos: five
    missed pings of 15 s).  `standby_hold_s`: how long the standbys of a framework that
    has not subscribed to this master wait for the instance that was active before.
    """

    offer_timeout_s: float = 30.0
    first_offer_timeout_s: float = 2.0
    # From the question what a framework gives up to the end of what was chosen for it.
    revocation_grace_s: float = 5.0
    refuse_s: float = 5.0
    max_refuse_s: float = 365 * 86400.0
    heartbeat_s: float = 15.0
    max_standbys: int = 20
    standby_hold_s: float = 2.0
    agent_ping_s: float = 15.0
    agent_max_missed_pings: int = 5
    agent_timeout_s: float = 75.0
    max_completed_frameworks: int = 50
    max_completed_tasks: int = 1000
    max_unreachable_tasks: int = 1000
    max_task_bytes: int = 4 * 1024 * 1024
    allocation_window_s: float = 0.01
    # Allocation may take this share of the time; then cycles move apart.
    allocation_load: float = 0.4
    protocol_version: int = 1
    # Whether there is a registry that outlives this master.
    durable: bool = False
    # At most so many agents in this time are taken for lost (0: no limit).
    removal_limit: int = 0
    removal_per_s: float = 0.0
    # If more than so many in a hundred agents are missing after a change of leader, none
    # of them is taken for lost.
    recovery_removal_percent: float = 100.0
    # After a change of leader nothing is offered until this share of the agents is
    # back, or so much time has passed.
    allocation_recovery_factor: float = 0.8
    allocation_recovery_timeout_s: float = 10.0
    # Of the agents that are unreachable, and of those that are gone for good, so many.
    max_remembered_agents: int = 10_000


@dataclass(slots=True)
class AllocationClock:
    """When the next allocation cycle is due (see master.py), and how long they took."""

    wanted_since_s: float | None = None
    not_before_s: float = 0.0
    # Since when a cycle that is due waits.
    postponed_s: float | None = None
    seconds: float = 0.0
    longest_s: float = 0.0

    def note(self, took_s: float) -> None:
        self.seconds += took_s
        self.longest_s = max(self.longest_s, took_s)


class Cluster(Said):
    """All that the master knows.  Changed by the functions of this package only."""

    def __init__(
        self,
        options: Options,
        info: pb.MasterInfo,
        ids: IdSource,
        outbox: Outbox,
        allocator: Allocator,
        epoch: int = 0,
    ) -> None:
        super().__init__()
        self.options, self.info, self.ids = options, info, ids
        self.outbox, self.allocator = outbox, allocator
        # Which leadership this is: each has a higher number than those before it.
        self.epoch = epoch
        self.registry = Registry(outbox, durable=options.durable)
        self.timers = Timers()
        self.agents: dict[str, Agent] = {}
        # Admitted and not taken for lost, but not back yet: see recovery.
        self.expected: dict[str, Expected] = {}
        self.recovery = Recovery()
        # Registrations that wait for the registry, by agent.
        self.admissions: dict[str, Admission] = {}
        self.admission_of_link: dict[int, str] = {}
        # Agents of which frameworks were told that they are unreachable, the longest
        # first, and those that can never come back, with the moment of that.
        self.unreachable: dict[str, None] = {}
        self.gone: dict[str, float] = {}
        # Who is at an address, of `agents` and `expected`.
        self.places = Places()
        self.removals = Limiter(options.removal_limit, options.removal_per_s)
        self.frameworks: dict[str, Framework] = {}
        self.ledger = TenantLedger(self.frameworks)
        # (framework id, task id) by agent: thousands come back at once, and find their own.
        self.unreachable_on: dict[str, set[tuple[str, str]]] = {}
        self.completed_frameworks: OrderedDict[str, Framework] = OrderedDict()
        self.offers: dict[str, Offer] = {}
        # Why an offer is no more, for those who still try to use it.
        self.ended_offers: OrderedDict[str, str] = OrderedDict()
        self.agent_of_link: dict[int, str] = {}
        self.framework_of_link: dict[int, str] = {}
        # Instances that wait to take over, in order, and whose links those are.
        self.standbys: dict[str, list[Standby]] = {}
        self.standby_of_link: dict[int, str] = {}
        # What frameworks that were removed still occupy, until their processes are gone.
        self.lingering: dict[tuple[str, str, str, str], Holder] = {}
        # Planned absences: as the registry has them, and as they were decided last.
        self.machines = self.planned = Machines()
        self.inverse = Inverse()
        self.needs, self.guarantees = NeedsBook(), Guarantees()
        self.revoking = Revoking()
        # How many words of operators about an agent are on their way to the registry.
        self.deciding: Counter[str] = Counter()
        self.counters: Counter[str] = Counter()
        # By role, those of frameworks that are no more included.
        self.offer_numbers: dict[str, OfferNumbers] = {}
        self.allocation = AllocationClock()
        # None: nobody watches.
        self.news: News | None = None

    # ---- New ids ---------------------------------------------------------

    def new_framework_id(self) -> str:
        """One that nobody has: a framework may bring any id, also one of this form."""
        made = self.ids.framework_id()
        while made in self.frameworks or made in self.completed_frameworks:
            made = self.ids.framework_id()
        return made

    def new_agent_id(self) -> str:
        made = self.ids.agent_id()
        while made in self.agents or AGENT + made in self.registry:
            made = self.ids.agent_id()
        return made

    # ---- Output ----------------------------------------------------------

    def drop(self, reason: str, **ids: object) -> None:
        """Something is ignored or refused: count it and have it logged."""
        self.counters[f"dropped/{reason}"] += 1
        self.outbox.dropped(reason, **ids)

    def to_framework(self, framework: Framework, event: scheduler_pb2.Event) -> bool:
        """Send to the framework if it is connected; says whether it is."""
        if framework.link is None:
            return False
        self.outbox.to_framework(framework.link, event)
        return True

    def to_agent(self, agent: Agent, event: agent_pb2.Event) -> bool:
        if agent.link is None:
            return False
        self.outbox.to_agent(agent.link, event)
        return True

    def refuse_call(
        self,
        framework: Framework,
        call: scheduler_pb2.Call.Type.ValueType,
        error: MesosPyError,
        now: Now,
    ) -> None:
        """Tell the framework that its call was not carried out, and why."""
        name = scheduler_pb2.Call.Type.Name(call)
        # What the peer sent is part of these texts, and it may have sent much.
        message = shortened(error.message)
        self.drop(f"call-{name.lower()}", framework=framework.framework_id, why=message)
        self.tally(framework, error.code, f"{name}: {message}", now)
        self.to_framework(
            framework,
            scheduler_pb2.Event(
                type=scheduler_pb2.Event.REFUSED,
                refused=scheduler_pb2.Event.Refused(
                    call=call,
                    code=error.code,
                    field=shortened(error.fields.get("field", error.fields.get("kind", ""))),
                    value=shortened(error.fields.get("value", error.fields.get("name", ""))),
                    message=message,
                ),
            ),
        )

    def tally(
        self, framework: Framework, code: str, message: str, now: Now, agent_id: str = ""
    ) -> None:
        """Count a refusal that concerns the framework, for explanations."""
        key = (code, agent_id)
        entry = framework.refusals.get(key)
        if entry is None:
            if len(framework.refusals) >= MAX_TALLIES:
                framework.refusals.pop(next(iter(framework.refusals)))
            entry = framework.refusals[key] = Tally(code, message, agent_id=agent_id)
        entry.message = shortened(message)
        entry.count += 1
        entry.last_wall_s = now.wall_s

    # ---- Judgements ------------------------------------------------------

    def judge(self, kind: str, name: str, at_s: float, now: Now) -> None:
        """Set a deadline at which an agent or a framework is judged for its silence."""
        self.timers.set(kind, name, at_s)
        if not self.timers.has("pulse", ""):
            self.timers.set("pulse", "", now.monotonic_s + PULSE_S)

    def keep_pulse(self, now: Now) -> None:
        if self.timers.any_of(JUDGED):
            self.timers.set("pulse", "", now.monotonic_s + PULSE_S)

    # ---- Allocation ------------------------------------------------------

    def want_allocation(self, now: Now) -> None:
        """Something may be offered now: a cycle is due when the window has passed."""
        if self.allocation.wanted_since_s is None:
            self.allocation.wanted_since_s = now.monotonic_s

    def freed(self, agent_id: str, now: Now) -> None:
        self.allocator.tell(alloc.Freed(agent_id))
        if agent_id in self.revoking.agents:
            self.revoking.touched.add(agent_id)
        self.want_allocation(now)

    def tell_agent(self, agent: Agent, now: Now, attributes_changed: bool = False) -> None:
        """Tell the allocator how the agent stands."""
        why = agent.why_inactive
        reachable = agent.connected and not agent.leaving
        row = AgentRow(agent.agent_id, agent.host, agent.total, not why, why, reachable)
        self.allocator.tell(alloc.AgentChanged(row, attributes_changed))
        if agent.agent_id in self.revoking.agents:
            self.revoking.touched.add(agent.agent_id)
        if agent.unavailability is not None:
            self.inverse.agents.add(agent.agent_id)
        if self.news is not None:
            self.news.agent_changed(agent)
        self.want_allocation(now)

    def tell_framework(self, framework: Framework, now: Now) -> None:
        """Tell the allocator how the framework stands."""
        gpu = pb.FrameworkInfo.Capability.GPU_RESOURCES
        row = FrameworkRow(
            framework_id=framework.framework_id,
            name=framework.info.name,
            roles=framework.roles,
            suppressed=framework.suppressed,
            active=framework.connected and not framework.silent,
            silent=framework.silent,
            gpu_capable=any(c.type == gpu for c in framework.info.capabilities),
            min_free=framework.min_free,
            constraints=framework.constraints,
            priority=framework.info.priority,
            needs=framework.needs.rows,
            refines=framework.refines,
        )
        self.allocator.tell(alloc.FrameworkChanged(row))
        if self.machines:
            self.inverse.agents.update(self.agents)
        if self.news is not None:
            self.news.framework_changed(framework)
        self.want_allocation(now)

    # ---- Things that end -------------------------------------------------

    def release(self, agent_id: str, holder: Holder, now: Now) -> None:
        """The holder's processes are gone: what it had is free again."""
        if self.ledger.release(agent_id, holder):
            self.freed(agent_id, now)

    def linger(self, agent_id: str, holder: Holder) -> None:
        """The holder's framework is gone, its processes are not yet."""
        self.lingering[agent_id, holder.framework_id, holder.kind, holder.name] = holder

    def lingers(self, agent_id: str, framework_id: str, kind: str, name: str) -> bool:
        return (agent_id, framework_id, kind, name) in self.lingering

    def settle(self, agent_id: str, framework_id: str, kind: str, name: str, now: Now) -> bool:
        """Release what lingered under that name; says whether anything did."""
        holder = self.lingering.pop((agent_id, framework_id, kind, name), None)
        if holder is not None:
            self.release(agent_id, holder, now)
            self.emptier(agent_id, now)
        return holder is not None

    def emptier(self, agent_id: str, now: Now) -> None:
        """Something on the agent is no more: if it is being drained, that may be all."""
        agent = self.agents.get(agent_id)
        if agent is not None and agent.draining:
            self.timers.set("drained", agent_id, now.monotonic_s)

    def remember_offer(self, offer_id: str, why: str) -> None:
        self.ended_offers[offer_id] = why
        if len(self.ended_offers) > MAX_ENDED_OFFERS:
            self.ended_offers.popitem(last=False)

    def unreachable_task(self, framework: Framework, task: Task) -> None:
        """The task's agent is away, and the framework was told so."""
        framework.unreachable_tasks[task.task_id] = task
        there = self.unreachable_on.setdefault(task.agent_id, set())
        there.add((framework.framework_id, task.task_id))

    def reachable(self, framework: Framework, task_id: str) -> None:
        """The task counts as unreachable no more, if it did."""
        task = framework.unreachable_tasks.pop(task_id, None)
        if task is None:
            return
        there = self.unreachable_on[task.agent_id]
        there.discard((framework.framework_id, task_id))
        if not there:
            del self.unreachable_on[task.agent_id]

    def unreachable_tasks_on(self, agent_id: str) -> list[tuple[Framework, Task]]:
        return [
            (framework := self.frameworks[framework_id], framework.unreachable_tasks[task_id])
            for framework_id, task_id in sorted(self.unreachable_on.get(agent_id, ()))
        ]

    def complete(self, framework: Framework, task: Task, now: Now) -> None:
        """Move a task that has ended to the bounded history."""
        framework.tasks.pop(task.task_id, None)
        self.reachable(framework, task.task_id)
        agent = self.agents.get(task.agent_id)
        if agent is not None:
            agent.tasks.discard((task.framework_id, task.task_id))
            self.emptier(task.agent_id, now)
        if task.ended_wall_s is None:
            task.ended_wall_s = now.wall_s
        framework.completed_tasks.append(task)

    def retire(self, framework: Framework) -> None:
        """The framework is no more: into the bounded history."""
        del self.frameworks[framework.framework_id]
        self.completed_frameworks[framework.framework_id] = framework
        if self.news is not None:
            self.news.framework_removed(framework)
        while len(self.completed_frameworks) > self.options.max_completed_frameworks:
            self.completed_frameworks.popitem(last=False)

    def recall(self, framework: Framework, agent_id: str, task_id: str) -> Task | None:
        """Take a task out of the history again: its agent has come back with it."""
        for task in reversed(framework.completed_tasks):
            if (task.agent_id, task.task_id) == (agent_id, task_id):
                framework.completed_tasks.remove(task)
                return task
        return None

    def new_history(self) -> deque[Task]:
        return deque(maxlen=self.options.max_completed_tasks)
