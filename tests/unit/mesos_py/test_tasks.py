"""Tasks, executors and statuses from few words."""

import pytest

from mesos_py.errors import InvalidValue
from mesos_py.resources import Resources
from mesos_py.states import TASK_FAILED
from mesos_py.tasks import (
    command_info,
    command_task,
    custom_executor,
    default_executor,
    executor_task,
    health_command,
    health_http,
    health_tcp,
    launch,
    task_status,
    uri,
)
from mesos_py.testing.builders import make_executor, make_offer, make_task
from mesos_py.v1.types_pb2 import (
    AgentID,
    CheckInfo,
    ExecutorInfo,
    HealthCheck,
    NetworkInfo,
    Offer,
    TaskID,
    TaskStatus,
)


def test_command_task_has_all_that_was_said():
    task = command_task(
        "count",
        "t1",
        make_offer("o1", "a1"),
        "echo $X",
        cpus=0.5,
        mem=64,
        resources=Resources.of(disk=10, ports=[(31000, 31001)]),
        env={"X": "1"},
        user="nobody",
        kill_grace_s=2.5,
        labels={"kind": "map"},
    )
    assert (task.name, task.task_id.value, task.agent_id.value) == ("count", "t1", "a1")
    assert Resources.from_proto("r", task.resources) == Resources.parse(
        "cpus:0.5;mem:64;disk:10;ports:[31000-31001]"
    )
    assert task.command.shell
    assert (task.command.value, task.command.user) == ("echo $X", "nobody")
    assert [(v.name, v.value) for v in task.command.environment.variables] == [("X", "1")]
    assert task.kill_policy.grace_period.nanoseconds == 2_500_000_000
    assert task.labels.labels[0].key == "kind"


def test_list_is_executed_as_it_is():
    info = command_info(["printf", "%s", "a b"])
    assert not info.shell
    assert info.value == "printf"
    assert list(info.arguments) == ["printf", "%s", "a b"]


@pytest.mark.parametrize("place", [make_offer("o", "a1"), AgentID(value="a1"), "a1"])
def test_place_is_an_offer_or_an_agent(place):
    assert command_task("n", "t", place, "true", cpus=1).agent_id.value == "a1"


@pytest.mark.parametrize("command", ["", [], [""]])
def test_empty_command_is_an_error(command):
    with pytest.raises(InvalidValue, match="command"):
        command_info(command)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"task_id": ""}, "task_id"),
        ({"task_id": "a/b"}, "task_id"),
        ({"offer": ""}, "agent_id"),
        ({"cpus": None}, "resources"),
        ({"cpus": -1}, "cpus"),
        ({"cpus": float("nan")}, "cpus"),
        ({"env": {"X": 1}}, r"env\.X"),
        ({"kill_grace_s": -1}, "kill_grace_s"),
        ({"kill_grace_s": float("nan")}, "kill_grace_s"),
    ],
)
def test_bad_input_names_the_field(fields, field):
    good = {"name": "n", "task_id": "t", "offer": "a1", "command": "true", "cpus": 1}
    with pytest.raises(InvalidValue, match=field):
        command_task(**{**good, **fields})


def test_uris_are_texts_or_have_all_that_was_said():
    tool = uri("s3://b/tool", executable=True, cache=True, output_file="bin/t", sha256="aB" * 32)
    assert tool.value == "s3://b/tool#sha256=" + "ab" * 32
    assert (tool.executable, tool.cache, tool.extract, tool.output_file) == (
        True,
        True,
        True,
        "bin/t",
    )
    plain = uri("http://h/a.tgz")
    assert not plain.HasField("output_file")
    command = command_info("true", uris=["http://h/a.tgz", tool])
    assert list(command.uris) == [plain, tool]
    task = command_task("n", "t", "a1", "true", cpus=1, uris=[tool])
    executor = custom_executor("e", "true", uris=[tool])
    assert list(task.command.uris) == list(executor.command.uris) == [tool]


def test_a_uri_that_cannot_be_is_named():
    with pytest.raises(InvalidValue, match="sha256"):
        uri("http://h/a", sha256="12")
    with pytest.raises(InvalidValue, match="uri"):
        command_info("true", uris=[""])
    with pytest.raises(InvalidValue, match="must be a list"):
        command_info("true", uris="http://h/a")


