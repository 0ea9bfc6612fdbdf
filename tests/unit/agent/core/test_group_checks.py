"""Checks of tasks of groups: those that the agent's own executor runs."""

import itertools

import pytest

from agent.core import probing
from agent.core.effects import StartProbe
from agent.core.journal import Kind
from mesos_py.tasks import health_command, health_tcp
from mesos_py.v1 import checkpoint_pb2, executor_pb2
from mesos_py.v1 import types_pb2 as pb
from tests.kit import agent_core
from tests.kit.agent_core import AgentWorld, command, executor_info, for_executor

HEALTH_REASON = pb.TaskStatus.REASON_TASK_HEALTH_CHECK_STATUS_UPDATED
CHECK_REASON = pb.TaskStatus.REASON_TASK_CHECK_STATUS_UPDATED
DEFAULT = executor_info(type=pb.ExecutorInfo.DEFAULT)
DEFAULT.ClearField("command")


def tcp(**times) -> pb.HealthCheck:
    return health_tcp(80, **{"delay_s": 2, "interval_s": 5, "timeout_s": 3, "grace_s": 0, **times})


def tcp_check(**times) -> pb.CheckInfo:
    seconds = {"delay_seconds": 2, "interval_seconds": 5, "timeout_seconds": 3, **times}
    return pb.CheckInfo(type=pb.CheckInfo.TCP, tcp=pb.CheckInfo.Tcp(port=80), **seconds)


def of_group(task_id: str, **more) -> pb.TaskInfo:
    return for_executor(task_id, DEFAULT, command=pb.CommandInfo(value="run"), **more)


@pytest.fixture
def world():
    return AgentWorld(default_executor=("/program",))


UUIDS = itertools.count(1)


def status(task_id: str, state: int, **more) -> pb.TaskStatus:
    """As its executor says, each anew."""
    return agent_core.status(task_id, state, uuid=b"%016d" % next(UUIDS), **more)


def launched(world, *infos: pb.TaskInfo) -> None:
    world.run_group(*infos)
    world.started("ex")
    world.subscribe("ex")


def running(world, *infos: pb.TaskInfo) -> None:
    """A group that runs, whose updates so far are acknowledged."""
    launched(world, *infos)
    for info in infos:
        for state in (pb.TASK_STARTING, pb.TASK_RUNNING):
            world.report("ex", status(info.task_id.value, state))
        world.acknowledge_all(info.task_id.value)


def name(world, task_id: str, kind: str = "health") -> str:
    """Of the task's check, as probes have it."""
    checks = world.core.state.tasks["F1", task_id].checks
    (found,) = [str(each.name) for each in checks if each.kind == kind]
    return found


def probed(world, task_id: str, good: bool, value: int | None = None, kind: str = "health"):
    world.probed("ex", good, value, kind=name(world, task_id, kind), text="port 80: refused")


def killed(world) -> list[str]:
    events = [each for each in world.told("ex") if each.type == executor_pb2.Event.KILL]
    return [each.kill.task_id.value for each in events]


def test_each_is_checked_from_when_its_executor_says_that_it_runs(world):
    launched(world, of_group("a", health_check=tcp()), of_group("b", health_check=tcp()))
    world.report("ex", status("a", pb.TASK_STARTING))
    world.advance(60)
    assert world.of(StartProbe) == []
    world.report("ex", status("a", pb.TASK_RUNNING))
    world.advance(1)
    world.report("ex", status("b", pb.TASK_RUNNING))
    world.report("ex", status("b", pb.TASK_RUNNING))  # which begins nothing anew
    world.advance(1)
    assert [each.kind for each in world.of(StartProbe)] == [name(world, "a")]
    world.advance(1)
    assert [each.kind for each in world.of(StartProbe)] == [name(world, "a"), name(world, "b")]
    assert {each.container_id for each in world.of(StartProbe)} == {world.container("ex")}


def test_what_is_found_is_told_of_that_task_alone(world):
    running(world, of_group("a", health_check=tcp(), check=tcp_check()), of_group("b"))
    world.advance(2)
    probed(world, "a", True)
    told = world.last("a")
    assert (told.state, told.reason, told.healthy) == (pb.TASK_RUNNING, HEALTH_REASON, True)
    assert told.source == pb.TaskStatus.SOURCE_EXECUTOR
    assert told.executor_id.value == "ex"
    world.acknowledge_all("a")
    probed(world, "a", False, 0, kind="check")
    told = world.last("a")
    assert (told.reason, told.healthy) == (CHECK_REASON, True)
    assert told.check_status.tcp.succeeded is False
    assert world.last("b").state == pb.TASK_RUNNING
    assert not world.last("b").HasField("healthy")


