"""The scheduler's session against a model master, over links that break anywhere.

What must hold whatever happens: no task is lost without a word, none is answered here
and launched there, no update is shown twice, and every acknowledgement arrives.
"""

import itertools
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mesos_py.clock import ManualClock
from mesos_py.scheduler import checks
from mesos_py.scheduler.session import Disconnected, SchedulerSession
from mesos_py.states import TASK_FINISHED, TASK_LOST, TASK_RUNNING, is_terminal
from mesos_py.tasks import launch
from mesos_py.testing.builders import make_framework, make_offer, make_status, make_task
from mesos_py.v1.scheduler_pb2 import Call, Event
from mesos_py.v1.types_pb2 import FrameworkID, OfferID, TaskID, TaskStatus


class ModelTask:
    """A task in the cluster: a stream of updates, of which the head is in flight."""

    def __init__(self, task_id: str, agent_id: str) -> None:
        self.updates = [
            make_status(task_id, state, agent_id=agent_id)
            for state in (TASK_RUNNING, TASK_FINISHED)
        ]


class SessionMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.session = SchedulerSession(
            checks.complete_framework(make_framework(), "user", "host"),
            clock=ManualClock(),
            client="model",
            instance="process 1",
        )
        self.numbers = itertools.count(1)
        self.connected = False
        self.to_master: list[Call] = []
        self.to_session: list[Event] = []
        # The master's side.
        self.offers: dict[str, str] = {}
        self.tasks: dict[str, ModelTask] = {}
        self.ever_launched: set[str] = set()
        # The framework's side.
        self.seen_offers: list[str] = []
        self.answered: set[str] = set()
        self.asked: set[str] = set()
        self.told: dict[str, list[TaskStatus]] = {}
        self.shown: list[bytes] = []
        self.unacknowledged: list[TaskStatus] = []

    # ---- The link ------------------------------------------------------------

    @initialize()
    def first_subscription(self) -> None:
        self.subscribe()

    @precondition(lambda self: not self.connected)
    @rule()
    def subscribe(self) -> None:
        [opening] = self.session.opening().calls
        assert opening.type == Call.SUBSCRIBE
        self.connected = True
        self.offers.clear()
        subscribed = Event.Subscribed(framework_id=FrameworkID(value="f1"))
        self.to_session = [
            Event(type=Event.SUBSCRIBED, subscribed=subscribed),
            Event(type=Event.HEARTBEAT),
        ]
        # Agents send the heads of all their streams again.
        for task in self.tasks.values():
            self.send_head(task)

    @precondition(lambda self: self.connected)
    @rule()
    def link_breaks(self) -> None:
        self.to_master.clear()
        self.to_session.clear()
        self.connected = False
        self.session.lost("cut")
        self.collect()

    @precondition(lambda self: self.to_session)
    @rule(count=st.integers(1, 5))
    def session_reads(self, count: int) -> None:
        batch, self.to_session = self.to_session[:count], self.to_session[count:]
        self.session.receive(batch)
        self.collect()

    @rule()
    def session_writes(self) -> None:
        while self.connected and (calls := self.session.take_calls(max_calls=3)) is not None:
            self.to_master.extend(calls.calls)

    @precondition(lambda self: self.to_master)
    @rule(count=st.integers(1, 5))
    def master_reads(self, count: int) -> None:
        for _ in range(min(count, len(self.to_master))):
            self.on_call(self.to_master.pop(0))

    @precondition(lambda self: self.connected)
    @rule(tasks=st.integers(1, 2))
    def offer_is_used_at_once(self, tasks: int) -> None:
        self.make_offers(1)
        while self.to_session:
            self.session_reads(5)
        self.launch_on(self.seen_offers.pop(), tasks)
        self.session_writes()

    @precondition(lambda self: self.connected)
    @rule()
    def everything_is_read(self) -> None:
        self.session_writes()
        while self.to_master:
            self.master_reads(5)
        while self.to_session:
            self.session_reads(5)

    # ---- The master ----------------------------------------------------------

    @precondition(lambda self: self.connected)
    @rule(count=st.integers(1, 3))
    def make_offers(self, count: int) -> None:
        made = [make_offer(f"o{next(self.numbers)}", "a1") for _ in range(count)]
        self.offers.update({offer.id.value: "a1" for offer in made})
        self.to_session.append(Event(type=Event.OFFERS, offers=Event.Offers(offers=made)))

    @precondition(lambda self: self.offers)
    @rule(data=st.data())
    def rescind(self, data: Any) -> None:
        offer_id = data.draw(st.sampled_from(sorted(self.offers)))
        del self.offers[offer_id]
        rescind = Event.Rescind(offer_id=OfferID(value=offer_id))
        self.to_session.append(Event(type=Event.RESCIND, rescind=rescind))

    @precondition(lambda self: self.connected)
    @rule()
    def heartbeat(self) -> None:
        self.to_session.append(Event(type=Event.HEARTBEAT))

    @precondition(lambda self: self.connected and self.tasks)
    @rule(data=st.data())
    def agent_repeats_itself(self, data: Any) -> None:
        self.send_head(self.tasks[data.draw(st.sampled_from(sorted(self.tasks)))])

    def send_head(self, task: ModelTask) -> None:
        if self.connected and task.updates:
            self.tell(task.updates[0])

    def tell(self, status: TaskStatus) -> None:
        self.to_session.append(Event(type=Event.UPDATE, update=Event.Update(status=status)))

    def lost(self, task_id: str) -> None:
        self.tell(make_status(task_id, TASK_LOST, acknowledged=False))

    def on_call(self, call: Call) -> None:
        if call.type == Call.ACCEPT:
            known = all(self.offers.pop(item.value, None) for item in call.accept.offer_ids)
            for task in call.accept.operations[0].launch.task_infos:
                task_id = task.task_id.value
                assert task_id not in self.ever_launched
                if known:
                    self.ever_launched.add(task_id)
                    self.tasks[task_id] = ModelTask(task_id, task.agent_id.value)
                    self.send_head(self.tasks[task_id])
                else:
                    self.lost(task_id)
        elif call.type == Call.DECLINE:
            for item in call.decline.offer_ids:
                self.offers.pop(item.value, None)
        elif call.type == Call.ACKNOWLEDGE:
            self.on_acknowledge(call.acknowledge)
        elif call.type == Call.RECONCILE:
            for asked in call.reconcile.tasks:
                if asked.task_id.value in self.tasks:
                    self.tell(make_status(asked.task_id.value, TASK_RUNNING, acknowledged=False))
                else:
                    self.lost(asked.task_id.value)
        elif call.type == Call.KILL and call.kill.task_id.value not in self.tasks:
            self.lost(call.kill.task_id.value)

    def on_acknowledge(self, acknowledge: Call.Acknowledge) -> None:
        task = self.tasks.get(acknowledge.task_id.value)
        if task is None or task.updates[0].uuid != acknowledge.uuid:
            return  # late, or the second for the same update
        task.updates.pop(0)
        if task.updates:
            self.send_head(task)
        else:
            del self.tasks[acknowledge.task_id.value]

    # ---- The framework -------------------------------------------------------

    def collect(self) -> None:
        for item in self.session.take_items():
            if isinstance(item, Disconnected):
                continue
            if item.type == Event.OFFERS:
                self.seen_offers.extend(offer.id.value for offer in item.offers.offers)
            elif item.type == Event.UPDATE:
                status = item.update.status
                self.told.setdefault(status.task_id.value, []).append(status)
                if status.uuid:
                    self.shown.append(status.uuid)
                    self.unacknowledged.append(status)

    @precondition(lambda self: self.seen_offers)
    @rule(tasks=st.integers(0, 2), data=st.data())
    def launch(self, tasks: int, data: Any) -> None:
        offer_id = data.draw(st.sampled_from(self.seen_offers))
        self.seen_offers.remove(offer_id)
        self.launch_on(offer_id, tasks)

    def launch_on(self, offer_id: str, tasks: int) -> None:
        made = [make_task(f"t{next(self.numbers)}") for _ in range(tasks)]
        self.asked.update(task.task_id.value for task in made)
        self.session.accept([offer_id], [launch(made)], None)
        self.collect()

    @precondition(lambda self: self.unacknowledged)
    @rule(count=st.integers(1, 3))
    def acknowledge(self, count: int) -> None:
        done, self.unacknowledged = self.unacknowledged[:count], self.unacknowledged[count:]
        self.session.acknowledge(done)

    @precondition(lambda self: self.asked)
    @rule(data=st.data())
    def kill(self, data: Any) -> None:
        task_id = data.draw(st.sampled_from(sorted(self.asked)))
        self.session.kill(Call.Kill(task_id=TaskID(value=task_id)))

    # ---- What must hold ------------------------------------------------------

    @invariant()
    def no_update_is_shown_twice(self) -> None:
        assert len(self.shown) == len(set(self.shown))

    @invariant()
    def what_was_answered_here_was_not_launched(self) -> None:
        for task_id, statuses in self.told.items():
            answered_here = any(
                status.reason == TaskStatus.REASON_INVALID_OFFERS for status in statuses
            )
            assert not (answered_here and task_id in self.ever_launched)

    def teardown(self) -> None:
        """Once the link holds, everything comes to its end."""
        if not self.connected:
            self.subscribe()
        for _ in range(60):
            self.session_writes()
            while self.to_master:
                self.master_reads(5)
            self.heartbeat()
            while self.to_session:
                self.session_reads(5)
            self.session.acknowledge(self.unacknowledged)
            self.unacknowledged = []
            if not self.tasks and self.asked <= set(self.told):
                break
        assert not self.tasks, "an acknowledgement never arrived"
        for task_id in self.asked:
            assert any(is_terminal(s.state) for s in self.told[task_id]), f"{task_id} is lost"


TestSessionMachine = SessionMachine.TestCase
