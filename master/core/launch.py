"""ACCEPT: the whole call is checked first, then claims are made, then orders go out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from master.core import groups, offer_numbers, operations, reserving, statuses, volume_rules
from master.core import offers as offering
from master.core.cluster import Cluster
from master.core.ledger import Holder
from master.core.records import Agent, Executor, Framework, Offer, Task, cost_of, extras_of
from master.core.validate import executor_resources, require_role, task_resources
from mesos_py.clock import Now
from mesos_py.conversions import Conversion
from mesos_py.enums import name_of
from mesos_py.errors import (
    InsufficientResources,
    InvalidValue,
    MesosPyError,
    TooLarge,
    shortened,
    shown,
)
from mesos_py.resources import EMPTY, Resources, total
from mesos_py.states import TASK_DROPPED, TASK_ERROR
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb

Operation = pb.Offer.Operation
LAUNCHES: Final = frozenset({Operation.LAUNCH, Operation.LAUNCH_GROUP})
_INVALID: Final = {
    Operation.LAUNCH: pb.TaskStatus.REASON_TASK_INVALID,
    Operation.LAUNCH_GROUP: pb.TaskStatus.REASON_TASK_GROUP_INVALID,
}
Reason: TypeAlias = pb.TaskStatus.Reason.ValueType

# Of one call, besides launches: each is an event of its own for the agent.
MAX_OPERATIONS: Final = 1000
# Characters of what is kept with a task that was not launched.
_MAX_WHY: Final = 2_000


@dataclass(slots=True)
class Order:
    """What the agent is sent together: tasks, in one RUN_TASKS, or an operation."""

    # Whether they are one group, and not just some that follow each other.
    group: bool = False
    # Instead of tasks: what is done to the agent's resources.
    operation: pb.Offer.Operation | None = None
    infos: list[pb.TaskInfo] = field(default_factory=list)
    new_executors: list[str] = field(default_factory=list)


class Acceptance:
    """One valid ACCEPT while it is carried out: what is left, what will be claimed."""

    def __init__(self, framework: Framework, agent: Agent, offers: list[Offer]) -> None:
        self.framework = framework
        self.agent = agent
        self.offers = offers
        self.role = offers[0].role
        # Set: all of it is kept for tasks that run no longer than the shortest allows.
        limits = [offer.max_task_s for offer in offers if offer.max_task_s is not None]
        self.max_task_s = min(limits, default=None)
        self.offered: Resources = total(offer.resources for offer in offers)
        self.left = self.offered
        # What the agent will have, and how it comes to that.
        self.total: Resources = agent.total
        self.conversions: list[Conversion] = []
        self.claims: list[tuple[Holder, Resources]] = []
        self.tasks: dict[str, Task] = {}
        self.orders: list[Order] = []
        self.executors: dict[str, Executor] = {}
        self.errors: list[tuple[pb.TaskInfo, Reason, MesosPyError]] = []
        # Of all groups of the call, refused ones too.
        self._group_bytes = 0
        # Amounts that all its operations name, likewise.
        self._named = 0
        # With what is planned; None: not asked for yet.
        self._waiting: operations.Waiting | None = None
        self._told: reserving.Told | None = None
        self._multi_role = framework.multi_role

    def take(self, c: Cluster, info: pb.TaskInfo, now: Now) -> None:
        """Plan one task; raises what is wrong with it and then plans nothing."""
        last = self.orders[-1] if self.orders else None
        if last is None or last.group or last.operation is not None:
            self.orders.append(Order())
        self._take(c, info, self.orders[-1], now)

    def take_group(self, c: Cluster, group: pb.Offer.Operation.LaunchGroup, now: Now) -> None:
        """Plan all tasks of a group; raises what is wrong with one of them, or with all, and
        then plans none."""
        self._group_bytes += groups.sent_bytes(group)
        if self._group_bytes > groups.MAX_BYTES:
            text = f"the groups of the call are {self._group_bytes} bytes, with their executors"
            raise TooLarge(f"{text}, at most {groups.MAX_BYTES} are taken", field="task_group")
        infos = groups.complete(group, self.framework)
        order = Order(group=True)
        before = (self.left, len(self.claims), len(self.tasks), len(self.executors))
        for info in infos:
            try:
                self._take(c, info, order, now)
            except MesosPyError as error:
                self._back_to(*before)
                raise InvalidValue("task_group", info.task_id.value, error.message) from error
        self.orders.append(order)

    def convert(self, operation: pb.Offer.Operation) -> None:
        """Plan what it makes of what is left; raises what is wrong with it and then plans
        nothing."""
        self._named += reserving.require_few(operation)
        if self._named > reserving.MAX_NAMED:
            text = f"the operations of the call name {self._named} amounts"
            text = f"resources: {text}, at most {reserving.MAX_NAMED} are taken"
            raise TooLarge(text, field="resources")
        operations.allocate(operation, self.role)
        waiting = self._waiting
        if operation.HasField("id"):
            self._waiting = waiting or operations.waiting(self.agent, self.framework)
            waiting = self._waiting.require_room(self.agent, operation)
        if self.max_task_s is not None:
            # It would not come back to them.
            name = name_of(Operation.Type, operation.type)
            raise InvalidValue("operations.type", name, "is not for what is kept for short tasks")
        conversion = reserving.asked_by_framework(
            self.framework, self.agent, self.role, operation, self.total, self.left
        )
        left, then = conversion.apply(self.left), conversion.apply(self.total)
        self._told = self._told or reserving.told(self.total)
        self._told = reserving.require_bounds(self._told, conversion, self.total, then)
        self._waiting, self.left, self.total = waiting, left, then
        self.conversions.append(conversion)
        self.orders.append(Order(operation=operation))

    def _back_to(self, left: Resources, claims: int, tasks: int, executors: int) -> None:
        """Forget what was planned since there were so many."""
        self.left = left
        del self.claims[claims:]
        while len(self.tasks) > tasks:
            self.tasks.popitem()
        while len(self.executors) > executors:
            self.executors.popitem()

    def _take(self, c: Cluster, info: pb.TaskInfo, order: Order, now: Now) -> None:
        framework, agent_id = self.framework, self.agent.agent_id
        resources = task_resources(
            framework, info, agent_id, c.options.max_task_bytes, in_group=order.group
        )
        require_role(info, self.role)
        resources = volume_rules.uses(info, resources, self.total)
        task_id = info.task_id.value
        if task_id in self.tasks:
            raise InvalidValue("task_id", task_id, "is in this call twice")
        if c.lingers(agent_id, framework.framework_id, "task", task_id):
            raise InvalidValue("task_id", task_id, "an older task with this id is still ending")
        executor: Executor | None = None
        executor_id: str | None = None
        if info.HasField("executor"):
            executor_id = info.executor.executor_id.value
            executor = self._new_executor(c, info, in_group=order.group)
        needed = resources
        if executor is not None:
            volume_rules.require_apart(resources, executor.resources)
            needed = resources + executor.resources
        self.left = self._without(needed)
        task = Task(
            framework_id=framework.framework_id,
            task_id=task_id,
            agent_id=agent_id,
            name=info.name,
            role=self.role,
            resources=resources,
            executor_id=executor_id,
            launched_wall_s=now.wall_s,
            launched_s=now.monotonic_s,
            short=self.max_task_s is not None,
            revocation_cost=cost_of(info),
            extras=extras_of(info, info.command.user),
        )
        if executor is not None:
            self.executors[executor.executor_id] = executor
            order.new_executors.append(executor.executor_id)
            if executor.resources:
                self.claims.append((executor.holder, executor.resources))
        self.claims.append((task.holder, resources))
        self._limit_time(info)
        self.tasks[task_id] = task
        if self._multi_role:
            for resource in info.resources:
                resource.allocation_info.role = self.role
        order.infos.append(info)

    def _without(self, needed: Resources) -> Resources:
        """What is left then."""
        if not self.left.contains(needed):
            name, wanted, there = self.left.shortfalls(needed)[0]
            volume_rules.require_offered(name, self.left)
            raise InsufficientResources(
                f"resources.{name}: {wanted} wanted, the offers have {there} left",
                field=f"resources.{name}",
                value=wanted,
            )
        return self.left - needed

    def _limit_time(self, info: pb.TaskInfo) -> None:
        """Have the agent end the task in time, if it is on what is kept for short ones."""
        if self.max_task_s is None:
            info.ClearField("short")
            return
        info.short = True
        most_ns = int(self.max_task_s * 1e9)
        if info.HasField("max_completion_time"):
            most_ns = min(most_ns, info.max_completion_time.nanoseconds)
        info.max_completion_time.nanoseconds = most_ns

    def _new_executor(self, c: Cluster, info: pb.TaskInfo, *, in_group: bool) -> Executor | None:
        """The task's executor; None if it runs already, or is planned in this call."""
        framework, agent_id = self.framework, self.agent.agent_id
        executor_id = info.executor.executor_id.value
        running = framework.executors.get((agent_id, executor_id))
        running = running or self.executors.get(executor_id)
        resources = executor_resources(framework, info.executor, running, in_group=in_group)
        info.executor.framework_id.value = framework.framework_id
        if self._multi_role:
            role = self.role if running is None else running.role
            for resource in info.executor.resources:
                resource.allocation_info.role = role
        if running is not None:
            return None
        if c.lingers(agent_id, framework.framework_id, "executor", executor_id):
            raise InvalidValue(
                "executor.executor_id", executor_id, "an older executor with this id still ends"
            )
        if resources and self.max_task_s is not None:
            # Nothing would ever end it: it would turn what is kept for short tasks into
            # room of its own.  Its tasks may come, once it runs on other resources.
            raise InvalidValue(
                "executor.resources",
                str(resources),
                f"an executor cannot be started on what is kept for tasks of at most "
                f"{self.max_task_s:g} s",
            )
        resources = volume_rules.uses_of_executor(info.executor, resources, self.total)
        kept = pb.ExecutorInfo()
        kept.CopyFrom(info.executor)
        return Executor(framework.framework_id, agent_id, executor_id, self.role, kept, resources)


