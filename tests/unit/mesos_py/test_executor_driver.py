"""The executor's driver and asyncio client against the fake agent, over gRPC and over HTTP."""

import asyncio
import queue
import subprocess
import sys
import threading
from functools import partial
from typing import Any

import pytest

from mesos_py.errors import InvalidValue, Refused, Unavailable
from mesos_py.executor import Executor, ExecutorClient, ExecutorDriver
from mesos_py.executor import link as executor_link
from mesos_py.rpc import LinkTimeouts
from mesos_py.states import TASK_FINISHED, TASK_KILLED, TASK_RUNNING
from mesos_py.tasks import task_status
from mesos_py.testing.builders import make_executor, make_task
from mesos_py.testing.fake_agent import FakeAgent
from mesos_py.v1.executor_pb2 import Call, Event
from tests.kit.http_fake_agent import HttpFakeAgent

PATIENCE_S = 10
QUICK = LinkTimeouts(connect_s=5)


class Recorder(Executor):
    """Notes each callback as (name, what it got), and does what `on` says for its name."""

    def __init__(self, **on):
        self.notes: queue.Queue[tuple[str, tuple[Any, ...]]] = queue.Queue()
        self.on = on
        self.threads = set()

    def _note(self, name, driver, *args):
        self.threads.add(threading.current_thread().name)
        self.notes.put((name, args))
        if name in self.on:
            self.on[name](driver, *args)

    def next(self, name):
        found, args = self.notes.get(timeout=PATIENCE_S)
        assert found == name
        return args


def _recording(name):
    def callback(self, driver, *args):
        self._note(name, driver, *args)

    return callback


for _name in [
    "registered",
    "reregistered",
    "disconnected",
    "launch_task",
    "kill_task",
    "framework_message",
    "shutdown",
    "error",
]:
    setattr(Recorder, _name, _recording(_name))


@pytest.fixture(params=[FakeAgent, HttpFakeAgent], ids=["grpc", "http"])
def make_agent(request, tmp_path_factory):
    return partial(request.param, tmp_path_factory.mktemp("a"))


@pytest.fixture
def agent(make_agent):
    with make_agent() as fake:
        yield fake


@pytest.fixture
def lasting_agent(make_agent):
    """An agent of a framework with checkpointing."""
    with make_agent(checkpoint=True, recovery_timeout_s=600.0) as fake:
        yield fake


@pytest.fixture
def started():
    drivers = []

    def start(agent, executor, wait=True):
        driver = ExecutorDriver(executor, agent.environment, timeouts=QUICK)
        drivers.append(driver)
        driver.start()
        if wait:
            executor.next("registered")
        return driver

    yield start
    for driver in drivers:
        driver.abort()
        try:
            assert driver.join(PATIENCE_S)
        except Exception:
            pass  # the test has looked at the reason


def task(task_id):
    return make_task(task_id, "agent-1", executor=make_executor())


def test_registration_tells_who_is_who(agent, started):
    executor = Recorder()
    started(agent, executor, wait=False)
    executor_info, framework_info, agent_info = executor.next("registered")
    assert executor_info.executor_id.value == "executor-1"
    assert framework_info.id.value == "framework-1"
    assert agent_info.id.value == "agent-1"


def test_each_event_has_its_callback(agent, started):
    executor = Recorder()
    started(agent, executor)
    agent.launch(task("t1"))
    assert executor.next("launch_task")[0].task_id.value == "t1"
    agent.kill("t1", 1.5)
    assert executor.next("kill_task") == ("t1", 1.5)
    agent.message(b"hello")
    assert executor.next("framework_message") == (b"hello",)
    agent.shutdown()
    assert executor.next("shutdown") == ()
    assert executor.threads == {"executor executor-1 callbacks"}


def test_the_tasks_of_a_group_are_launched_one_by_one_unless_that_is_overridden(agent, started):
    executor = Recorder()
    started(agent, executor)
    agent.launch_group(task("t1"), task("t2"))
    assert executor.next("launch_task")[0].task_id.value == "t1"
    assert executor.next("launch_task")[0].task_id.value == "t2"


def test_a_group_is_told_as_one(agent, started):
    groups: queue.Queue[list[str]] = queue.Queue()

    class Grouped(Executor):
        def launch_group(self, driver, tasks):
            groups.put([task.task_id.value for task in tasks])

    started(agent, Grouped(), wait=False)
    agent.wait_for_subscription()
    agent.launch_group(task("t1"), task("t2"))
    assert groups.get(timeout=PATIENCE_S) == ["t1", "t2"]