def test_what_its_executor_says_has_the_results_too(world):
    launched(world, of_group("a", health_check=tcp(), check=tcp_check()))
    world.report("ex", status("a", pb.TASK_STARTING))
    assert world.last("a").check_status == pb.CheckStatusInfo(
        type=pb.CheckInfo.TCP, tcp=pb.CheckStatusInfo.Tcp()
    )
    world.report("ex", status("a", pb.TASK_RUNNING))
    world.advance(2)
    probed(world, "a", True)
    probed(world, "a", True, 1, kind="check")
    world.report("ex", status("a", pb.TASK_RUNNING))
    world.acknowledge_all("a")
    assert (world.last("a").healthy, world.last("a").check_status.tcp.succeeded) == (True, True)
    world.report("ex", status("a", pb.TASK_FINISHED))
    world.acknowledge_all("a")
    assert not world.last("a").HasField("healthy")
    assert world.last("a").check_status.type == pb.CheckInfo.TCP
    assert not world.last("a").check_status.tcp.HasField("succeeded")


def test_one_that_is_not_well_is_killed_by_its_executor_and_takes_its_group_with_it(world):
    patient = tcp(timeout_s=0, failures=100)
    running(world, of_group("a", health_check=tcp(failures=2)), of_group("b", health_check=patient))
    for _ in range(2):
        world.advance(5)
        probed(world, "a", False)
        world.acknowledge_all("a")
    assert killed(world) == ["a"]
    world.advance(100)
    assert len(world.probes("ex", name(world, "a"))) == 2  # nobody looks at it any more
    assert world.kills() == []
    world.report("ex", status("a", pb.TASK_KILLED, message="Command terminated"))
    world.acknowledge_all("a")
    last = world.last("a")
    assert (last.state, last.healthy) == (pb.TASK_KILLED, False)
    assert last.message == (
        "Health check failed (2 of 2 in a row): port 80: refused; Command terminated"
    )
    before = len(world.probes("ex", name(world, "b")))
    world.advance(100)
    # The executor is about to end it: its answers say nothing of it.
    assert len(world.probes("ex", name(world, "b"))) == before
    world.report("ex", status("b", pb.TASK_KILLED))
    world.acknowledge_all("b")
    assert not world.last("b").HasField("healthy")


@pytest.mark.parametrize("state", [pb.TASK_FINISHED, pb.TASK_KILLING])
def test_the_end_of_one_leaves_the_checks_of_the_others(world, state):
    running(world, of_group("a", health_check=tcp()), of_group("b", health_check=tcp()))
    world.advance(2)
    stopped = (world.container("ex"), name(world, "a"))
    world.report("ex", status("a", state))
    assert world.stopped_probes() == [stopped]
    probed(world, "b", True)
    world.advance(5)
    assert [each.number for each in world.probes("ex", stopped[1])] == [1]
    assert [each.number for each in world.probes("ex", name(world, "b"))] == [1, 2]


def test_another_group_of_the_executor_is_not_touched(world):
    running(world, of_group("a", health_check=tcp()))
    world.run_group(of_group("z", health_check=tcp()), new=())
    world.report("ex", status("z", pb.TASK_RUNNING))
    world.report("ex", status("a", pb.TASK_FAILED))
    world.advance(2)
    assert len(world.probes("ex", name(world, "z"))) == 1


def test_nobody_looks_at_what_is_being_killed(world):
    running(world, of_group("a", health_check=tcp()), of_group("b", health_check=tcp()))
    world.kill("a", grace_s=1000)
    world.report("ex", status("a", pb.TASK_RUNNING))
    world.advance(2)
    assert [each.kind for each in world.of(StartProbe)] == [name(world, "b")]
    world.shut_down_executor("ex")
    world.advance(1)
    assert world.stopped_probes() == [(world.container("ex"), name(world, "b"))]


def test_the_end_of_its_executor_stops_all(world):
    running(world, of_group("a", health_check=tcp(timeout_s=0)), of_group("b", check=tcp_check()))
    world.advance(2)
    names = {name(world, "a"), name(world, "b", "check")}
    world.ended("ex", 9)
    assert {stopped for _, stopped in world.stopped_probes()} == names
    world.advance(100)
    assert len(world.of(StartProbe)) == 2


def test_one_without_time_is_not_looked_at_any_more(world):
    most = pb.DurationInfo(nanoseconds=10**9)
    running(world, of_group("a", health_check=tcp(), max_completion_time=most))
    world.advance(2.5)
    assert world.of(StartProbe) == []


