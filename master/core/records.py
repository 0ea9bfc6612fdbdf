"""What the master knows: small records, no behaviour.

Maps are keyed by the text of the id.  A `link` is the number of the stream over
which a party is connected right now; the shell makes them up, never twice.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from master.core.history import Statuses
from master.core.ledger import Holder
from master.core.patience import Patience
from mesos_py.allocation import Need
from mesos_py.clock import Now
from mesos_py.constraints import Constraint, Host
from mesos_py.resources import Resources
from mesos_py.states import TASK_STAGING, TaskState
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from mesos_py.v1.maintenance_pb2 import InverseOfferStatus

_SHOWN: Final = ("labels", "discovery", "container", "health_check", "kill_policy")
ExecutorKey: TypeAlias = tuple[str, str]  # (agent_id, executor_id)


class KillCause(NamedTuple):
    """What the update of a task's end is to say, if it is our kill that ended it."""

    reason: pb.TaskStatus.Reason.ValueType
    message: str


@dataclass(slots=True)
class Task:
    """A task that was launched.  `state` is the newest that its agent reported.

    `update_state` and `update_uuid` are what was last forwarded to the framework;
    the task is kept until a terminal update has been acknowledged.
    """

    framework_id: str
    task_id: str
    agent_id: str
    name: str
    role: str
    resources: Resources
    executor_id: str | None = None
    state: TaskState.ValueType = TASK_STAGING
    statuses: Statuses = field(default_factory=Statuses)
    update_state: TaskState.ValueType | None = None
    update_uuid: bytes = b""
    launched_wall_s: float | None = None
    # On the monotonic clock; -inf: its agent did not say.
    launched_s: float = -math.inf
    ended_wall_s: float | None = None
    # It is on what is kept for short tasks.
    short: bool = False
    # What its end costs its framework, if that has said so.
    revocation_cost: float | None = None
    # Labels, discovery, container and so on, where the task has any.
    extras: pb.Task | None = None
    # Whether it is to be killed, and how: said again whenever its agent registers.
    kill_pending: bool = False
    pending_kill: pb.KillPolicy | None = None
    kill_cause: KillCause | None = None

    @property
    def holder(self) -> Holder:
        return Holder(self.framework_id, self.role, "task", self.task_id, self.short)

    @property
    def told_state(self) -> TaskState.ValueType:
        """What the framework may be told outside of the order of the updates: what was
        last forwarded to it (newer ones still wait), else the newest."""
        return self.update_state if self.update_state is not None else self.state


def cost_of(info: pb.TaskInfo | pb.Task) -> float | None:
    """What its framework says that its end costs; None for nothing said, and for what is
    no cost (from an agent: of a framework it is refused)."""
    cost = info.revocation_cost
    return cost if info.HasField("revocation_cost") and cost >= 0 else None


def extras_of(info: pb.TaskInfo | pb.Task, user: str) -> pb.Task | None:
    """What of a task is only shown: kept apart, since most tasks have none of it."""
    given = [name for name in _SHOWN if info.HasField(name)]
    if not given and not user and not info.limits:
        return None
    extras = pb.Task()
    for name in given:
        getattr(extras, name).CopyFrom(getattr(info, name))
    if user:
        extras.user = user
    for name, limit in info.limits.items():
        extras.limits[name].CopyFrom(limit)
    return extras if extras.ByteSize() else None


@dataclass(slots=True)
class Executor:
    """A custom executor; its own resources are charged once."""

    framework_id: str
    agent_id: str
    executor_id: str
    role: str
    info: pb.ExecutorInfo
    resources: Resources

    @property
    def holder(self) -> Holder:
        return Holder(self.framework_id, self.role, "executor", self.executor_id)


@dataclass(slots=True)
class Operation:
    """One whose outcome the framework, which gave it an id, has not acknowledged.

    `message` is what its agent was told, or said last; without an outcome it is pending.
    """

    framework_id: str
    agent_id: str
    message: pb.Operation

    @property
    def operation_id(self) -> str:
        return self.message.info.id.value

    @property
    def uuid(self) -> bytes:
        return self.message.uuid.value

    @property
    def pending(self) -> bool:
        return self.message.latest_status.state == pb.OPERATION_PENDING


class Turn(NamedTuple):
    """Which stream of which process: streams of one process may overtake each other."""

    instance: str = ""
    attempt: int = 0

    def is_late(self, last: Turn) -> bool:
        """Whether the same process has come with a later stream already."""
        return bool(self.instance) and self.instance == last.instance and self <= last


