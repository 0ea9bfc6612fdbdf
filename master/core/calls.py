"""The scheduler's calls, each with who carries it out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from master.core import (
    frameworks,
    inverse_offers,
    launch,
    messages,
    needs,
    offers,
    operations,
    reconcile,
    standbys,
    tasks,
)
from master.core.cluster import Cluster
from master.core.records import Framework
from mesos_py.clock import Now
from mesos_py.enums import name_of
from mesos_py.errors import InvalidValue
from mesos_py.v1 import scheduler_pb2 as sched

Call = sched.Call
Handler: TypeAlias = Callable[[Cluster, Framework, sched.Call, Now], None]

HANDLERS: Final[dict[int, Handler]] = {
    Call.SUBSCRIBE: lambda c, f, call, now: frameworks.subscribe_again(c, f, now),
    Call.ACCEPT: lambda c, f, call, now: launch.accept(c, f, call.accept, now),
    Call.DECLINE: lambda c, f, call, now: offers.decline(c, f, call.decline, now),
    Call.ACCEPT_INVERSE_OFFERS: lambda c, f, call, now: inverse_offers.accept(
        c, f, call.accept_inverse_offers, now
    ),
    Call.DECLINE_INVERSE_OFFERS: lambda c, f, call, now: inverse_offers.decline(
        c, f, call.decline_inverse_offers, now
    ),
    Call.ACKNOWLEDGE: lambda c, f, call, now: tasks.acknowledge(c, f, call.acknowledge, now),
    Call.KILL: lambda c, f, call, now: tasks.kill(c, f, call.kill, now),
    Call.RECONCILE: lambda c, f, call, now: reconcile.reconcile(c, f, call.reconcile, now),
    Call.ACKNOWLEDGE_OPERATION_STATUS: lambda c, f, call, now: operations.acknowledge(
        c, f, call.acknowledge_operation_status, now
    ),
    Call.RECONCILE_OPERATIONS: lambda c, f, call, _: operations.reconcile(
        c, f, call.reconcile_operations
    ),
    Call.REVIVE: lambda c, f, call, now: frameworks.revive(c, f, call.revive.roles, now),
    Call.SUPPRESS: lambda c, f, call, now: frameworks.suppress(c, f, call.suppress.roles, now),
    Call.REQUEST: lambda c, f, call, now: needs.request(c, f, call.request, now),
    Call.UPDATE_FRAMEWORK: lambda c, f, call, now: frameworks.update_framework(
        c, f, call.update_framework, now
    ),
    Call.MESSAGE: lambda c, f, call, now: messages.to_executor(c, f, call.message, now),
    Call.SHUTDOWN: lambda c, f, call, now: messages.shutdown_executor(c, f, call.shutdown, now),
    Call.TEARDOWN: lambda c, f, call, now: frameworks.remove(c, f, "was torn down", now),
}


# By which a framework shows that it is at work on its offers, or wants some.
ANSWERS: Final = frozenset({Call.ACCEPT, Call.DECLINE, Call.REVIVE, Call.REQUEST})


def on_call(c: Cluster, link: int, call: sched.Call, now: Now) -> None:
    """A call from a scheduler's stream.  What is wrong with it concerns it alone."""
    if link in c.standby_of_link:
        standbys.refuse(c, link, call)
        return
    if call.type == Call.SUBSCRIBE and link not in c.framework_of_link:
        frameworks.subscribe(c, link, call, now)
        return
    framework_id = c.framework_of_link.get(link)
    framework = c.frameworks.get(framework_id) if framework_id is not None else None
    if framework is None:
        name = name_of(Call.Type, call.type)
        c.drop("call-before-subscribe", link=link, call=name)
        event = sched.Event(type=sched.Event.ERROR)
        event.error.message = f"{name} before SUBSCRIBE, or after the framework's end"
        c.outbox.to_framework(link, event)
        c.outbox.close(link, event.error.message)
        return
    c.counters["calls"] += 1
    given = call.framework_id.value
    if given and given != framework_id:
        error = InvalidValue("framework_id", given, f"this stream is of {framework_id}")
        c.refuse_call(framework, _known(call), error, now)
        return
    handler = HANDLERS.get(call.type)
    if handler is None:
        error = InvalidValue("type", call.type, "is not supported by this master")
        c.refuse_call(framework, _known(call), error, now)
        return
    if call.type in ANSWERS:
        offers.heard(c, framework, now)
    handler(c, framework, call, now)


def _known(call: sched.Call) -> sched.Call.Type.ValueType:
    """The call's type; UNKNOWN for a number that has no name here."""
    return call.type if call.type in Call.Type.values() else Call.UNKNOWN
