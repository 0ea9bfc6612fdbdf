"""What frameworks are guaranteed: said at the subscription, and when it has changed.

It may change with each allocation, and it takes a look at all frameworks to find out; so
that is done about once a second, and not at all while nothing is allocated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from master.core.cluster import Cluster
from master.core.records import Framework
from mesos_py.clock import Now
from mesos_py.resources import Resources
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb

PAUSE_S: Final = 1.0
# In a pause so many new subscriptions are looked up at once.  After a change of the
# master there may be thousands; the others are told at the end of the pause.
AT_ONCE: Final = 20


def of_new(c: Cluster, framework: Framework) -> Iterable[pb.Resource]:
    """What SUBSCRIBED says; the allocator knows the framework already."""
    book = c.guarantees
    if book.looked_up < AT_ONCE:
        book.looked_up += 1
        framework.guaranteed = _amounts(_asked(c), framework)
    return Resources(framework.guaranteed).to_proto()


def look_after(c: Cluster, now: Now) -> None:
    """After an allocation."""
    next_s = c.guarantees.pushed_s + PAUSE_S
    if next_s <= now.monotonic_s:
        push(c, "", now)
    elif not c.timers.has("guarantees", ""):
        c.timers.set("guarantees", "", next_s)


def push(c: Cluster, _: str, now: Now) -> None:
    """Tell everybody whose guarantee is another one than he was told last."""
    c.timers.cancel("guarantees", "")
    c.guarantees.pushed_s = now.monotonic_s
    c.guarantees.looked_up = 0
    found = _asked(c)
    for framework in c.frameworks.values():
        amounts = _amounts(found, framework)
        if framework.link is None or amounts == framework.guaranteed:
            continue
        framework.guaranteed = amounts
        event = sched.Event(type=sched.Event.GUARANTEE)
        event.guarantee.resources.extend(Resources(amounts).to_proto())
        c.to_framework(framework, event)
        c.counters["guarantees_told"] += 1


def _asked(c: Cluster) -> Mapping[str, Mapping[str, int]]:
    """What the allocator says; nothing, if it fails: no subscription fails for it."""
    try:
        return c.allocator.guarantees(c.ledger)
    except Exception as error:
        c.drop("guarantees-failed", why=repr(error))
        return {}


def _amounts(found: Mapping[str, Mapping[str, int]], framework: Framework) -> dict[str, int]:
    return {name: milli for name, milli in found.get(framework.framework_id, {}).items() if milli}
