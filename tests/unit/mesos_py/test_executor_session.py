"""The executor's session: calls in, messages out, without IO."""

import itertools
from typing import Any

import pytest

from mesos_py.clock import ManualClock
from mesos_py.errors import InvalidValue, Refused, TooLarge
from mesos_py.executor.environment import ExecutorEnvironment
from mesos_py.executor.session import Disconnected, ExecutorSession
from mesos_py.states import (
    TASK_FINISHED,
    TASK_RUNNING,
    TASK_STAGING,
    TASK_UNKNOWN,
)
from mesos_py.tasks import task_status
from mesos_py.testing.builders import make_task
from mesos_py.v1.executor_pb2 import Call, Event
from mesos_py.v1.types_pb2 import (
    AgentID,
    AgentInfo,
    TaskGroupInfo,
    TaskStatus,
)

# A kind of event that only a later protocol has.
LATER: Any = 4711


def make_session(max_call_bytes=1_000_000):
    numbers = itertools.count(1)
    return ExecutorSession(
        "f1",
        "e1",
        clock=ManualClock(wall_s=77.0),
        make_uuid=lambda: next(numbers).to_bytes(16, "big"),
        max_call_bytes=max_call_bytes,
    )


def subscribe(sess):
    opening = sess.opening().calls[0]
    subscribed = Event.Subscribed(agent_info=AgentInfo(id=AgentID(value="a1")))
    sess.receive([Event(type=Event.SUBSCRIBED, subscribed=subscribed)])
    return opening


def running_session(*task_ids, **options):
    sess = make_session(**options)
    subscribe(sess)
    sess.receive([launched(make_task(task_id)) for task_id in task_ids])
    sess.take_items()
    return sess


def launched(task):
    return Event(type=Event.LAUNCH, launch=Event.Launch(task=task))


def acknowledged(status):
    return Event(
        type=Event.ACKNOWLEDGED,
        acknowledged=Event.Acknowledged(task_id=status.task_id, uuid=status.uuid),
    )


def taken(sess):
    calls = []
    while (batch := sess.take_calls()) is not None:
        calls.extend(batch.calls)
    return calls


def test_opening_names_framework_executor_and_protocol():
    [call] = make_session().opening().calls
    assert (call.type, call.framework_id.value, call.executor_id.value) == (
        Call.SUBSCRIBE,
        "f1",
        "e1",
    )
    assert call.subscribe.protocol_version == 1
    assert not call.subscribe.unacknowledged_tasks


def test_status_goes_out_completed_and_the_callers_own_is_untouched():
    sess = running_session("t1")
    given = task_status("t1", TASK_RUNNING)
    sess.send_status(given)
    [call] = taken(sess)
    status = call.update.status
    assert status.uuid == (1).to_bytes(16, "big")
    assert status.timestamp == 77.0
    assert status.source == TaskStatus.SOURCE_EXECUTOR
    assert (status.executor_id.value, status.agent_id.value) == ("e1", "a1")
    assert given == task_status("t1", TASK_RUNNING)


def test_time_given_by_the_executor_stays():
    sess = running_session("t1")
    given = task_status("t1", TASK_RUNNING)
    given.timestamp = 5.0
    assert sess.send_status(given).timestamp == 5.0


@pytest.mark.parametrize("state", [TASK_STAGING, TASK_UNKNOWN])
def test_states_that_no_executor_reports_are_errors(state):
    with pytest.raises(InvalidValue, match=r"status\.state"):
        running_session("t1").send_status(task_status("t1", state))


def test_status_of_a_foreign_task_is_an_error():
    with pytest.raises(InvalidValue, match="'t2': is no task of this executor"):
        running_session("t1").send_status(task_status("t2", TASK_RUNNING))


def test_status_over_the_limit_is_an_error_and_nothing_is_kept():
    sess = running_session("t1", max_call_bytes=500)
    with pytest.raises(TooLarge):
        sess.send_status(task_status("t1", TASK_RUNNING, data=b"x" * 600))
    assert sess.unacknowledged == 0


def test_unacknowledged_statuses_and_tasks_are_in_the_next_opening():
    sess = running_session("t1", "t2")
    first = sess.send_status(task_status("t1", TASK_RUNNING))
    sess.receive([acknowledged(first)])
    second = sess.send_status(task_status("t1", TASK_FINISHED))
    sess.lost("cut", final=False)
    opening = subscribe(sess).subscribe
    assert [item.status for item in opening.unacknowledged_updates] == [second]
    assert [task.task_id.value for task in opening.unacknowledged_tasks] == ["t2"]
    assert taken(sess) == []  # the opening has said it