def accept(c: Cluster, framework: Framework, call: sched.Call.Accept, now: Now) -> None:
    try:
        _require_few(call)
        offers = usable_offers(c, framework, call)
    except InvalidValue as unusable:
        refuse_all(c, framework, call, unusable, now)
        return
    plan = Acceptance(framework, c.agents[offers[0].agent_id], offers)
    for operation in call.operations:
        apply(c, plan, operation, now)
    ids = [offer.offer_id for offer in offers]
    c.ledger.claim(plan.agent.agent_id, plan.claims, ids, conversions=plan.conversions)
    for offer in offers:
        offer_numbers.ended(c, offer, "accepted", now)
        offering.answered(c, offer, now)
        offering.forget(c, offer, "accepted already")
    c.counters["offers_accepted"] += len(offers)
    launch(c, plan)
    if plan.conversions:
        reserving.changed(c, plan.agent, now)
    if plan.tasks and plan.agent.unavailability is not None:
        c.inverse.agents.add(plan.agent.agent_id)
        c.want_allocation(now)
    filters = call.filters if call.HasField("filters") else None
    if plan.left:
        seconds = offering.refuse_seconds(c, filters)
        refused = plan.left
        if plan.conversions:
            refused = reserving.without_fresh(refused, plan.offered)
        if refused:
            offering.note_refusal(c, offers[0], refused, seconds, now)
        c.freed(plan.agent.agent_id, now)
    for info, reason, error in plan.errors:
        fail(c, plan, info, reason, error, now)