def test_executor_that_overrides_nothing_takes_everything(agent, started):
    driver = started(agent, Executor(), wait=False)
    agent.wait_for_subscription()
    agent.launch(task("t1"))
    agent.kill("t1")
    agent.message(b"x")
    agent.shutdown()
    assert driver.join(PATIENCE_S)


def test_statuses_are_acknowledged_and_then_forgotten(agent, started):
    executor = Recorder(
        launch_task=lambda driver, info: driver.send_status(task_status(info, TASK_RUNNING))
    )
    driver = started(agent, executor)
    agent.launch(task("t1"))
    assert agent.wait_for_status("t1", TASK_RUNNING).uuid
    driver.send_framework_message(b"x")
    agent.wait_for(Call.MESSAGE)
    assert driver.environment is agent.environment


def test_status_of_an_unknown_task_raises_in_the_callers_thread(agent, started):
    driver = started(agent, Recorder())
    with pytest.raises(InvalidValue, match="no task of this executor"):
        driver.send_status(task_status("t9", TASK_RUNNING))


def test_driver_stops_after_shutdown_with_everything_acknowledged(agent, started):
    def end(driver):
        driver.send_status(task_status("t1", TASK_KILLED))

    executor = Recorder(shutdown=end)
    driver = started(agent, executor)
    agent.launch(task("t1"))
    executor.next("launch_task")
    agent.shutdown()
    assert driver.join(PATIENCE_S)
    agent.wait_for_status("t1", TASK_KILLED)


def test_stop_waits_for_acknowledgements(agent, started):
    agent.acknowledging = False
    executor = Recorder()
    driver = started(agent, executor)
    agent.launch(task("t1"))
    executor.next("launch_task")
    driver.send_status(task_status("t1", TASK_FINISHED))
    status = agent.wait_for_status("t1", TASK_FINISHED)
    driver.stop()
    assert driver.join(0.05) is False
    agent.acknowledge(status)
    assert driver.join(PATIENCE_S)


def test_stop_gives_up_on_acknowledgements_after_the_grace(make_agent, started):
    with make_agent(shutdown_grace_s=0.1) as agent:
        agent.acknowledging = False
        executor = Recorder()
        driver = started(agent, executor)
        agent.launch(task("t1"))
        executor.next("launch_task")
        driver.send_status(task_status("t1", TASK_FINISHED))
        driver.stop()
        assert driver.join(PATIENCE_S)


def test_lost_agent_without_checkpointing_means_shutdown(agent, started):
    executor = Recorder()
    driver = started(agent, executor)
    agent.stop_server()
    executor.next("disconnected")
    executor.next("shutdown")
    assert driver.join(PATIENCE_S)


def test_lost_agent_with_checkpointing_is_waited_for(lasting_agent, started):
    executor = Recorder()
    driver = started(lasting_agent, executor)
    lasting_agent.launch(task("t1"))
    executor.next("launch_task")
    lasting_agent.stop_server()
    executor.next("disconnected")
    driver.send_status(task_status("t1", TASK_RUNNING))
    lasting_agent.start_server()
    executor.next("reregistered")
    subscribes = lasting_agent.wait_for(Call.SUBSCRIBE, 2)
    [update] = subscribes[1].subscribe.unacknowledged_updates
    assert update.status.state == TASK_RUNNING
    [known] = subscribes[1].subscribe.unacknowledged_tasks
    assert known.task_id.value == "t1"


def test_agent_that_does_not_come_back_in_time_means_shutdown(make_agent, started):
    with make_agent(checkpoint=True, recovery_timeout_s=0.2) as agent:
        executor = Recorder()
        driver = started(agent, executor)
        agent.stop_server()
        executor.next("disconnected")
        executor.next("shutdown")
        assert driver.join(PATIENCE_S)


def test_launch_said_again_after_a_lost_link_is_shown_once(lasting_agent, started):
    executor = Recorder()
    started(lasting_agent, executor)
    lasting_agent.launch(task("t1"))
    executor.next("launch_task")
    lasting_agent.cut()
    executor.next("disconnected")
    executor.next("reregistered")
    lasting_agent.launch(task("t1"), task("t2"))
    assert executor.next("launch_task")[0].task_id.value == "t2"


