"""The master's core: its face towards the shell.

Every method is one input with the moment at which it happened; output goes to the
outbox.  Nothing here reads a clock, waits or does IO.  The shell calls `tick` at
`next_deadline_s()`, or later, and again after each input if that has become
earlier.

Allocation is event-driven: the first change opens a window (`allocation_window_s`),
at whose end one cycle serves all that has changed.  After a cycle that took t
seconds the next one does not start before t / allocation_load has passed, so that
allocation never takes more than that share of the time.

While the shell is behind with what has arrived (`behind`), cycles wait as well: what they
offered would be answered behind all that, and somebody new would wait behind the answers.
So a master that has more to do than it can leaves resources free for a moment, rather than
words unread for long.  Nor does an offer expire meanwhile whose answer may be there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

from master.allocator.base import Allocator, RolePolicy
from master.core import (
    admission,
    agents,
    calls,
    departures,
    frameworks,
    guarantees,
    inverse_offers,
    kills,
    messages,
    needs,
    offers,
    operations,
    policies,
    recovery,
    reserving,
    revoking,
    standbys,
    tasks,
)
from master.core.cluster import Cluster, Options
from master.core.outbox import Outbox
from master.core.records import Task
from master.core.timers import JUDGED, STALL_S
from mesos_py.clock import Now
from mesos_py.errors import NotFound
from mesos_py.ids import IdSource, check_role
from mesos_py.policy import check_weight
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb

# After an allocation that failed, the next one is tried so much later.
_RETRY_S: Final = 1.0
# A cycle waits at most so long for the shell to catch up; and longer while so many offers
# are out that their answers will keep it busy.
BEHIND_S: Final = 0.25
MANY_OFFERS: Final = 200
BEHIND_MOST_S: Final = 2.0


class Master:
    """See the module's docstring."""

    def __init__(
        self,
        options: Options,
        info: pb.MasterInfo,
        ids: IdSource,
        outbox: Outbox,
        allocator: Allocator,
        epoch: int = 0,
    ) -> None:
        self.cluster = Cluster(options, info, ids, outbox, allocator, epoch)
        self._failures_seen: dict[str, int] = {}

    def recover(self, records: Mapping[str, bytes], now: Now) -> None:
        """Take over from the last leader: all that the registry holds.

        Called once, when this master can listen and before any other input.
        """
        recovery.recover(self.cluster, records, now)

    def raise_epoch(self, epoch: int) -> None:
        """This leadership has the number `epoch` from now on, which is higher."""
        self.cluster.epoch = epoch

    # ---- Streams ---------------------------------------------------------

    def framework_call(self, link: int, call: sched.Call, now: Now) -> None:
        """A call from a scheduler's stream."""
        calls.on_call(self.cluster, link, call, now)

    def change_framework(
        self, framework_id: str, call: sched.Call.UpdateFramework, now: Now
    ) -> None:
        """UPDATE_FRAMEWORK of a framework that is subscribed, for who waits for its outcome.
        Raises MesosPyError, and nothing has changed then."""
        framework = self.cluster.frameworks[framework_id]
        self.cluster.counters["calls"] += 1
        frameworks.change_framework(self.cluster, framework, call, now)

    def framework_disconnected(self, link: int, now: Now) -> None:
        frameworks.disconnected(self.cluster, link, now)

    def agent_call(self, link: int, call: agent_pb2.Call, now: Now) -> None:
        """A call from an agent's stream."""
        c = self.cluster
        kind = call.type
        if kind == agent_pb2.Call.REGISTER:
            admission.register(c, link, call.register, now)
            return
        agent_id = c.agent_of_link.get(link)
        agent = c.agents.get(agent_id) if agent_id is not None else None
        if agent is None:
            c.drop("agent-call-before-register", link=link, call=call.type)
            c.outbox.close(link, "the agent is not registered on this stream")
            return
        match kind:
            case agent_pb2.Call.UPDATE:
                tasks.on_update(c, agent, call.update, now)
            case agent_pb2.Call.PONG:
                agents.pong(c, agent, now)
            case agent_pb2.Call.EXECUTOR_MESSAGE:
                messages.from_executor(c, agent, call.executor_message)
            case agent_pb2.Call.EXECUTOR_EXITED:
                agents.executor_exited(c, agent, call.executor_exited, now)
            case agent_pb2.Call.UPDATE_OPERATION:
                if not operations.updated(c, agent, call.update_operation, now):
                    agents.ask_anew(c, agent, "the agent has other resources than was thought", now)
            case agent_pb2.Call.UNREGISTER:
                agents.leave(c, agent, call.unregister.message or "it unregistered", now)
            case _:
                c.drop("agent-call-unknown", agent=agent_id, call=call.type)

    def agent_disconnected(self, link: int, now: Now) -> None:
        if link in self.cluster.admission_of_link:
            admission.vanished(self.cluster, link, now)
        else:
            agents.disconnected(self.cluster, link, now)

    def stored(self, number: int, now: Now) -> None:
        """The registry has everything up to this write: what follows from it may happen."""
        self.cluster.registry.stored(number, now)

    # ---- Operators ---------------------------------------------------------

    def update_roles(
        self,
        changes: Iterable[policies.Change],
        now: Now,
        done: Callable[[], None],
        *,
        force: bool = False,
    ) -> None:
        """Take effect with the next allocation; running tasks are not touched.

        `done` is called once that is certain to outlive this master.  Raises as
        policies.update does, and nothing has changed then.
        """
        policies.update(self.cluster, changes, force, lambda _: done(), now)

    def set_weights(self, weights: Mapping[str, float], now: Now, done: Callable[[], None]) -> None:
        """As update_roles, of nothing but weights."""
        self.update_roles(policies.weight_changes(weights), now, done)

    def set_weight(self, role: str, weight: float, now: Now) -> None:
        """At once, and not stored: what the flags of this master say.  Raises InvalidValue."""
        check_role("role", role)
        check_weight(role, weight)
        self.cluster.flag_weights[role] = weight
        self.set_policy(role, replace(self.cluster.policy(role), weight=weight), now)

    def set_policy(self, role: str, policy: RolePolicy, now: Now) -> None:
        """What is said of the role from now on; not stored.  Raises InvalidValue."""
        policy.check(role)
        self.cluster.decided_policies[role] = policy
        policies.take_effect(self.cluster, {role: policy}, now)

    def teardown(self, framework_id: str, now: Now) -> None:
        """End a framework and all its tasks.  Raises NotFound."""
        framework = self.cluster.frameworks.get(framework_id)
        if framework is None:
            ended = framework_id in self.cluster.completed_frameworks
            raise NotFound("framework", framework_id, "has ended already" if ended else "unknown")
        frameworks.remove(self.cluster, framework, "was torn down by an operator", now)

    def operate(self, agent_id: str, operation: pb.Offer.Operation, now: Now) -> None:
        """What an operator does to an agent's resources.  Raises as reserving.carry_out does, and
        nothing has changed then."""
        reserving.carry_out(self.cluster, agent_id, operation, now)

    def kill_task(self, task: Task, policy: pb.KillPolicy | None) -> None:
        """Have a task killed that has not ended."""
        kills.order_kill(self.cluster, task, policy)

    # ---- Time ----------------------------------------------------------------

    def next_deadline_s(self) -> float | None:
        """When `tick` has something to do, on the monotonic clock; None: never."""
        c = self.cluster
        timer, due = c.timers.next_s(), self._allocation_due_s()
        if due is None and not c.recovery.held:
            # A cycle that is due serves what the allocator wants to be woken for, too.
            due = c.allocator.next_wake_s()
        if timer is None or due is None:
            return due if timer is None else timer
        return min(timer, due)

    def _allocation_due_s(self) -> float | None:
        clock = self.cluster.allocation
        if clock.wanted_since_s is None or self.cluster.recovery.held:
            return None
        window = clock.wanted_since_s + self.cluster.options.allocation_window_s
        return max(window, clock.not_before_s)

    def tick(
        self,
        now: Now,
        seconds_of: Callable[[], float] | None = None,
        behind: bool = False,
    ) -> None:
        """Do what is due.  `seconds_of` reads a stopwatch, to measure allocation;
        `behind`: much has arrived that was not handed in yet."""
        c = self.cluster
        earliest = c.timers.next_s()
        if earliest is not None and now.monotonic_s - earliest > STALL_S:
            self._forgive(now.monotonic_s - earliest, now)
        for kind, name in c.timers.due(now.monotonic_s):
            if behind and kind == "offer" and offers.postpone(c, name, now):
                continue
            _TIMERS[kind](c, name, now)
        wake = c.allocator.next_wake_s()
        if wake is not None and wake <= now.monotonic_s:
            c.want_allocation(now)
        due = self._allocation_due_s()
        if due is not None and due <= now.monotonic_s:
            if behind and not self._overdue(now):
                c.allocation.not_before_s = now.monotonic_s + c.options.allocation_window_s
            else:
                self._allocate(now, seconds_of)

    def _overdue(self, now: Now) -> bool:
        clock = self.cluster.allocation
        if clock.postponed_s is None:
            clock.postponed_s = now.monotonic_s
        most_s = BEHIND_MOST_S if len(self.cluster.offers) > MANY_OFFERS else BEHIND_S
        return now.monotonic_s - clock.postponed_s >= most_s

    def _forgive(self, late_s: float, now: Now) -> None:
        """This process was stopped: nobody could be heard meanwhile.

        So whoever is to be judged for his silence gets the time back, and as much again
        to be heard.  After a long pause he gets the whole time that he has (of a long
        one as much as an agent), since everybody has to find his way back first.
        """
        c = self.cluster
        c.drop("late-wake-up", seconds=round(late_s, 1))
        long = late_s >= c.options.agent_ping_s / 2
        for kind, name, at_s in c.timers.all():
            patience_s = self._patience_s(kind, name)
            if patience_s is not None:
                least_s = patience_s if long else min(patience_s, late_s)
                until_s = max(at_s + late_s, now.monotonic_s + least_s)
                c.timers.set(kind, name, until_s)
                if kind == "removal":
                    c.removals.postpone(until_s)
        if long:
            for agent in c.agents.values():
                if agent.connected:
                    agents.pong(c, agent, now)

    def _patience_s(self, kind: str, name: str) -> float | None:
        """How long somebody may be silent; None: that deadline judges nobody."""
        options = self.cluster.options
        if kind == "failover":
            timeout_s = frameworks.failover_s(self.cluster, self.cluster.frameworks[name])
            return min(timeout_s, options.agent_timeout_s)
        if kind in JUDGED:
            return options.agent_timeout_s
        if kind == "holdoff":
            return options.allocation_recovery_timeout_s
        if kind == "offer":
            return self.cluster.offers[name].timeout_s
        if kind == "revoke":
            return options.revocation_grace_s
        if kind == "inverse":
            return options.offer_timeout_s
        if kind == "standby-hold":
            return options.standby_hold_s
        return None

    def _allocate(self, now: Now, seconds_of: Callable[[], float] | None) -> None:
        c = self.cluster
        started = seconds_of() if seconds_of is not None else 0.0
        # Should the allocator raise, what was wanted stays wanted.
        c.allocation.not_before_s = now.monotonic_s + _RETRY_S
        revoking.settle(c, now)
        grants = c.allocator.allocate(c.ledger, now.monotonic_s)
        c.allocation.wanted_since_s = c.allocation.postponed_s = None
        offers.make_offers(c, grants, now)
        inverse_offers.look_after(c, now)
        needs.answer(c)
        guarantees.look_after(c, now)
        revoking.look_after(c, now)
        self._note_failures()
        took = seconds_of() - started if seconds_of is not None else 0.0
        c.counters["allocation_cycles"] += 1
        c.allocation.note(took)
        c.allocation.not_before_s = now.monotonic_s + took / c.options.allocation_load

    def _note_failures(self) -> None:
        """Records that the allocator could not use are said once for each time."""
        c = self.cluster
        failures = c.allocator.failures()
        for name, failure in failures.items():
            if failure.count != self._failures_seen.get(name):
                c.drop("allocator-record-failed", record=name, why=failure.reason)
        self._failures_seen = {name: failure.count for name, failure in failures.items()}


def _heartbeat(c: Cluster, name: str, now: Now) -> None:
    c.to_framework(c.frameworks[name], sched.Event(type=sched.Event.HEARTBEAT))
    c.timers.set("heartbeat", name, now.monotonic_s + c.options.heartbeat_s)


# Who is to be woken for which kind of deadline, with the name that it was set for.
_TIMERS: Final[dict[str, Callable[[Cluster, str, Now], object]]] = {
    "offer": offers.expire,
    "silent": offers.try_again,
    "revoke": revoking.due,
    "guarantees": guarantees.push,
    "inverse": inverse_offers.expire,
    "inverse-again": inverse_offers.ask_again,
    "heartbeat": _heartbeat,
    "failover": frameworks.failover_expired,
    "standby-hold": frameworks.promote,
    "standby-heartbeat": standbys.heartbeat,
    "ping": agents.ping,
    "unreachable": agents.timed_out,
    "drained": departures.drained,
    "expected": recovery.missed,
    "removal": lambda c, _, now: agents.take_removals(c, now),
    "holdoff": lambda c, _, now: recovery.release(c, now),
    "pulse": lambda c, _, now: c.keep_pulse(now),
}
