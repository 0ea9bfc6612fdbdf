"""Frameworks: subscription, its end, and what a framework wants.

Outcomes follow Mesos v1 (mesos-semantics, section 7.1 and 7.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from master.allocator import base as alloc
from master.core import (
    guarantees,
    inverse_offers,
    needs,
    operations,
    revoking,
    standbys,
    statuses,
)
from master.core import offers as offering
from master.core.cluster import Cluster
from master.core.framework_checks import (
    check_info,
    checked_min_free,
    checked_roles,
    checked_suppressed,
)
from master.core.records import Agent, Framework, Turn
from mesos_py import constraints
from mesos_py.clock import Now
from mesos_py.constraints import Constraint
from mesos_py.errors import (
    InvalidValue,
    MesosPyError,
    Refused,
    UnsupportedProtocol,
    shortened,
)
from mesos_py.ids import check_id
from mesos_py.resources import Resources
from mesos_py.states import TASK_KILLED, is_terminal
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb

Capability = pb.FrameworkInfo.Capability


def subscribe(c: Cluster, link: int, call: sched.Call, now: Now) -> None:
    """SUBSCRIBE on a new stream: answered with SUBSCRIBED or STANDBY, or ERROR and the end."""
    turn = _turn_of(call)
    late = any(turn.is_late(framework.turn) for framework in c.frameworks.values())
    if late or standbys.is_late(c, turn):
        c.drop("subscription-overtaken", link=link)
        c.outbox.close(link, "a later stream of the framework has come before")
        return
    try:
        asked = _checked(c, call)
        known = c.frameworks.get(asked.info.id.value)
        if call.subscribe.standby and standbys.must_wait(c, known, call.subscribe, turn):
            standbys.join(c, asked.info.id.value, link, call, turn, now)
            return
    except MesosPyError as error:
        standbys.supersede(c, turn)
        _turn_away(c, link, error)
        return
    standbys.supersede(c, turn)
    _welcome(c, _admit(c, link, call, asked, now), call, now)


def promote(c: Cluster, framework_id: str, now: Now) -> bool:
    """The first standby that still can is active from now on; False if there is none."""
    promoted = False
    while not promoted and (standby := standbys.take_first(c, framework_id)) is not None:
        try:
            asked = _checked(c, standby.call)
        except MesosPyError as error:
            _turn_away(c, standby.link, error)
            continue
        c.counters["standbys_promoted"] += 1
        _welcome(c, _admit(c, standby.link, standby.call, asked, now), standby.call, now)
        promoted = True
    standbys.tell(c, framework_id)
    return promoted


def _turn_of(call: sched.Call) -> Turn:
    return Turn(call.subscribe.instance, call.subscribe.attempt)


def _turn_away(c: Cluster, link: int, error: MesosPyError) -> None:
    message = shortened(error.message)
    c.drop("subscription-refused", why=message)
    event = sched.Event(type=sched.Event.ERROR, error=sched.Event.Error(message=message))
    c.outbox.to_framework(link, event)
    c.outbox.close(link, message)


def _welcome(c: Cluster, framework: Framework, call: sched.Call, now: Now) -> None:
    # Before it is told anything: what it is guaranteed is known with it.
    c.tell_framework(framework, now)
    subscribed = sched.Event.Subscribed(
        framework_id=pb.FrameworkID(value=framework.framework_id),
        heartbeat_interval_seconds=c.options.heartbeat_s,
        master_info=c.info,
        protocol_version=standbys.protocol_of(c, call),
        guaranteed_share=guarantees.of_new(c, framework),
    )
    c.to_framework(framework, sched.Event(type=sched.Event.SUBSCRIBED, subscribed=subscribed))
    c.to_framework(framework, sched.Event(type=sched.Event.HEARTBEAT))
    c.timers.set("heartbeat", framework.framework_id, now.monotonic_s + c.options.heartbeat_s)
    revoking.ask_again(c, framework)


def subscribe_again(c: Cluster, framework: Framework, now: Now) -> None:
    """SUBSCRIBE on a stream that has subscribed, such as one sent twice: changes nothing."""
    error = InvalidValue("type", "SUBSCRIBE", "this stream has subscribed already")
    c.refuse_call(framework, sched.Call.SUBSCRIBE, error, now)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a SUBSCRIBE asks for, checked."""

    info: pb.FrameworkInfo
    roles: tuple[str, ...]
    suppressed: frozenset[str]
    constraints: dict[str, Constraint]
    min_free: dict[str, Sequence[Resources]]