def test_status_reported_without_a_link_is_in_the_next_opening():
    sess = running_session("t1")
    sess.lost("cut", final=False)
    sess.send_status(task_status("t1", TASK_RUNNING))
    assert len(subscribe(sess).subscribe.unacknowledged_updates) == 1


def test_status_reported_between_opening_and_answer_is_sent_after_the_answer():
    sess = running_session("t1")
    sess.lost("cut", final=False)
    sess.opening()
    status = sess.send_status(task_status("t1", TASK_RUNNING))
    sess.receive([Event(type=Event.SUBSCRIBED)])
    assert [call.update.status for call in taken(sess)] == [status]


def test_acknowledged_status_is_forgotten_and_a_strange_acknowledgement_ignored():
    sess = running_session("t1")
    status = sess.send_status(task_status("t1", TASK_RUNNING))
    stranger = task_status("t1", TASK_RUNNING)
    stranger.uuid = b"?" * 16
    sess.receive([acknowledged(stranger)])
    assert sess.unacknowledged == 1
    sess.receive([acknowledged(status), acknowledged(status)])
    assert sess.unacknowledged == 0


def test_launch_said_again_is_shown_once():
    sess = make_session()
    subscribe(sess)
    sess.take_items()
    sess.receive([launched(make_task("t1")), launched(make_task("t1"))])
    assert len(sess.take_items()) == 1


def test_id_of_an_ended_task_can_be_used_again():
    sess = running_session("t1")
    status = sess.send_status(task_status("t1", TASK_FINISHED))
    sess.receive([acknowledged(status)])
    sess.receive([launched(make_task("t1"))])
    assert len(sess.take_items()) == 1


def test_ended_task_may_still_be_reported_on():
    sess = running_session("t1")
    status = sess.send_status(task_status("t1", TASK_FINISHED))
    sess.receive([acknowledged(status)])
    sess.send_status(task_status("t1", TASK_FINISHED))
    assert sess.unacknowledged == 1


def test_a_group_comes_as_one_and_only_what_is_new_of_it():
    sess = make_session()
    subscribe(sess)
    sess.take_items()
    group = TaskGroupInfo(tasks=[make_task("t1"), make_task("t2")])
    event = Event(type=Event.LAUNCH_GROUP, launch_group=Event.LaunchGroup(task_group=group))
    sess.receive([event])
    assert sess.take_items() == [event]
    # After a lost link it may be said again, and with others.
    sess.receive([event])
    assert sess.take_items() == []
    event.launch_group.task_group.tasks.append(make_task("t3"))
    sess.receive([event])
    (item,) = sess.take_items()
    assert [task.task_id.value for task in item.launch_group.task_group.tasks] == ["t3"]


def test_kill_grace_is_that_of_the_call_then_that_of_the_task():
    sess = make_session()
    subscribe(sess)
    task = make_task("t1")
    task.kill_policy.grace_period.nanoseconds = 2_000_000_000
    sess.receive([launched(task), launched(make_task("t2"))])
    kill = Event.Kill(task_id=task.task_id)
    assert sess.kill_grace_s(kill) == 2
    kill.kill_policy.grace_period.nanoseconds = 500_000_000
    assert sess.kill_grace_s(kill) == 0.5
    assert sess.kill_grace_s(Event.Kill(task_id=make_task("t2").task_id)) is None
    assert sess.kill_grace_s(Event.Kill(task_id=make_task("t9").task_id)) is None


def test_message_is_sent_or_said_to_be_lost():
    sess = make_session()
    assert sess.message(b"x") is False
    subscribe(sess)
    assert sess.message(b"x") is True
    assert taken(sess)[0].message.data == b"x"
    with pytest.raises(TooLarge):
        sess.message(b"x" * 1_000_001)


def test_message_queued_when_the_link_broke_is_lost_and_statuses_are_not():
    sess = running_session("t1")
    sess.message(b"x")
    sess.send_status(task_status("t1", TASK_RUNNING))
    sess.lost("cut", final=False)
    assert len(subscribe(sess).subscribe.unacknowledged_updates) == 1
    assert taken(sess) == []


def test_error_is_final():
    sess = make_session()
    sess.opening()
    sess.receive([Event(type=Event.ERROR, error=Event.Error(message="unknown executor"))])
    assert isinstance(sess.fatal, Refused)


def test_loss_is_shown_after_a_subscription_and_when_it_is_final():
    sess = make_session()
    sess.lost("no", final=False)
    assert sess.take_items() == []
    subscribe(sess)
    sess.take_items()
    sess.lost("cut", final=False)
    sess.lost("gone", final=True)
    assert sess.take_items() == [Disconnected("cut", False), Disconnected("gone", True)]


