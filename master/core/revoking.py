"""Taking back: the allocator plans, the framework is asked, and then made to.

1. The framework gets an inverse offer with a `revocation`: what, until when, which tasks
   were chosen, and why.  It may end these or others on that agent; whatever it gives up
   there in that role counts.  Accepting says that it will; declining saves nothing.
2. At the deadline chosen tasks that still run are killed, as many as it still takes.
   Their updates say REASON_CONTAINER_PREEMPTED if it is this that ended them.
3. The allocator is told that it is over: all is free, or nothing more will be.

The deadline is the same for a framework that is away or does not answer.  What has no
tasks is taken out of the framework's offers, at once.  All of this is forgotten with the
leadership: a successor's allocator plans anew.

These are not the inverse offers of maintenance (inverse_offers.py): they know nothing of
each other but the calls by which both are answered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from master.allocator import base as alloc
from master.core import offers as offering
from master.core.cluster import Cluster
from master.core.kills import KillCause, order_kill
from master.core.records import Framework, Task
from master.core.takings import Account, Place, Taking
from mesos_py.clock import Now
from mesos_py.resources import Resources
from mesos_py.states import is_terminal
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb

# A framework's own grace for a task is no way to keep what it is asked for.
MOST_GRACE_S: Final = 30.0
_TASKS_NAMED: Final = 5


def look_after(c: Cluster, now: Now) -> None:
    """After an allocation: begin what the allocator wants back now, and end what it does
    not want any more."""
    for plan in c.allocator.revocations(c.ledger, now.monotonic_s):
        c.counters["revocations/planned"] += 1
        _begin(c, plan, now)

    for plan in c.allocator.called_off():
        _call_off(c, plan, now)


def _call_off(c: Cluster, plan: alloc.Revocation, now: Now) -> None:
    """It is not needed, after all: nothing is killed for it that is not being killed."""
    account = c.revoking.accounts.get(Place(plan.agent_id, plan.framework_id, plan.role))
    for taking in list(account.takings) if account is not None else ():
        if taking.plan == plan and not taking.over and account is not None:
            c.counters["revocations/called_off"] += 1
            _finish(c, account, taking, {}, False, now)


def _begin(c: Cluster, plan: alloc.Revocation, now: Now) -> None:
    framework = c.frameworks.get(plan.framework_id)
    if framework is None or not c.ledger.has(plan.agent_id) or not plan.resources.scalars:
        c.drop("revocation-stale", framework=plan.framework_id, agent=plan.agent_id)
        _tell(c, plan, False, now)
        return
    grace_s = c.options.revocation_grace_s if plan.task_ids else 0.0
    taking = Taking(c.ids.offer_id(), plan, now.monotonic_s + grace_s, now.wall_s + grace_s)
    place = taking.place
    c.revoking.open(taking, c.ledger.held_on(*place))
    if grace_s > 0:
        c.timers.set("revoke", taking.name, taking.deadline_s)
        _ask(c, framework, [taking])
        return
    taking.over = True
    if not plan.task_ids:
        agent = c.agents[plan.agent_id]
        there = [c.offers[offer_id] for offer_id in agent.offers & framework.offers]
        ids = [offer.offer_id for offer in there if offer.role == plan.role]
        offering.drop_all(c, ids, f"taken back: {plan.reason}", now, tell=True)
    _look(c, place, now)


# ---- Asking ----------------------------------------------------------------------------


def _ask(c: Cluster, framework: Framework, takings: Iterable[Taking]) -> None:
    if framework.link is None:
        return
    event = sched.Event(type=sched.Event.INVERSE_OFFERS)
    for taking in takings:
        c.revoking.by_offer.pop(taking.offer_id, None)
        taking.offer_id, taking.link = c.ids.offer_id(), framework.link
        c.revoking.by_offer[taking.offer_id] = taking
        event.inverse_offers.inverse_offers.append(message(framework, taking))
        c.counters["revocations/asked"] += 1
    c.to_framework(framework, event)


def message(framework: Framework, taking: Taking) -> pb.InverseOffer:
    """The question as the framework sees it.  One that may have several roles hears in
    which of them: what it gives up in another one does not count."""
    plan = taking.plan
    asked = pb.InverseOffer(
        id=pb.OfferID(value=taking.offer_id),
        framework_id=pb.FrameworkID(value=plan.framework_id),
        agent_id=pb.AgentID(value=plan.agent_id),
        resources=plan.resources.to_proto(),
        revocation=pb.Revocation(
            deadline=pb.TimeInfo(nanoseconds=int(taking.deadline_wall_s * 1e9)),
            task_ids=[pb.TaskID(value=task_id) for task_id in plan.task_ids],
            reason=plan.reason,
        ),
    )
    if framework.multi_role:
        for resource in asked.resources:
            resource.allocation_info.role = plan.role
    return asked


def ask_again(c: Cluster, framework: Framework) -> None:
    """It has a new stream, on which it was asked nothing: the deadlines stay."""
    takings = [
        each
        for each in c.revoking.of_framework(framework.framework_id)
        if not each.over and not each.answer
    ]
    if takings:
        _ask(c, framework, takings)


def forget_answers(c: Cluster, framework: Framework) -> None:
    """Another instance of the framework begins, and knows nothing of what was promised."""
    for taking in c.revoking.of_framework(framework.framework_id):
        taking.answer = ""


def answered(c: Cluster, framework: Framework, offer_id: str, accepted: bool) -> bool:
    """The answer to an inverse offer; False if it is none of these."""
    taking = c.revoking.by_offer.get(offer_id)
    if taking is None or taking.plan.framework_id != framework.framework_id:
        return False
    del c.revoking.by_offer[offer_id]
    taking.offer_id = ""
    taking.answer = "accepted" if accepted else "declined"
    c.counters[f"revocations/{taking.answer}"] += 1
    return True


def _void(c: Cluster, taking: Taking) -> None:
    """There is nothing more to answer."""
    offer_id, taking.offer_id = taking.offer_id, ""
    c.revoking.by_offer.pop(offer_id, None)
    framework = c.frameworks.get(taking.plan.framework_id)
    if not offer_id or framework is None or framework.link != taking.link:
        return
    event = sched.Event(type=sched.Event.RESCIND_INVERSE_OFFER)
    event.rescind_inverse_offer.inverse_offer_id.value = offer_id
    c.to_framework(framework, event)


# ---- Taking ----------------------------------------------------------------------------


def due(c: Cluster, name: str, now: Now) -> None:
    """A deadline has passed: what was not given up is taken."""
    taking = c.revoking.by_name[name]
    taking.over = True
    _void(c, taking)
    _look(c, taking.place, now)


def settle(c: Cluster, now: Now) -> None:
    """Before an allocation: look where something has become free."""
    touched, c.revoking.touched = c.revoking.touched, set()
    for agent_id in sorted(touched):
        for place in list(c.revoking.agents.get(agent_id, ())):
            _look(c, place, now)


def _look(c: Cluster, place: Place, now: Now) -> None:
    """See what is free of what is wanted there, and kill what is missing and overdue."""
    account = c.revoking.accounts.get(place)
    if account is None:
        return
    freed = account.freed(c.ledger.held_on(*place))
    ending = _ending(c, place)
    # What is, and what soon will be, there for the takings that come next.
    pool = {name: freed.get(name, 0) + ending.get(name, 0) for name in {*freed, *ending}}
    for taking in list(account.takings):
        wanted = taking.wanted
        if all(freed.get(name, 0) >= milli for name, milli in wanted.items()):
            _finish(c, account, taking, wanted, True, now)
        elif taking.over and not _enforce(c, taking, pool):
            got = {name: min(milli, max(0, freed.get(name, 0))) for name, milli in wanted.items()}
            _finish(c, account, taking, got, any(got.values()), now)
        for name, milli in wanted.items():
            freed[name] = max(0, freed.get(name, 0) - milli)
            pool[name] = max(0, pool.get(name, 0) - milli)


def _enforce(c: Cluster, taking: Taking, pool: dict[str, int]) -> bool:
    """Kill tasks of the plan until enough comes.  Whether there is anything to wait for."""
    plan = taking.plan
    framework = c.frameworks.get(plan.framework_id)
    coming = framework is None or bool(_ending(c, taking.place))
    for task_id in plan.task_ids:
        missing = {name for name, milli in taking.wanted.items() if pool.get(name, 0) < milli}
        task = framework.tasks.get(task_id) if framework is not None else None
        if not missing or task is None or task.agent_id != plan.agent_id:
            continue
        if _is_ending(task) or not missing & task.resources.scalars.keys():
            continue
        _kill(c, taking, task)
        coming = True
        for name, milli in task.resources.scalars.items():
            pool[name] = pool.get(name, 0) + milli
    return coming and bool(c.ledger.held_on(*taking.place))


def _kill(c: Cluster, taking: Taking, task: Task) -> None:
    policy = None
    if _grace_s(task) > MOST_GRACE_S:
        policy = pb.KillPolicy()
        policy.grace_period.nanoseconds = int(MOST_GRACE_S * 1e9)
    reason = pb.TaskStatus.REASON_CONTAINER_PREEMPTED
    c.counters["tasks_preempted"] += 1
    order_kill(c, task, policy, KillCause(reason, f"Preempted: {taking.plan.reason}"))


def _is_ending(task: Task) -> bool:
    if is_terminal(task.state):
        return True
    return task.kill_pending and _grace_s(task) <= MOST_GRACE_S


def _grace_s(task: Task) -> float:
    """How long the task, or who killed it, wants to be waited for; 0: nothing was said."""
    policy = task.pending_kill
    if policy is None or not policy.HasField("grace_period"):
        policy = task.extras.kill_policy if task.extras is not None else pb.KillPolicy()
    return policy.grace_period.nanoseconds / 1e9


def _ending(c: Cluster, place: Place) -> dict[str, int]:
    """What the framework's tasks hold there that are on their way to their end."""
    found: dict[str, int] = {}
    framework = c.frameworks.get(place.framework_id)
    for holder, resources in c.ledger.allocations(place.agent_id).items():
        if (holder.framework_id, holder.role) != (place.framework_id, place.role):
            continue
        task = framework.tasks.get(holder.name) if framework is not None else None
        lingers = c.lingers(place.agent_id, holder.framework_id, holder.kind, holder.name)
        if lingers or (holder.kind == "task" and task is not None and _is_ending(task)):
            for name, milli in resources.scalars.items():
                found[name] = found.get(name, 0) + milli
    return found