def _checked(c: Cluster, call: sched.Call) -> _Asked:
    """Raises MesosPyError for a SUBSCRIBE that cannot be, and changes nothing."""
    if not call.HasField("subscribe"):
        raise InvalidValue("subscribe", "", "is missing")
    subscribe = call.subscribe
    if subscribe.protocol_version > c.options.protocol_version:
        raise UnsupportedProtocol(
            f"the client ({subscribe.client or 'unnamed'}) speaks protocol "
            f"{subscribe.protocol_version}, this master at most {c.options.protocol_version}",
            field="subscribe.protocol_version",
        )
    info = pb.FrameworkInfo()
    info.CopyFrom(subscribe.framework_info)
    framework_id = info.id.value
    if call.framework_id.value != framework_id:
        raise InvalidValue(
            "framework_id", call.framework_id.value, "differs from subscribe.framework_info.id"
        )
    roles = checked_roles(info)
    check_info(info)
    suppressed = checked_suppressed(subscribe.suppressed_roles, roles)
    allowed = constraints.from_proto("offer_constraints", subscribe.offer_constraints, roles)
    min_free = checked_min_free(info, roles)
    if framework_id:
        check_id("framework_info.id", framework_id)
        if framework_id in c.completed_frameworks:
            raise Refused(f"framework {framework_id}: Framework has been removed")
        if framework_id in c.frameworks:
            _fix(info, c.frameworks[framework_id].info)
    elif subscribe.standby:
        raise InvalidValue("framework_info.id", "", "a standby names the framework it waits for")
    return _Asked(info, roles, suppressed, allowed, min_free)


def _admit(c: Cluster, link: int, call: sched.Call, asked: _Asked, now: Now) -> Framework:
    """The instance on `link` is the active one from now on."""
    info = asked.info
    framework_id = info.id.value
    framework = c.frameworks.get(framework_id) if framework_id else None
    if framework is None:
        from_before = bool(framework_id)
        framework_id = framework_id or c.new_framework_id()
        info.id.value = framework_id
        framework = Framework(
            framework_id,
            info,
            asked.roles,
            registered=now,
            from_before=from_before,
            completed_tasks=c.new_history(),
        )
        c.frameworks[framework_id] = framework
    else:
        _displace(c, framework, now)
        framework.reregistered = now
        framework.recovered = False
    framework.link = link
    turn = _turn_of(call)
    if not turn.instance or turn.instance != framework.turn.instance:
        needs.forget(framework)
    if turn.instance != framework.turn.instance:
        revoking.forget_answers(c, framework)
    framework.turn = turn
    c.framework_of_link[link] = framework_id
    c.timers.cancel("failover", framework_id)
    c.timers.cancel("standby-hold", framework_id)
    c.counters["frameworks_subscribed"] += 1
    put_info(c, framework, info, asked.roles, asked.suppressed, now)
    # What agents sent while it was away went to nobody.
    repeat = agent_pb2.Event.RepeatUpdates(framework_id=info.id)
    event = agent_pb2.Event(type=agent_pb2.Event.REPEAT_UPDATES, repeat_updates=repeat)
    _tell_agents(c, framework, event)
    _put_filters(framework, call.subscribe.offer_constraints, asked.constraints, asked.min_free)
    offering.heard(c, framework, now)
    return framework


def _fix(info: pb.FrameworkInfo, first: pb.FrameworkInfo) -> None:
    """What stays as it was at the first subscription (Mesos), whatever is said now.

    Raises InvalidValue for another principal, since that is another person.
    """
    if info.principal != first.principal:
        raise InvalidValue(
            "framework_info.principal", info.principal, f"cannot change from {first.principal!r}"
        )
    info.user = first.user
    info.ClearField("checkpoint")
    if first.HasField("checkpoint"):
        info.checkpoint = first.checkpoint


def _displace(c: Cluster, framework: Framework, now: Now) -> None:
    """The last one wins: an older stream of the same framework is told and ended."""
    offering.drop_all(c, framework.offers, "the framework subscribed again", now, tell=False)
    if framework.link is None:
        return
    event = sched.Event(
        type=sched.Event.ERROR, error=sched.Event.Error(message="Framework failed over")
    )
    c.outbox.to_framework(framework.link, event)
    c.outbox.close(framework.link, "framework failed over to another instance")
    del c.framework_of_link[framework.link]
    framework.link = None
    framework.requests = []
    # As after a disconnect, what the old instance refused, or left unanswered, binds the
    # new one to nothing.
    offering.heard(c, framework, now)
    c.tell_framework(framework, now)