def test_events_that_are_not_for_the_executor_are_not_shown():
    sess = running_session("t1")
    sess.receive([Event(type=Event.HEARTBEAT), Event(type=LATER)])
    assert sess.take_items() == []


def test_batches_are_bounded_in_bytes(monkeypatch):
    monkeypatch.setattr("mesos_py.executor.session.BATCH_BYTES", 2600)
    sess = running_session()
    for _ in range(3):
        sess.message(b"x" * 1000)
    assert [len(sess.take_calls().calls) for _ in range(2)] == [2, 1]


# ---- Environment -------------------------------------------------------------

ENVIRON = {
    "MESOS_PY_EXECUTOR_ENDPOINT": "unix:/run/a.sock",
    "MESOS_FRAMEWORK_ID": "f1",
    "MESOS_EXECUTOR_ID": "e1",
}


def test_environment_of_an_executor_is_read_with_defaults():
    read = ExecutorEnvironment.read(ENVIRON)
    assert read == ExecutorEnvironment("unix:/run/a.sock", "f1", "e1")


def test_an_executor_takes_our_service_and_not_the_http_api_of_the_same_agent():
    both = {**ENVIRON, "MESOS_AGENT_ENDPOINT": "10.0.0.1:5051"}
    assert ExecutorEnvironment.read(both).agent_endpoint == "unix:/run/a.sock"
    # An agent of an earlier version.
    earlier = {**both, "MESOS_PY_EXECUTOR_ENDPOINT": "", "MESOS_AGENT_ENDPOINT": "unix:/run/b.sock"}
    assert ExecutorEnvironment.read(earlier).agent_endpoint == "unix:/run/b.sock"


def test_where_our_service_is_not_an_executor_takes_the_http_api():
    of_mesos = {**ENVIRON, "MESOS_AGENT_ENDPOINT": "10.0.0.1:5051"}
    for ours in ({"MESOS_PY_EXECUTOR_ENDPOINT": ""}, {}):
        environ = {**of_mesos, **ours}
        if not ours:
            del environ["MESOS_PY_EXECUTOR_ENDPOINT"]
        assert ExecutorEnvironment.read(environ).agent_endpoint == "http://10.0.0.1:5051"


def test_the_http_api_can_be_asked_for_explicitly():
    for text in ("http://10.0.0.2:5051", "http://10.0.0.2:5051/"):
        asked = {**ENVIRON, "MESOS_PY_EXECUTOR_ENDPOINT": text}
        assert ExecutorEnvironment.read(asked).agent_endpoint == "http://10.0.0.2:5051"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("MESOS_AGENT_ENDPOINT", "10.0.0.1"),
        ("MESOS_AGENT_ENDPOINT", "https://10.0.0.1:5051"),
        ("MESOS_PY_EXECUTOR_ENDPOINT", "http://10.0.0.1"),
    ],
)
def test_an_endpoint_that_cannot_be_is_named(name, text):
    environ = {**ENVIRON, "MESOS_PY_EXECUTOR_ENDPOINT": "", name: text}
    with pytest.raises(InvalidValue) as caught:
        ExecutorEnvironment.read(environ)
    assert caught.value.field == name


def test_environment_is_read_in_the_words_of_mesos():
    read = ExecutorEnvironment.read(
        {
            **ENVIRON,
            "MESOS_CHECKPOINT": "1",
            "MESOS_RECOVERY_TIMEOUT": "15mins",
            "MESOS_SUBSCRIPTION_BACKOFF_MAX": "500ms",
            "MESOS_EXECUTOR_SHUTDOWN_GRACE_PERIOD": "7secs",
            "MESOS_SANDBOX": "/s",
            "MESOS_EXECUTOR_AUTHENTICATION_TOKEN": "t",
        }
    )
    assert read.checkpoint
    assert (read.recovery_timeout_s, read.backoff_max_s) == (900, 0.5)
    assert (read.shutdown_grace_s, read.sandbox, read.token) == (7, "/s", "t")


def test_checkpoint_zero_is_none():
    assert not ExecutorEnvironment.read({**ENVIRON, "MESOS_CHECKPOINT": "0"}).checkpoint


@pytest.mark.parametrize("name", list(ENVIRON))
def test_missing_variable_is_named(name):
    environ = {key: value for key, value in ENVIRON.items() if key != name}
    with pytest.raises(InvalidValue, match=name):
        ExecutorEnvironment.read(environ)


def test_malformed_duration_is_named():
    with pytest.raises(InvalidValue, match="MESOS_RECOVERY_TIMEOUT"):
        ExecutorEnvironment.read({**ENVIRON, "MESOS_RECOVERY_TIMEOUT": "soon"})
