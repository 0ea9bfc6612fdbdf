"""For tests of the scheduler's session: subscribed sessions, events, what comes out."""

from typing import Any

from mesos_py.clock import ManualClock
from mesos_py.scheduler import checks
from mesos_py.scheduler.session import SchedulerSession
from mesos_py.tasks import launch
from mesos_py.testing.builders import make_framework
from mesos_py.v1.scheduler_pb2 import Call, Event
from mesos_py.v1.types_pb2 import FrameworkID, FrameworkInfo, OfferID, TaskID

PARTITION_AWARE = FrameworkInfo.Capability(type=FrameworkInfo.Capability.PARTITION_AWARE)


# A kind of event that only a later protocol has.
LATER: Any = 4711


def make_session(
    implicit: bool = True, max_call_bytes: int = 1_000_000, standby: bool = False, **fields
):
    info = checks.complete_framework(make_framework(**fields), "user-1", "host-0")
    return SchedulerSession(
        info,
        clock=ManualClock(),
        client="test 1",
        instance="process 1",
        implicit_acknowledgements=implicit,
        standby=standby,
        max_call_bytes=max_call_bytes,
    )


def subscribe(sess, framework_id="f1", **fields):
    sess.opening()
    subscribed = Event.Subscribed(framework_id=FrameworkID(value=framework_id), **fields)
    sess.receive([Event(type=Event.SUBSCRIBED, subscribed=subscribed), heartbeat()])
    return sess


def heartbeat():
    return Event(type=Event.HEARTBEAT)


def offers(*made):
    return Event(type=Event.OFFERS, offers=Event.Offers(offers=made))


def rescind(offer_id):
    return Event(type=Event.RESCIND, rescind=Event.Rescind(offer_id=OfferID(value=offer_id)))


def update(status):
    return Event(type=Event.UPDATE, update=Event.Update(status=status))


def subscribed_session(*made, **fields):
    sess = subscribe(make_session(**fields))
    if made:
        sess.receive([offers(*made)])
    sess.take_items()
    return sess


def taken(sess):
    """All that is to be written, as one list."""
    calls = []
    while (batch := sess.take_calls()) is not None:
        calls.extend(batch.calls)
    return calls


def kinds(calls):
    return [Call.Type.Name(call.type) for call in calls]


def statuses(sess):
    return [
        item.update.status
        for item in sess.take_items()
        if isinstance(item, Event) and item.type == Event.UPDATE
    ]


def run(sess, offer_id, *tasks, filters=None):
    sess.accept([offer_id], [launch(tasks)], filters)


def kill(sess, task_id):
    sess.kill(Call.Kill(task_id=TaskID(value=task_id)))