def put_info(
    c: Cluster,
    framework: Framework,
    info: pb.FrameworkInfo,
    roles: tuple[str, ...],
    suppressed: frozenset[str],
    now: Now,
) -> None:
    """Take over a checked FrameworkInfo; agents that run its tasks are told."""
    changed = info != framework.info
    framework.info = info
    framework.partition_aware = any(c.type == Capability.PARTITION_AWARE for c in info.capabilities)
    framework.suppressed = suppressed
    other = set(framework.roles) != set(roles)
    gone = set(framework.roles) - set(roles)
    framework.roles = roles
    if gone:
        stale = [o for o in framework.offers if c.offers[o].role in gone]
        offering.drop_all(c, stale, "the framework left the role", now, tell=True)
    if other:
        needs.roles_changed(c, framework)
    if not changed:
        return
    update = agent_pb2.Event(type=agent_pb2.Event.UPDATE_FRAMEWORK)
    update.update_framework.framework_info.CopyFrom(info)
    _tell_agents(c, framework, update)


def _tell_agents(c: Cluster, framework: Framework, event: agent_pb2.Event) -> None:
    for agent_id in sorted(agents_of(framework)):
        c.to_agent(c.agents[agent_id], event)


def _put_filters(
    framework: Framework,
    proto: sched.OfferConstraints,
    allowed: dict[str, Constraint],
    min_free: dict[str, Sequence[Resources]],
) -> None:
    kept = None
    if allowed:
        kept = sched.OfferConstraints()
        kept.CopyFrom(proto)
    framework.constraints_proto = kept
    framework.constraints = allowed
    framework.min_free = min_free


def agents_of(framework: Framework) -> set[str]:
    """Agents, none of them cut off, that have something of the framework."""
    found = {task.agent_id for task in framework.tasks.values()}
    found.update(agent_id for agent_id, _ in framework.executors)
    found.update(operation.agent_id for operation in framework.operations.values())
    return found


# ---- Wants -------------------------------------------------------------------


def update_framework(
    c: Cluster, framework: Framework, call: sched.Call.UpdateFramework, now: Now
) -> None:
    """UPDATE_FRAMEWORK: all of it is taken over, or nothing and REFUSED says why."""
    try:
        change_framework(c, framework, call, now)
    except MesosPyError as error:
        c.refuse_call(framework, sched.Call.UPDATE_FRAMEWORK, error, now)


def change_framework(
    c: Cluster, framework: Framework, call: sched.Call.UpdateFramework, now: Now
) -> None:
    """Take all of it over.  Raises MesosPyError, and nothing has changed then."""
    info = pb.FrameworkInfo()
    info.CopyFrom(call.framework_info)
    info.id.value = framework.framework_id
    roles = checked_roles(info)
    check_info(info)
    given = call.framework_info.id.value
    if given not in ("", framework.framework_id):
        raise InvalidValue("framework_info.id", given, f"this is {framework.framework_id}")
    for field in ("user", "principal", "checkpoint"):
        old, new = getattr(framework.info, field), getattr(info, field)
        if old != new:
            raise InvalidValue(f"framework_info.{field}", new, f"cannot change from {old!r}")
    suppressed = checked_suppressed(call.suppressed_roles, roles)
    allowed = constraints.from_proto("offer_constraints", call.offer_constraints, roles)
    min_free = checked_min_free(info, roles)
    put_info(c, framework, info, roles, suppressed, now)
    _put_filters(framework, call.offer_constraints, allowed, min_free)
    c.tell_framework(framework, now)


def suppress(c: Cluster, framework: Framework, named: Sequence[str], now: Now) -> None:
    """SUPPRESS.  No roles named: all.  One wrong role: nothing is done."""
    try:
        roles = checked_suppressed(named, framework.roles) or frozenset(framework.roles)
    except MesosPyError as error:
        c.refuse_call(framework, sched.Call.SUPPRESS, error, now)
        return
    framework.suppressed |= roles
    c.tell_framework(framework, now)


