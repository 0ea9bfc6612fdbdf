"""Standbys: instances of a framework that wait, in order, to take over.

Here is the queue, and what those who wait are told.  Who waits and when the first is
promoted is decided by the subscription (frameworks.py).

A framework id that has not subscribed to this master may be that of a framework which
goes on elsewhere: its active instance lost a master and is on its way to this one.  So
the first standby that comes waits `standby_hold_s` before it is promoted, unless an
instance comes that was active.
"""

from __future__ import annotations

from master.core.cluster import Cluster
from master.core.records import Framework, Standby, Turn
from mesos_py.clock import Now
from mesos_py.enums import name_of
from mesos_py.errors import MesosPyError, Refused, shortened
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb


def must_wait(
    c: Cluster, framework: Framework | None, subscribe: sched.Call.Subscribe, turn: Turn
) -> bool:
    """Whether a standby of this framework has to wait, rather than to be active at once."""
    if framework is not None and framework.connected:
        # A process does not wait for itself: that stream of it has ended.
        return not turn.instance or turn.instance != framework.turn.instance
    if framework is not None and not framework.recovered:
        return False
    return not subscribe.was_active and c.options.standby_hold_s > 0


def join(c: Cluster, framework_id: str, link: int, call: sched.Call, turn: Turn, now: Now) -> None:
    """Put an instance at the end of the queue; in its own place, if it waits already.

    Raises Refused when too many wait.
    """
    queue = c.standbys.get(framework_id, [])
    own = _index_of(queue, turn)
    if own is None and len(queue) >= c.options.max_standbys:
        raise Refused(
            f"framework {framework_id}: {len(queue)} standbys wait already, "
            f"at most {c.options.max_standbys} may"
        )
    # A copy: the call keeps the whole batch in memory that it came in.
    kept = sched.Call()
    kept.CopyFrom(call)
    standby = Standby(link, kept, turn)
    if own is not None:
        _let_go(c, queue[own], "a later stream of this process has come")
        queue[own] = standby
    else:
        queue.append(standby)
    c.standbys[framework_id] = queue
    c.standby_of_link[link] = framework_id
    c.counters["standbys_joined"] += 1
    if len(queue) == 1:
        c.timers.set("standby-heartbeat", framework_id, now.monotonic_s + c.options.heartbeat_s)
        framework = c.frameworks.get(framework_id)
        if framework is None or not framework.connected:
            c.timers.set("standby-hold", framework_id, now.monotonic_s + c.options.standby_hold_s)
    tell(c, framework_id)
    c.outbox.to_framework(link, sched.Event(type=sched.Event.HEARTBEAT))


def left(c: Cluster, link: int) -> None:
    """The stream of a standby has ended; those behind it move up."""
    framework_id = c.standby_of_link.pop(link)
    queue = c.standbys[framework_id]
    queue[:] = [standby for standby in queue if standby.link != link]
    tell(c, framework_id)


def supersede(c: Cluster, turn: Turn) -> None:
    """The process comes with a later stream: what waits for it on an earlier one is void."""
    for framework_id in list(c.standbys):
        queue = c.standbys[framework_id]
        own = _index_of(queue, turn)
        if own is not None:
            _let_go(c, queue.pop(own), "a later stream of this process has come")
            tell(c, framework_id)


def is_late(c: Cluster, turn: Turn) -> bool:
    """Whether the process waits on a later stream already."""
    return any(turn.is_late(each.turn) for queue in c.standbys.values() for each in queue)


def take_first(c: Cluster, framework_id: str) -> Standby | None:
    """Take out who is next.  The rest is to be told (`tell`) when somebody is active."""
    queue = c.standbys.get(framework_id)
    if not queue:
        return None
    first = queue.pop(0)
    del c.standby_of_link[first.link]
    return first


def end_all(c: Cluster, framework_id: str, message: str) -> None:
    """The framework has ended, and those who wait with it."""
    for standby in c.standbys.get(framework_id, ()):
        event = sched.Event(type=sched.Event.ERROR, error=sched.Event.Error(message=message))
        c.outbox.to_framework(standby.link, event)
        _let_go(c, standby, message)
    c.standbys.pop(framework_id, None)
    _forget_if_empty(c, framework_id)


def heartbeat(c: Cluster, framework_id: str, now: Now) -> None:
    for standby in c.standbys[framework_id]:
        c.outbox.to_framework(standby.link, sched.Event(type=sched.Event.HEARTBEAT))
    c.timers.set("standby-heartbeat", framework_id, now.monotonic_s + c.options.heartbeat_s)


def refuse(c: Cluster, link: int, call: sched.Call) -> None:
    """A call from an instance that waits: only the active one may make any."""
    framework_id = c.standby_of_link[link]
    kind = call.type if call.type in sched.Call.Type.values() else sched.Call.UNKNOWN
    name = name_of(sched.Call.Type, call.type)
    error: MesosPyError = Refused(f"{name}: this instance of framework {framework_id} stands by")
    c.drop("standby-call", framework=framework_id, link=link, call=name)
    refused = sched.Event.Refused(
        call=kind, code=error.code, field="type", value=name, message=shortened(error.message)
    )
    c.outbox.to_framework(link, sched.Event(type=sched.Event.REFUSED, refused=refused))


def tell(c: Cluster, framework_id: str) -> None:
    """Say STANDBY to those whose place has changed."""
    for ahead, standby in enumerate(c.standbys.get(framework_id, ())):
        if standby.told_ahead == ahead:
            continue
        standby.told_ahead = ahead
        event = sched.Event.Standby(
            framework_id=pb.FrameworkID(value=framework_id),
            ahead=ahead,
            heartbeat_interval_seconds=c.options.heartbeat_s,
            master_info=c.info,
            protocol_version=protocol_of(c, standby.call),
        )
        c.outbox.to_framework(standby.link, sched.Event(type=sched.Event.STANDBY, standby=event))
    _forget_if_empty(c, framework_id)


def protocol_of(c: Cluster, call: sched.Call) -> int:
    """The protocol that both sides speak."""
    return min(c.options.protocol_version, call.subscribe.protocol_version or 1)


def _forget_if_empty(c: Cluster, framework_id: str) -> None:
    if c.standbys.get(framework_id):
        return
    c.standbys.pop(framework_id, None)
    c.timers.cancel("standby-heartbeat", framework_id)
    c.timers.cancel("standby-hold", framework_id)


def _index_of(queue: list[Standby], turn: Turn) -> int | None:
    if not turn.instance:
        return None
    found = (i for i, each in enumerate(queue) if each.turn.instance == turn.instance)
    return next(found, None)


def _let_go(c: Cluster, standby: Standby, why: str) -> None:
    del c.standby_of_link[standby.link]
    c.outbox.close(standby.link, why)