def _require_few(call: sched.Call.Accept) -> None:
    """Raises InvalidValue for more operations than an agent is sent at once."""
    number = sum(operation.type not in LAUNCHES for operation in call.operations)
    if number > MAX_OPERATIONS:
        reason = f"must be at most {MAX_OPERATIONS}, launches left out"
        raise InvalidValue("operations", number, reason)


def usable_offers(c: Cluster, framework: Framework, call: sched.Call.Accept) -> list[Offer]:
    """The offers of the call.

    Raises InvalidValue unless there is one, none is there twice, and all are
    live, this framework's, of one role and one agent (in this order, as Mesos), and all
    or none kept for short tasks.
    """
    if not call.offer_ids:
        raise InvalidValue("offer_ids", "[]", "must name at least one offer")
    ids: set[str] = set()
    for item in call.offer_ids:
        if item.value in ids:
            raise InvalidValue("offer_ids", item.value, "is in the call twice")
        ids.add(item.value)
    found: list[Offer] = []
    for offer_id in (item.value for item in call.offer_ids):
        offer = c.offers.get(offer_id)
        if offer is None:
            why = c.ended_offers.get(offer_id, "unknown")
            raise InvalidValue("offer_ids", offer_id, f"offer gone: {why}")
        if offer.framework_id != framework.framework_id:
            raise InvalidValue("offer_ids", offer_id, "is another framework's offer")
        found.append(offer)
    _require_alike(found)
    return found