def revive(c: Cluster, framework: Framework, named: Sequence[str], now: Now) -> None:
    """REVIVE: also forgets the framework's refusals.  Roles as in suppress."""
    try:
        roles = checked_suppressed(named, framework.roles) or frozenset(framework.roles)
    except MesosPyError as error:
        c.refuse_call(framework, sched.Call.REVIVE, error, now)
        return
    framework.suppressed -= roles
    c.tell_framework(framework, now)
    c.allocator.tell(alloc.Revived(framework.framework_id, tuple(sorted(roles))))
    inverse_offers.revived(c, framework, now)


# ---- Ends --------------------------------------------------------------------


def disconnected(c: Cluster, link: int, now: Now) -> None:
    """A stream ended.  The next standby takes over; without one, the framework may come
    back within its failover time-out."""
    if link in c.standby_of_link:
        standbys.left(c, link)
        return
    framework_id = c.framework_of_link.pop(link, None)
    if framework_id is None:
        return  # it never subscribed, or was displaced or removed
    framework = c.frameworks[framework_id]
    framework.link = None
    framework.requests = []
    offering.drop_all(c, framework.offers, "the framework disconnected", now, tell=False)
    offering.heard(c, framework, now)
    c.timers.cancel("heartbeat", framework.framework_id)
    c.tell_framework(framework, now)
    if promote(c, framework_id, now):
        return
    timeout = framework.info.failover_timeout
    if timeout <= 0:
        remove(c, framework, "disconnected, with no failover time-out", now)
    else:
        c.judge("failover", framework.framework_id, now.monotonic_s + timeout, now)


def failover_s(c: Cluster, framework: Framework) -> float:
    """How long its scheduler may be away.  One that has not subscribed to this master
    yet has to find it first, for which it gets as much time as an agent."""
    timeout_s = framework.info.failover_timeout
    return max(timeout_s, c.options.agent_timeout_s) if framework.recovered else timeout_s


def failover_expired(c: Cluster, framework_id: str, now: Now) -> None:
    """Standbys that hold for the active instance do so no longer than it may be away."""
    if promote(c, framework_id, now):
        return
    framework = c.frameworks[framework_id]
    timeout_s = failover_s(c, framework)
    who = "has not subscribed to this master" if framework.recovered else "did not come back"
    remove(c, framework, f"{who} within {timeout_s:g} s", now)


def order_shutdown(c: Cluster, agent: Agent, framework_id: str) -> None:
    """What the framework has on the agent is to end, and its updates to be forgotten."""
    order = agent_pb2.Event(type=agent_pb2.Event.SHUTDOWN_FRAMEWORK)
    order.shutdown_framework.framework_id.value = framework_id
    c.to_agent(agent, order)


def remove(c: Cluster, framework: Framework, why: str, now: Now) -> None:
    """End a framework for good: its id can never subscribe to this master again.

    What its tasks hold stays held until their agents report them gone.
    """
    framework_id = framework.framework_id
    offering.drop_all(c, framework.offers, "the framework was removed", now, tell=False)
    for agent_id in sorted(agents_of(framework)):
        order_shutdown(c, c.agents[agent_id], framework_id)
    for task in [*framework.tasks.values(), *framework.unreachable_tasks.values()]:
        if c.ledger.allocation(task.agent_id, task.holder) is not None:
            c.linger(task.agent_id, task.holder)
        if not is_terminal(task.state):
            task.state = TASK_KILLED
            status = statuses.master_status(
                task.task_id,
                task.agent_id,
                TASK_KILLED,
                pb.TaskStatus.REASON_FRAMEWORK_REMOVED,
                f"the framework {why}",
                now,
            )
            statuses.record(c, task, status, now)
        c.complete(framework, task, now)
    for executor in framework.executors.values():
        # Also one that was given nothing: while it runs, the agent is not empty.
        c.linger(executor.agent_id, executor.holder)
        c.agents[executor.agent_id].executors.discard((framework_id, executor.executor_id))
    framework.executors.clear()
    operations.forget_framework(c, framework, now)
    framework.requests = []
    needs.forget(framework)
    c.timers.cancel("failover", framework_id)
    c.timers.cancel("heartbeat", framework_id)
    c.timers.cancel("silent", framework_id)
    standbys.end_all(c, framework_id, "Framework has been removed")
    framework.unregistered = now
    if framework.link is not None:
        c.framework_of_link.pop(framework.link, None)
        c.outbox.close(framework.link, f"the framework {why}")
        framework.link = None
    c.retire(framework)
    c.counters["frameworks_removed"] += 1
    c.allocator.tell(alloc.FrameworkRemoved(framework_id))