NO_TURN: Final = Turn()


@dataclass(slots=True)
class Offer:
    offer_id: str
    framework_id: str
    role: str
    agent_id: str
    resources: Resources
    # Set: it is kept for tasks that run no longer.
    max_task_s: float | None = None
    # When it was made, on the monotonic clock, and how long it lasts (0: for ever).
    made_s: float = 0.0
    timeout_s: float = 0.0


@dataclass(slots=True)
class InverseOffer:
    """The question whether a framework leaves an agent, and what it has there."""

    offer_id: str
    framework_id: str
    agent_id: str
    resources: Resources
    # The stream that it went out on.
    link: int


class InverseFilter(NamedTuple):
    """On this stream the framework is not asked before that moment."""

    link: int
    until_s: float


InverseKey: TypeAlias = tuple[str, str]  # (agent_id, framework_id)


@dataclass(slots=True)
class Inverse:
    """All about inverse offers.  `agents`: where somebody may have to be asked."""

    offers: dict[str, InverseOffer] = field(default_factory=dict)
    filters: dict[InverseKey, InverseFilter] = field(default_factory=dict)
    statuses: dict[InverseKey, InverseOfferStatus] = field(default_factory=dict)
    agents: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Tally:
    """How often something was refused, when last, and in which words."""

    code: str
    message: str
    count: int = 0
    last_wall_s: float = 0.0
    agent_id: str = ""


@dataclass(slots=True)
class OfferNumbers:
    """What became of offers.  `answer_s`: how long the answered ones (accepted or
    declined) were out, in all.  An expired one is among the rescinded."""

    sent: int = 0
    accepted: int = 0
    declined: int = 0
    expired: int = 0
    rescinded: int = 0
    answer_s: float = 0.0


@dataclass(slots=True)
class Needs:
    """What a framework says that it needs, and what of it operators allow.

    `rows` is that in the allocator's form, `cuts` says in words what is not in it.
    """

    stated: list[pb.Request] = field(default_factory=list)
    accepted: list[pb.Request] = field(default_factory=list)
    rows: tuple[Need, ...] = ()
    cuts: list[str] = field(default_factory=list)


@dataclass(slots=True)
class NeedsBook:
    """`unanswered`: frameworks that are to be told what became of their needs.
    `waiting`: those that were told last that they are not admitted."""

    unanswered: set[str] = field(default_factory=set)
    waiting: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Guarantees:
    """When they were looked up for everybody last, and for how many since."""

    pushed_s: float = -math.inf
    looked_up: int = 0


@dataclass(slots=True)
class Framework:
    framework_id: str
    info: pb.FrameworkInfo
    roles: tuple[str, ...]
    registered: Now
    link: int | None = None
    # None before its first offer.
    patience: Patience | None = None
    reregistered: Now | None = None
    unregistered: Now | None = None
    turn: Turn = NO_TURN
    # Known only from what agents reported; it has not subscribed to this master.
    recovered: bool = False
    # It had its id before this master knew it, so it may have tasks on agents that
    # have not come back yet; and kills of such tasks, which wait for them.
    from_before: bool = False
    early_kills: dict[str, pb.KillPolicy | None] = field(default_factory=dict)
    partition_aware: bool = False
    suppressed: frozenset[str] = frozenset()
    constraints_proto: sched.OfferConstraints | None = None
    constraints: dict[str, Constraint] = field(default_factory=dict)
    min_free: dict[str, Sequence[Resources]] = field(default_factory=dict)
    offers: set[str] = field(default_factory=set)
    tasks: dict[str, Task] = field(default_factory=dict)
    unreachable_tasks: dict[str, Task] = field(default_factory=dict)
    completed_tasks: deque[Task] = field(default_factory=deque)
    executors: dict[ExecutorKey, Executor] = field(default_factory=dict)
    # By uuid: the ids that it gave them are its own affair.
    operations: dict[bytes, Operation] = field(default_factory=dict)
    # The same by those ids, of which one may be that of several.
    operations_by_id: dict[str, dict[bytes, Operation]] = field(default_factory=dict)
    # All that was stated on this stream, for explanations.
    requests: list[pb.Request] = field(default_factory=list)
    needs: Needs = field(default_factory=Needs)
    # What it was told last: scalars, in thousandths.
    guaranteed: dict[str, int] = field(default_factory=dict)
    offers_sent: int = 0
    last_offer_wall_s: float | None = None
    refusals: dict[tuple[str, str], Tally] = field(default_factory=dict)
    # By role.
    numbers: dict[str, OfferNumbers] = field(default_factory=dict)

    @property
    def connected(self) -> bool:
        return self.link is not None

    @property
    def silent(self) -> bool:
        """Whether it left offers unanswered and is offered nothing for a while."""
        return self.patience is not None and self.patience.silent

    def find(self, task_id: str) -> Task | None:
        """A task that has not ended for the framework: on an agent, or on one cut off."""
        return self.tasks.get(task_id) or self.unreachable_tasks.get(task_id)

    @property
    def multi_role(self) -> bool:
        return any(c.type == pb.FrameworkInfo.Capability.MULTI_ROLE for c in self.info.capabilities)

    @property
    def refines(self) -> bool:
        """Whether it knows of reservations that were made of other reservations."""
        kind = pb.FrameworkInfo.Capability.RESERVATION_REFINEMENT
        return any(c.type == kind for c in self.info.capabilities)