def _require_alike(offers: list[Offer]) -> None:
    first = offers[0]
    for offer in offers:
        if offer.role != first.role:
            raise InvalidValue("offer_ids", offer.offer_id, "the offers are of several roles")
    for offer in offers:
        if offer.agent_id != first.agent_id:
            raise InvalidValue("offer_ids", offer.offer_id, "the offers are of several agents")
    for offer in offers:
        if (offer.max_task_s is None) != (first.max_task_s is None):
            reason = "some of the offers are kept for short tasks, others are not"
            raise InvalidValue("offer_ids", offer.offer_id, reason)


def tasks_of(operation: pb.Offer.Operation) -> Iterable[pb.TaskInfo]:
    if operation.type == Operation.LAUNCH:
        return operation.launch.task_infos
    if operation.type == Operation.LAUNCH_GROUP:
        return operation.launch_group.task_group.tasks
    return ()


def refuse_all(
    c: Cluster, framework: Framework, call: sched.Call.Accept, error: MesosPyError, now: Now
) -> None:
    """The call is void: its live offers come back, none of its tasks starts."""
    for item in call.offer_ids:
        offer = c.offers.get(item.value)
        if offer is not None and offer.framework_id == framework.framework_id:
            offering.withdraw(c, offer, "used in a call that was refused", now)
    c.refuse_call(framework, sched.Call.ACCEPT, error, now)
    for operation in call.operations:
        if operation.type not in LAUNCHES:
            operations.refuse(c, framework, operation, error)
        for info in tasks_of(operation):
            if info.task_id.value in framework.tasks:
                # The call has come twice: what it launched the first time lives.
                c.drop("refused-task-lives", task=info.task_id.value)
                continue
            status = statuses.master_status(
                info.task_id.value,
                info.agent_id.value,
                statuses.for_framework(framework, TASK_DROPPED),
                pb.TaskStatus.REASON_INVALID_OFFERS,
                error.message,
                now,
            )
            statuses.send(c, framework, status)