def test_checks_start_anew_after_a_restart_of_the_agent(world):
    running(world, of_group("a", health_check=tcp()), of_group("b"))
    world.advance(2)
    before = name(world, "a")
    world.restart()
    world.subscribe("ex")
    world.advance(1.9)
    assert world.of(StartProbe) == []
    world.advance(0.1)
    # By its name what is left of the last probe is known.
    assert [(each.kind, each.number) for each in world.of(StartProbe)] == [(before, 1)]


def test_a_kill_for_health_is_remembered_over_a_restart(world):
    running(world, of_group("a", health_check=tcp(failures=1)))
    world.advance(2)
    probed(world, "a", False)
    world.acknowledge_all("a")
    world.restart()
    world.register()
    world.subscribe("ex")
    assert killed(world) == ["a"]
    world.advance(100)
    assert world.of(StartProbe) == []
    world.report("ex", status("a", pb.TASK_KILLED))
    assert world.last("a").healthy is False
    assert world.last("a").message == "Health check failed (1 of 1 in a row): port 80: refused"


@pytest.mark.parametrize("end", [pb.TASK_FAILED, pb.TASK_KILLED])
@pytest.mark.parametrize("acknowledged", [False, True])
def test_who_ends_with_its_group_is_not_looked_at_after_a_restart_either(world, end, acknowledged):
    running(world, of_group("a"), of_group("b", health_check=tcp(failures=1)))
    world.report("ex", status("a", end))
    if acknowledged:
        world.acknowledge_all("a")
    world.restart()
    world.register()
    world.subscribe("ex")
    world.advance(100)
    assert world.of(StartProbe) == []
    # Which an executor may say again that comes back.
    world.report("ex", status("b", pb.TASK_RUNNING))
    world.advance(100)
    assert world.of(StartProbe) == []
    world.report("ex", status("b", pb.TASK_KILLED))
    assert not world.last("b").HasField("healthy")


def test_another_group_of_the_same_executor_is_looked_at_after_a_restart(world):
    running(world, of_group("a"), of_group("b"))
    running(world, of_group("c", health_check=tcp()))
    world.report("ex", status("a", pb.TASK_FAILED))
    world.restart()
    world.subscribe("ex")
    world.advance(2)
    assert [each.kind for each in world.of(StartProbe)] == [name(world, "c")]


def test_what_an_older_agent_wrote_of_a_kill_for_health_counts(world):
    world.run(command("t", health_check=tcp(failures=1), grace_s=1000))
    world.started("t")
    world.acknowledge_all("t")
    world.advance(2)
    world.probed("t", False, text="closed")
    world.acknowledge_all("t")
    (task_key,) = [key for kind, key in world.records if kind is Kind.TASK]
    (container_key,) = [key for kind, key in world.records if kind is Kind.CONTAINER]
    task = checkpoint_pb2.Task.FromString(world.records[Kind.TASK, task_key])
    container = checkpoint_pb2.Container.FromString(world.records[Kind.CONTAINER, container_key])
    container.unhealthy, task.unhealthy = task.unhealthy, ""
    world.records[Kind.TASK, task_key] = task.SerializeToString()
    world.records[Kind.CONTAINER, container_key] = container.SerializeToString()
    world.restart()
    world.register()
    world.ended("t", 15)
    world.acknowledge_all("t")
    assert world.last("t").healthy is False
    assert "in a row): closed; Command terminated" in world.last("t").message


def test_a_check_that_cannot_be_is_said_of_the_whole_group(world):
    world.run_group(of_group("a"), of_group("b", check=pb.CheckInfo(type=pb.CheckInfo.TCP)))
    for task_id in ("a", "b"):
        last = world.last(task_id)
        assert (last.state, last.reason) == (
            pb.TASK_ERROR,
            pb.TaskStatus.REASON_TASK_GROUP_INVALID,
        )
        assert last.message == "check.tcp: '': is missing; the type is TCP"
    assert world.specs() == []


def test_the_name_of_a_check_is_a_short_word_whatever_the_task_is_called(world):
    long = "..".join(["ä b"] * 20)
    running(world, of_group(long, health_check=health_command("true")), of_group("b"))
    found = name(world, long)
    assert len(found) < 30
    assert found.replace("-", "").isalnum()
    (executor,) = world.core.state.executors.values()
    whose = probing.task_of(executor, found)
    assert whose is not None
    task, check = whose
    assert (task.key[1], check.kind) == (long, "health")
