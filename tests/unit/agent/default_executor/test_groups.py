"""The agent's own executor: what becomes of groups, decided without processes."""

import signal
from dataclasses import dataclass, field

import pytest

from agent.core.records import Exit
from agent.default_executor.groups import Groups
from mesos_py.states import short_name
from mesos_py.v1 import types_pb2 as pb


@dataclass
class Appointment:
    seconds: float
    do: object
    called_off: bool = False

    def cancel(self):
        self.called_off = True


@dataclass
class FakeHost:
    """Starts nothing; `instead` says what becomes of the start of a task."""

    told: list = field(default_factory=list)
    signals: list = field(default_factory=list)
    appointments: list = field(default_factory=list)
    starts: list = field(default_factory=list)
    instead: dict = field(default_factory=dict)
    groups: Groups = None  # type: ignore[assignment]

    def start(self, task):
        task_id = task.task_id.value
        self.starts.append(task_id)
        if task_id in self.instead:
            self.instead[task_id](task_id)
        else:
            self.groups.started(task_id)

    def signal(self, task_id, number):
        self.signals.append((task_id, signal.Signals(number).name))

    def report(self, task, state, message="", *, reason=None, exit=None):
        self.told.append((task.task_id.value, short_name(state), message))

    def after(self, seconds, do):
        made = Appointment(seconds, do)
        self.appointments.append(made)
        return made

    def states(self, task_id):
        return [state for name, state, _ in self.told if name == task_id]

    def last(self, task_id):
        return next(message for name, _, message in reversed(self.told) if name == task_id)

    def due(self):
        return [each.seconds for each in self.appointments if not each.called_off]


def task(task_id, grace_s=None):
    info = pb.TaskInfo(task_id=pb.TaskID(value=task_id))
    if grace_s is not None:
        info.kill_policy.grace_period.nanoseconds = int(grace_s * 1e9)
    return info


@pytest.fixture
def host():
    made = FakeHost()
    made.groups = Groups(made)
    return made


@pytest.fixture
def groups(host):
    return host.groups


def test_a_group_starts_and_each_end_is_its_own(host, groups):
    groups.launch([task("a"), task("b")])
    assert host.states("a") == host.states("b") == ["STARTING", "RUNNING"]
    groups.ended("a", Exit(0))
    assert host.states("a")[-1] == "FINISHED"
    assert host.signals == []
    assert len(groups) == 1


def test_one_that_fails_takes_the_others_of_its_group_with_it(host, groups):
    groups.launch([task("a"), task("b"), task("c", grace_s=7)])
    groups.launch([task("other")])
    groups.ended("a", Exit(3 << 8))
    assert host.states("a")[-1] == "FAILED"
    assert host.last("a") == "Command exited with status 3"
    assert host.signals == [("b", "SIGTERM"), ("c", "SIGTERM")]
    assert host.due() == [3.0, 7.0]
    groups.ended("b", Exit(0))
    groups.ended("c", Exit(15))
    # Killed, whatever it says of itself.
    assert host.states("b")[-1] == host.states("c")[-1] == "KILLED"
    assert host.due() == []
    assert host.states("other") == ["STARTING", "RUNNING"]


def test_the_kill_of_one_ends_the_group_when_it_has_ended(host, groups):
    groups.launch([task("a"), task("b")])
    groups.kill("a", 1.5)
    assert host.signals == [("a", "SIGTERM")]
    assert host.due() == [1.5]
    groups.ended("a", Exit(15))
    assert host.states("a")[-1] == "KILLED"
    assert host.signals[1:] == [("b", "SIGTERM")]


def test_after_the_grace_it_is_made_to_end(host, groups):
    groups.launch([task("a")])
    groups.kill("a", None)
    (force,) = host.appointments
    force.do()
    assert host.signals == [("a", "SIGTERM"), ("a", "SIGKILL")]


def test_a_second_kill_may_only_shorten_the_grace(host, groups):
    groups.launch([task("a", grace_s=9)])
    groups.kill("a", None)
    groups.kill("a", 2)
    assert host.due() == [9.0, 2.0]
    groups.kill("a", 0)
    assert host.signals == [("a", "SIGTERM"), ("a", "SIGKILL")]


def test_a_kill_of_an_unknown_task_is_passed_over(host, groups):
    groups.kill("gone", 1)
    assert host.signals == []


def test_killing_is_told_to_who_wants_to_know(host, groups):
    groups.reports_killing = True
    groups.launch([task("a")])
    groups.kill("a", None)
    groups.kill("a", None)
    assert host.states("a") == ["STARTING", "RUNNING", "KILLING"]


def test_one_that_cannot_be_started_keeps_those_after_it_from_starting(host, groups):
    host.instead["b"] = lambda task_id: groups.failed(task_id, "no such file")
    groups.launch([task("a"), task("b"), task("c")])
    assert host.starts == ["a", "b"]
    assert (host.states("b"), host.last("b")) == (["STARTING", "FAILED"], "no such file")
    assert host.states("c") == ["STARTING", "KILLED"]
    assert host.signals == [("a", "SIGTERM"), ("c", "SIGTERM")]
    groups.ended("a", Exit(15))
    assert len(groups) == 0


def test_one_that_is_killed_while_it_is_prepared_was_killed(host, groups):
    host.instead["a"] = lambda _: None
    groups.launch([task("a")])
    groups.kill("a", None)
    groups.failed("a", "stopped")
    assert host.states("a") == ["STARTING", "KILLED"]


def test_one_that_starts_although_it_was_killed_is_ended_at_once(host, groups):
    host.instead["a"] = lambda _: None
    groups.launch([task("a")])
    groups.kill("a", None)
    groups.started("a")
    assert host.signals == [("a", "SIGTERM"), ("a", "SIGKILL")]
    groups.ended("a", Exit(9))
    assert host.states("a") == ["STARTING", "RUNNING", "KILLED"]


def test_a_shutdown_ends_all_with_its_own_grace(host, groups):
    groups.launch([task("a", grace_s=60)])
    groups.launch([task("b")])
    groups.shut_down(2)
    assert sorted(host.signals) == [("a", "SIGTERM"), ("b", "SIGTERM")]
    assert host.due() == [2, 2]
    groups.ended("a", Exit(15))
    groups.ended("b", Exit(9))
    assert host.last("b") == "Command terminated with signal SIGKILL"


def test_the_id_of_a_task_that_has_ended_may_come_again(host, groups):
    groups.launch([task("a"), task("b")])
    groups.ended("a", Exit(0))
    groups.launch([task("a")])
    # That one is not of the first group.
    groups.ended("b", Exit(256))
    assert host.signals == []