def _finish(
    c: Cluster,
    account: Account,
    taking: Taking,
    got: Mapping[str, int],
    freed: bool,
    now: Now,
) -> None:
    account.settle(got)
    c.timers.cancel("revoke", taking.name)
    _void(c, taking)
    c.revoking.close(taking)
    c.counters["revocations/freed" if freed else "revocations/void"] += 1
    _tell(c, taking.plan, freed, now)


def _tell(c: Cluster, plan: alloc.Revocation, freed: bool, now: Now) -> None:
    c.allocator.tell(alloc.RevocationEnded(plan, freed))
    c.want_allocation(now)


def agent_lost(c: Cluster, agent_id: str, now: Now) -> None:
    """Nothing becomes free there any more.  Called before its account is closed."""
    for place in list(c.revoking.agents.get(agent_id, ())):
        account = c.revoking.accounts[place]
        for taking in list(account.takings):
            _finish(c, account, taking, {}, False, now)


# ---- Saying so ---------------------------------------------------------------------------


def findings(c: Cluster, framework: Framework, now: Now) -> list[str]:
    """What the framework is asked to give up, in sentences."""
    found = []
    for taking in c.revoking.of_framework(framework.framework_id):
        plan = taking.plan
        agent = c.agents.get(plan.agent_id)
        where = agent.info.hostname if agent is not None else plan.agent_id
        what = str(Resources(plan.resources.scalars))
        tasks = ", ".join(plan.task_ids[:_TASKS_NAMED])
        if len(plan.task_ids) > _TASKS_NAMED:
            tasks += f" and {len(plan.task_ids) - _TASKS_NAMED} more"
        if taking.over:
            text = f"{what} on {where} are taken back from it: {plan.reason}"
        else:
            left_s = max(0.0, taking.deadline_s - now.monotonic_s)
            said = f" (it has {taking.answer})" if taking.answer else ""
            text = f"it is asked{said} to give up {what} on {where}, else tasks {tasks} are"
            text += f" killed in {left_s:.1f} s: {plan.reason}"
        found.append(text)
    return found