def test_executor_task_carries_executor_and_data():
    task = executor_task("n", "t1", "a1", make_executor("e1"), data=b"d", cpus=1, labels={"a": ""})
    assert task.executor.executor_id.value == "e1"
    assert task.data == b"d"
    assert not task.HasField("command")
    assert not executor_task("n", "t1", "a1", make_executor(), cpus=1).HasField("data")


def test_the_agents_own_executor_has_no_command_and_all_that_a_group_needs():
    executor = default_executor("e", mem=48, shutdown_grace_s=2)
    assert executor.type == ExecutorInfo.DEFAULT
    assert not executor.HasField("command")
    own = Resources.from_proto("resources", executor.resources)
    assert own == Resources.of(cpus=0.1, mem=48, disk=32)
    assert executor.shutdown_grace_period.nanoseconds == 2_000_000_000


def test_custom_executor_has_defaults_and_what_was_said():
    executor = custom_executor(
        "e1", ["python3", "x.py"], env={"A": "b"}, data=b"d", shutdown_grace_s=1
    )
    assert executor.type == ExecutorInfo.CUSTOM
    assert executor.name == "e1"
    assert Resources.from_proto("r", executor.resources) == Resources.of(cpus=0.1, mem=32)
    assert executor.shutdown_grace_period.nanoseconds == 1_000_000_000
    assert executor.data == b"d"


def test_launch_takes_one_or_many():
    for tasks in (make_task("t1"), [make_task("t1")]):
        operation = launch(tasks)
        assert operation.type == Offer.Operation.LAUNCH
        assert operation.launch.task_infos[0].task_id.value == "t1"


@pytest.mark.parametrize("task", [make_task("t1"), TaskID(value="t1"), "t1"])
def test_status_has_what_was_said_and_nothing_else(task):
    status = task_status(
        task,
        TASK_FAILED,
        message="m",
        data=b"d",
        healthy=False,
        reason=TaskStatus.REASON_TASK_INVALID,
    )
    assert (status.task_id.value, status.state, status.message) == ("t1", TASK_FAILED, "m")
    assert status.HasField("healthy")
    bare = task_status(task, TASK_FAILED)
    assert not any(bare.HasField(name) for name in ("message", "data", "healthy", "reason"))


# ---- Health ---------------------------------------------------------------------------


def test_health_checks_say_what_they_were_told_and_no_more():
    health = health_command("test -f up", delay_s=1, interval_s=2, timeout_s=3, grace_s=4)
    assert (health.type, health.command.value) == (HealthCheck.COMMAND, "test -f up")
    assert (health.delay_seconds, health.interval_seconds) == (1, 2)
    assert (health.timeout_seconds, health.grace_period_seconds) == (3, 4)
    assert not health.HasField("consecutive_failures")
    http = health_http(8080, "/up", scheme="https", ipv6=True, failures=5)
    assert (http.type, http.http.port, http.http.path) == (HealthCheck.HTTP, 8080, "/up")
    assert (http.http.scheme, http.http.protocol) == ("https", NetworkInfo.IPv6)
    assert (http.consecutive_failures, http.HasField("delay_seconds")) == (5, False)
    tcp = health_tcp(22)
    assert (tcp.type, tcp.tcp.port) == (HealthCheck.TCP, 22)


def test_a_task_has_the_checks_that_it_was_given():
    check = CheckInfo(type=CheckInfo.TCP, tcp=CheckInfo.Tcp(port=1))
    task = command_task("n", "t", "a1", "true", cpus=1, health=health_tcp(2), check=check)
    assert (task.health_check.tcp.port, task.check.tcp.port) == (2, 1)
    assert not command_task("n", "t", "a1", "true", cpus=1).HasField("health_check")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: health_tcp(0), "port: 0"),
        (lambda: health_tcp(True), "port: True"),
        (lambda: health_http(80, "up"), "health.http.path: 'up'"),
        (lambda: health_command(""), "command: ''"),
        (lambda: health_tcp(80, failures=0), "failures: 0"),
        (lambda: health_tcp(80, interval_s=-1), "health.interval_seconds: -1"),
    ],
)
def test_a_health_check_that_cannot_be_is_an_error_at_once(make, words):
    with pytest.raises(InvalidValue, match=f"^{words}"):
        make()
