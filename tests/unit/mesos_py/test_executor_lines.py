"""The executor's way to its agent: which it is, and what is particular to HTTP."""

from __future__ import annotations

import dataclasses
import queue
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web

from mesos_py.errors import MesosPyError, Refused
from mesos_py.executor import Executor, ExecutorDriver, ExecutorEnvironment, lines
from mesos_py.http import conversation
from mesos_py.states import TASK_FINISHED, TASK_RUNNING
from mesos_py.tasks import task_status
from mesos_py.testing.builders import make_executor, make_task
from mesos_py.v1.executor_pb2 import Call
from tests.kit.http_fake_agent import HttpFakeAgent

PATIENCE_S = 60


def environment(endpoint: str, token: str = "") -> ExecutorEnvironment:
    return ExecutorEnvironment(endpoint, "f", "e", token=token)


@pytest.mark.parametrize(
    ("endpoint", "kind"),
    [
        ("unix:/run/a.sock", lines.RpcLine),
        ("10.0.0.1:5052", lines.RpcLine),
        ("http://10.0.0.1:5051", lines.HttpLine),
    ],
)
async def test_the_endpoint_says_how_the_agent_is_spoken_to(endpoint, kind):
    line = lines.dial(environment(endpoint))
    assert type(line) is kind
    await line.close()


def test_a_token_is_not_shown():
    assert "hunter2" not in repr(environment("http://10.0.0.1:5051", "hunter2"))


# ---- With an agent -----------------------------------------------------------------------


class Working(Executor):
    """Says of each task that it runs, and notes what it is told of its link."""

    def __init__(self) -> None:
        self.notes: queue.Queue[str] = queue.Queue()

    def registered(self, *_):
        self.notes.put("registered")

    def reregistered(self, *_):
        self.notes.put("reregistered")

    def disconnected(self, *_):
        self.notes.put("disconnected")

    def launch_task(self, driver, task):
        driver.send_status(task_status(task, TASK_RUNNING))

    def next(self) -> str:
        return self.notes.get(timeout=PATIENCE_S)


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[HttpFakeAgent]:
    with HttpFakeAgent(tmp_path, checkpoint=True, recovery_timeout_s=600) as fake:
        yield fake


@pytest.fixture
def working(agent: HttpFakeAgent) -> Iterator[tuple[Working, ExecutorDriver]]:
    executor = Working()
    told = dataclasses.replace(agent.environment, token="hunter2")
    driver = ExecutorDriver(executor, told)
    driver.start()
    assert executor.next() == "registered"
    yield executor, driver
    driver.abort()
    try:
        assert driver.join(PATIENCE_S)
    except MesosPyError:
        pass  # the test has looked at it


def task(task_id: str):
    return make_task(task_id, "agent-1", executor=make_executor())


def test_the_token_goes_with_each_call(agent, working):
    agent.launch(task("t1"))
    agent.wait_for_status("t1", TASK_RUNNING)
    assert [head["Authorization"] for head in agent.heads] == ["Bearer hunter2"] * 2


def test_an_agent_that_is_long_in_answering_costs_its_executors_no_link(
    agent, working, monkeypatch
):
    monkeypatch.setattr(conversation, "CALL_S", 1e-6)
    executor, _ = working
    for task_id in ("t1", "t2"):
        agent.launch(task(task_id))
        agent.wait_for_status(task_id, TASK_RUNNING)
    assert executor.notes.empty()


@pytest.mark.parametrize("status", [403, 404, 408, 429, 500, 503])
def test_an_update_that_is_not_taken_now_is_said_again_on_another_stream(agent, working, status):
    """403: the agent was started again in between, and the executor is not subscribed."""
    executor, _ = working
    agent.answers.append(web.Response(status=status))
    agent.launch(task("t1"))
    assert executor.next() == "disconnected"
    assert executor.next() == "reregistered"
    _, again = agent.wait_for(Call.SUBSCRIBE, 2)
    [update] = again.subscribe.unacknowledged_updates
    assert update.status.state == TASK_RUNNING
    [known] = again.subscribe.unacknowledged_tasks
    assert known.task_id.value == "t1"


def test_updates_arrive_one_after_the_other_in_their_order(agent, working):
    _, driver = working
    agent.launch(task("t1"))
    agent.wait_for_status("t1", TASK_RUNNING)
    for number in range(50):
        driver.send_status(task_status("t1", TASK_RUNNING, message=str(number)))
    driver.send_status(task_status("t1", TASK_FINISHED))
    agent.wait_for_status("t1", TASK_FINISHED)
    said = [status.message for status in agent.statuses("t1")]
    assert said == ["", *map(str, range(50)), ""]


def test_a_refused_update_ends_the_executor_with_the_agents_words(agent, working):
    _, driver = working
    agent.answers.append(web.Response(status=400, text="no such thing"))
    agent.launch(task("t1"))
    with pytest.raises(Refused, match="400: no such thing"):
        driver.join(PATIENCE_S)


def test_a_refused_subscription_ends_the_executor_with_the_agents_words(agent, working):
    executor, driver = working
    agent.refusal = Refused("Executor cannot be found")
    agent.cut()
    assert executor.next() == "disconnected"
    with pytest.raises(Refused, match="400: Executor cannot be found"):
        driver.join(PATIENCE_S)