def apply(c: Cluster, plan: Acceptance, operation: pb.Offer.Operation, now: Now) -> None:
    """Plan one operation; what is wrong with it concerns it alone."""
    if operation.type in LAUNCHES and operation.HasField("id"):
        error = InvalidValue("operations.id", operation.id.value, "is not for launches")
        plan.errors.extend((info, _INVALID[operation.type], error) for info in tasks_of(operation))
    elif operation.type == Operation.LAUNCH:
        for info in operation.launch.task_infos:
            try:
                plan.take(c, info, now)
            except MesosPyError as error:
                plan.errors.append((info, pb.TaskStatus.REASON_TASK_INVALID, error))
    elif operation.type == Operation.LAUNCH_GROUP:
        _apply_group(c, plan, operation.launch_group, now)
    else:
        try:
            plan.convert(operation)
        except MesosPyError as error:
            operations.fail(c, plan.framework, operation, error, now)


def _apply_group(
    c: Cluster, plan: Acceptance, group: pb.Offer.Operation.LaunchGroup, now: Now
) -> None:
    try:
        plan.take_group(c, group, now)
    except MesosPyError as error:
        if not group.task_group.tasks:
            # There is no task that could be told.
            c.refuse_call(plan.framework, sched.Call.ACCEPT, error, now)
        reason = pb.TaskStatus.REASON_TASK_GROUP_INVALID
        plan.errors.extend((info, reason, error) for info in group.task_group.tasks)


def launch(c: Cluster, plan: Acceptance) -> None:
    """Everything is claimed: write it down and send the agent its orders."""
    if plan.tasks:
        _note(c, plan)
    described = False
    for order in plan.orders:
        if order.operation is not None:
            operations.order(c, plan.agent, plan.framework, order.operation, describe=not described)
            # Once for all of the call: it may be much larger than they are.
            described = described or order.operation.HasField("id")
        elif order.infos:
            c.to_agent(plan.agent, _run_tasks(plan.framework, order))


def _note(c: Cluster, plan: Acceptance) -> None:
    framework, agent = plan.framework, plan.agent
    for executor_id, executor in plan.executors.items():
        framework.executors[agent.agent_id, executor_id] = executor
        agent.executors.add((framework.framework_id, executor_id))
    framework.tasks.update(plan.tasks)
    if c.news is not None:
        for task in plan.tasks.values():
            c.news.task_added(task)
    if framework.early_kills:
        for task_id in plan.tasks:
            # It was meant for an older task with this id, which is no more.
            framework.early_kills.pop(task_id, None)
    agent.tasks.update((framework.framework_id, task_id) for task_id in plan.tasks)
    c.counters["tasks_launched"] += len(plan.tasks)


def _run_tasks(framework: Framework, order: Order) -> agent_pb2.Event:
    event = agent_pb2.Event(type=agent_pb2.Event.RUN_TASKS)
    run = event.run_tasks
    run.framework_info.MergeFrom(framework.info)
    run.tasks.extend(order.infos)
    run.group = order.group
    for executor_id in order.new_executors:
        run.new_executors.add(value=executor_id)
    return event


def fail(
    c: Cluster,
    plan: Acceptance,
    info: pb.TaskInfo,
    reason: Reason,
    error: MesosPyError,
    now: Now,
) -> None:
    """The task is not launched: TASK_ERROR, and a place in the history."""
    framework = plan.framework
    # It is kept, and names what a framework has sent.
    why = shortened(error.message, _MAX_WHY)
    c.counters["tasks_invalid"] += 1
    c.tally(framework, error.code, f"task {shown(info.task_id.value)}: {error.message}", now)
    status = statuses.master_status(
        info.task_id.value, plan.agent.agent_id, TASK_ERROR, reason, why, now
    )
    task_id = info.task_id.value
    if task_id and task_id not in framework.tasks and task_id not in framework.unreachable_tasks:
        task = Task(
            framework_id=framework.framework_id,
            task_id=task_id,
            agent_id=plan.agent.agent_id,
            name=info.name,
            role=plan.role,
            resources=EMPTY,
            state=TASK_ERROR,
        )
        # Who watches is not told: of what was launched only, as in Mesos.
        task.statuses.keep(status)
        task.ended_wall_s = status.timestamp
        c.complete(framework, task, now)
    statuses.send(c, framework, status)
