"""What frameworks say that they wait for, and need to hold (REQUEST).

What only waits explains, and nothing else.  Needs are cut to what operators allow
(RolePolicy.need_limit), told to the allocator, and answered by NEEDS after the next
allocation, which is when it is known whether the framework is admitted; and again when
that changes.

Needs are state.  A framework that is away keeps those that it stated: they protect what
it holds, and the allocator takes nothing from others for it meanwhile, since it is not
active.  Its driver states them again on its next stream; another instance of the
framework begins without any.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from master.allocator import base as alloc
from master.core.cluster import Cluster
from master.core.records import Framework, Needs
from mesos_py.clock import Now
from mesos_py.errors import InvalidValue, MesosPyError, shortened
from mesos_py.ids import check_id
from mesos_py.policy import ancestors
from mesos_py.resources import Resources, milli_text
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb

MAX_NEEDS: Final = 1000
# All of them together: they are kept, and said again in answers and explanations.
MAX_BYTES: Final = 1024 * 1024
# Of what was cut so many are said one by one.
_TOLD: Final = 20


def request(c: Cluster, framework: Framework, call: sched.Call.Request, now: Now) -> None:
    """REQUEST: replaces all that was stated, or nothing of it is taken over (REFUSED)."""
    try:
        _check(framework, call)
    except MesosPyError as error:
        c.refuse_call(framework, sched.Call.REQUEST, error, now)
        return
    # Copies: a part of a message keeps the whole batch in memory that it came in.
    given = list(sched.Call.Request(requests=call.requests).requests)
    framework.requests = given
    stated = [item for item in given if not item.waiting]
    if not stated and not framework.needs.stated:
        return
    c.needs.unanswered.add(framework.framework_id)
    if stated != framework.needs.stated:
        framework.needs.stated = stated
        if settle(c, framework):
            c.tell_framework(framework, now)
    c.want_allocation(now)


def _check(framework: Framework, call: sched.Call.Request) -> None:
    if len(call.requests) > MAX_NEEDS:
        raise InvalidValue("requests", len(call.requests), f"must be at most {MAX_NEEDS}")
    if call.ByteSize() > MAX_BYTES:
        raise InvalidValue("requests", call.ByteSize(), f"must be at most {MAX_BYTES} bytes")
    for item in call.requests:
        resources = Resources.from_proto("requests.resources", item.resources)
        resources.require_unreserved("requests.resources")
        if item.waiting:
            continue
        if not resources:
            raise InvalidValue("requests.resources", "", "a need must be of something")
        if item.HasField("count") and item.count < 1:
            raise InvalidValue("requests.count", item.count, "must be at least 1")
        if item.agent_id.value:
            check_id("requests.agent_id", item.agent_id.value)
        role = item.role
        if (item.HasField("role") or not framework.roles) and role not in framework.roles:
            raise InvalidValue("requests.role", role, "is not a role of the framework")


# ---- What operators allow --------------------------------------------------------------


def settle(c: Cluster, framework: Framework) -> bool:
    """Cut the stated needs anew; says whether what is left is another.

    Limits hold for all needs of a framework together that fall under them, in the order
    in which they are stated: first counts are cut, then needs are left out.
    """
    book = framework.needs
    before = book.rows
    book.accepted, book.cuts = [], []
    rows: list[alloc.Need] = []
    used: dict[str, dict[str, int]] = {}
    for item in book.stated:
        what = f"need {item.name!r}" if item.name else "a need"
        role = item.role or next(iter(framework.roles), "")
        if role not in framework.roles:
            book.cuts.append(f"{what}: the framework has not the role {role!r} any more")
            continue
        resources = Resources.from_proto("requests.resources", item.resources)
        asked = item.count if item.HasField("count") else 1
        limiting, limit = _limit(c, role)
        spent = used.setdefault(limiting, {})
        count, short = _allowed(resources, asked, limit, spent)
        if count < asked:
            left = f"cut from {asked} to {count}" if count else "left out"
            most = f"{milli_text(limit[short])} {short}"
            book.cuts.append(f"{what}: {left}, role {limiting!r} allows needs of {most} at most")
        if not count:
            continue
        for name, milli in resources.scalars.items():
            spent[name] = spent.get(name, 0) + count * milli
        accepted = pb.Request()
        accepted.CopyFrom(item)
        accepted.count, accepted.role = count, role
        book.accepted.append(accepted)
        rows.append(
            alloc.Need(role, resources, count, item.agent_id.value, item.mandatory, item.name)
        )
    book.rows = tuple(rows)
    return book.rows != before


def _limit(c: Cluster, role: str) -> tuple[str, Mapping[str, int]]:
    """The nearest role that has a limit, and that; the role itself if there is none."""
    for name in ancestors(role):
        limit = c.policy(name).need_limit
        if limit:
            return name, limit
    return role, {}


def _allowed(
    resources: Resources, asked: int, limit: Mapping[str, int], spent: Mapping[str, int]
) -> tuple[int, str]:
    """How many of them the limit has room for, and what it has too little of."""
    count, short = asked, ""
    for name, milli in resources.scalars.items():
        if name in limit and milli:
            fits = max(0, limit[name] - spent.get(name, 0)) // milli
            if fits < count:
                count, short = fits, name
    return count, short


def policy_changed(c: Cluster, now: Now) -> None:
    """Operators allow something else."""
    for framework in c.frameworks.values():
        if framework.needs.stated and settle(c, framework):
            c.needs.unanswered.add(framework.framework_id)
            c.tell_framework(framework, now)


def roles_changed(c: Cluster, framework: Framework) -> None:
    """The framework has other roles; the allocator is told of all that by the caller."""
    if framework.needs.stated and settle(c, framework):
        c.needs.unanswered.add(framework.framework_id)


def forget(framework: Framework) -> None:
    """Another instance of the framework begins; the caller tells the allocator."""
    framework.needs = Needs()


# ---- Answers ---------------------------------------------------------------------------


def answer(c: Cluster) -> None:
    """After an allocation: tell those who wait for an answer, or to whom another one is due."""
    book = c.needs
    waiting = c.allocator.waiting()
    if not book.unanswered and not waiting and not book.waiting:
        return
    due = book.unanswered | (waiting.keys() ^ book.waiting.keys())
    book.unanswered = set()
    book.waiting = dict(waiting)
    for framework_id in sorted(due):
        framework = c.frameworks.get(framework_id)
        if framework is None:
            continue
        why = waiting.get(framework_id)
        said = framework.needs.cuts[:_TOLD]
        if len(framework.needs.cuts) > _TOLD:
            said.append(f"{len(framework.needs.cuts) - _TOLD} more needs were cut")
        if why is not None:
            said.append(f"not admitted: {why}")
        event = sched.Event(type=sched.Event.NEEDS)
        event.needs.accepted.extend(framework.needs.accepted)
        event.needs.admitted = why is None
        event.needs.message = shortened("; ".join(said))
        c.to_framework(framework, event)


def findings(c: Cluster, framework: Framework) -> list[str]:
    """What was cut, in sentences."""
    return [f"cut by an operator's limit: {cut}" for cut in framework.needs.cuts[:_TOLD]]