def test_agent_that_was_never_there_ends_run(agent, monkeypatch, started):
    agent.stop_server()
    monkeypatch.setattr(executor_link, "FIRST_CONTACT_S", 0.1)
    executor = Recorder()
    driver = started(agent, executor, wait=False)
    with pytest.raises(Unavailable, match=r"agent\.sock|127\.0\.0\.1"):
        driver.join(PATIENCE_S)
    executor.next("error")


def test_refusal_by_the_agent_ends_run_with_it(agent, started):
    agent.refusal = Event(type=Event.ERROR, error=Event.Error(message="unknown executor"))
    executor = Recorder()
    driver = started(agent, executor, wait=False)
    with pytest.raises(Refused, match="unknown executor"):
        driver.join(PATIENCE_S)
    assert executor.next("error") == ("unknown executor",)
    with pytest.raises(Unavailable, match="unknown executor"):
        driver.send_status(task_status("t1", TASK_RUNNING))


def test_exception_in_a_callback_ends_the_driver_after_what_was_reported(agent, started):
    def fail(driver, info):
        driver.send_status(task_status(info, TASK_FINISHED))
        raise ZeroDivisionError("my bug")

    driver = started(agent, Recorder(launch_task=fail))
    agent.launch(task("t1"))
    with pytest.raises(ZeroDivisionError, match="my bug"):
        driver.join(PATIENCE_S)
    agent.wait_for_status("t1", TASK_FINISHED)


def test_kill_is_not_held_up_by_a_task_that_runs_on_a_thread(agent, started):
    killed = threading.Event()

    def work(driver, info):
        assert killed.wait(PATIENCE_S)
        driver.send_status(task_status(info, TASK_KILLED))

    threads = []

    def launch(driver, info):
        threads.append(threading.Thread(target=work, args=(driver, info)))
        threads[-1].start()

    started(agent, Recorder(launch_task=launch, kill_task=lambda *_: killed.set()))
    agent.launch(task("t1"))
    agent.kill("t1")
    agent.wait_for_status("t1", TASK_KILLED)
    for thread in threads:
        thread.join(PATIENCE_S)


def test_missing_environment_is_an_error_naming_the_variable(monkeypatch):
    for name in ("MESOS_PY_EXECUTOR_ENDPOINT", "MESOS_AGENT_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InvalidValue, match="MESOS_PY_EXECUTOR_ENDPOINT"):
        ExecutorDriver(Executor())


async def test_asyncio_client_gives_events_and_flushes_on_leaving(agent):
    seen = []
    async with ExecutorClient(agent.environment) as client:
        async for event in client:
            seen.append(event.type)
            if event.type == Event.SUBSCRIBED:
                agent.launch(task("t1"))
            elif event.type == Event.LAUNCH:
                client.send_status(task_status(event.launch.task, TASK_FINISHED))
                agent.shutdown()
    assert seen == [Event.SUBSCRIBED, Event.LAUNCH, Event.SHUTDOWN]
    assert client.unacknowledged == 0


async def test_asyncio_client_sees_a_shutdown_when_the_agent_is_gone(agent):
    seen = []
    async with ExecutorClient(agent.environment) as client:
        async with asyncio.timeout(PATIENCE_S):
            async for event in client:
                seen.append(event.type)
                if event.type == Event.SUBSCRIBED:
                    await asyncio.to_thread(agent.stop_server)
    assert seen == [Event.SUBSCRIBED, Event.SHUTDOWN]


PROGRAM = """
from mesos_py import TASK_FINISHED, Executor, ExecutorDriver, task_status

class Once(Executor):
    def launch_task(self, driver, task):
        driver.send_status(task_status(task, TASK_FINISHED, data=task.data))
        driver.stop()

ExecutorDriver(Once()).run()
"""


def test_executor_as_a_process_finds_its_agent_by_the_environment(agent):
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], env={"PYTHONPATH": ":".join(sys.path), **agent.environ}
    )
    try:
        agent.wait_for_subscription(timeout_s=30)
        agent.launch(make_task("t1", executor=make_executor(), data=b"payload"))
        assert agent.wait_for_status("t1", TASK_FINISHED).data == b"payload"
        assert program.wait(PATIENCE_S) == 0
    finally:
        program.kill()
        program.wait()