@dataclass(slots=True)
class Standby:
    """An instance of a framework that waits to take over.

    `call` is its SUBSCRIBE, carried out when its turn has come.
    """

    link: int
    call: sched.Call
    turn: Turn
    # How many it was last told are promoted before it; -1: nothing yet.
    told_ahead: int = -1

    @property
    def name(self) -> str:
        """Who it says it is."""
        subscribe = self.call.subscribe
        given = (subscribe.framework_info.hostname, subscribe.client, subscribe.instance)
        return " ".join(part for part in given if part) or f"link {self.link}"


@dataclass(slots=True)
class Agent:
    agent_id: str
    info: pb.AgentInfo
    host: Host
    total: Resources
    version: str
    # None: not with this master.
    registered: Now | None
    capabilities: tuple[pb.AgentInfo.Capability.Type.ValueType, ...] = ()
    link: int | None = None
    turn: Turn = NO_TURN
    reregistered: Now | None = None
    # It is about to be cut off, and offered no more: it is silent, or has unregistered.
    leaving: bool = False
    # Set while the agent is unreachable (its row is then not in the ledger).
    unreachable: Now | None = None
    disconnected: Now | None = None
    # (framework_id, task_id) of all tasks placed here that have not been forgotten.
    tasks: set[tuple[str, str]] = field(default_factory=set)
    # The last tasks here whose end was acknowledged, with the uuid of that update: it may
    # come once more, when the framework has given the task's id to another task.
    ended: dict[tuple[str, str], bytes] = field(default_factory=dict)
    executors: set[tuple[str, str]] = field(default_factory=set)
    offers: set[str] = field(default_factory=set)
    # By uuid.
    operations: dict[bytes, Operation] = field(default_factory=dict)
    pings_unanswered: int = 0
    ping_sequence: int = 0
    # By an operator's word nothing is offered here, or all that runs here ends; as the
    # agent's record says, once that is stored.
    deactivated: bool = False
    drain: pb.DrainInfo | None = None
    # When its machine is to be absent, if it is.
    unavailability: pb.Unavailability | None = None
    # Whether it drops tasks that arrive, as far as is known here.
    told_to_drain: bool = False

    @property
    def draining(self) -> bool:
        return self.drain is not None and self.drain.state == pb.DRAINING

    @property
    def why_inactive(self) -> str:
        """Why nothing is offered there; empty if something is."""
        if self.draining:
            return "the agent is being drained by an operator"
        if self.drain is not None:
            return "the agent has been drained by an operator"
        if self.deactivated:
            return "the agent is deactivated by an operator"
        if self.leaving:
            return "the agent does not answer, or is about to end"
        return "" if self.connected else "the agent is disconnected"

    @property
    def connected(self) -> bool:
        return self.link is not None


@dataclass(slots=True)
class Expected:
    """An agent that was admitted before this master led, and is not back yet."""

    agent_id: str
    info: pb.AgentInfo


@dataclass(slots=True)
class Admission:
    """A registration that is answered once the registry has taken the agent's record.

    `made`: its id was made up here, and it does not know it yet.
    """

    agent_id: str
    link: int
    info: pb.AgentInfo
    register: agent_pb2.Call.Register
    turn: Turn
    made: bool


@dataclass(slots=True)
class Recovery:
    """What is left of taking over from the last leader.

    `missing`: of the `total` agents that were expected, those that have not come back.
    `held`: nothing is offered before enough of them are back.
    `postponed`: too many are missing to believe that they are lost.
    """

    total: int = 0
    missing: set[str] = field(default_factory=set)
    held: bool = False
    postponed: bool = False
