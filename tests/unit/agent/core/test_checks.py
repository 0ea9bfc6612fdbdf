"""When tasks are probed, and what comes of it."""

import pytest

from agent.core.checks import MAX_WAITING
from agent.core.effects import StartProbe
from mesos_py.health import CommandProbe, HttpProbe
from mesos_py.tasks import health_command, health_http, health_tcp
from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import (
    CAPABILITY,
    AgentWorld,
    command,
    executor_info,
    for_executor,
    framework_info,
)

HEALTH_REASON = pb.TaskStatus.REASON_TASK_HEALTH_CHECK_STATUS_UPDATED
CHECK_REASON = pb.TaskStatus.REASON_TASK_CHECK_STATUS_UPDATED
CheckInfo = pb.CheckInfo


def checked(world: AgentWorld, health=None, check=None, task_id: str = "t", **info) -> None:
    """A running task with these checks, whose updates so far are acknowledged."""
    world.run(command(task_id, health_check=health, check=check, **info))
    world.started(task_id)
    world.acknowledge_all(task_id)


def tcp(**times) -> pb.HealthCheck:
    return health_tcp(80, **{"delay_s": 2, "interval_s": 5, "timeout_s": 3, "grace_s": 0, **times})


def tcp_check(**times) -> CheckInfo:
    seconds = {"delay_seconds": 2, "interval_seconds": 5, "timeout_seconds": 3, **times}
    return CheckInfo(type=CheckInfo.TCP, tcp=CheckInfo.Tcp(port=80), **seconds)


def healths(world: AgentWorld, task_id: str = "t") -> list[bool]:
    """What was told of its health, each update once."""
    told = {update.status.uuid: update.status for update in world.updates(task_id)}
    return [status.healthy for status in told.values() if status.HasField("healthy")]


def fail(world: AgentWorld, times: int = 1) -> None:
    for _ in range(times):
        world.advance(5)
        world.probed("t", False, text="port 80: Connection refused")
        world.acknowledge_all("t")


# ---- When -------------------------------------------------------------------------------


def test_nothing_is_probed_before_the_task_runs_and_its_delay_is_over():
    world = AgentWorld()
    world.run(command("t", health_check=tcp()))
    world.advance(60)
    assert world.probes("t") == []
    world.started("t")
    world.advance(1.9)
    assert world.probes("t") == []
    world.advance(0.1)
    assert [each.number for each in world.probes("t")] == [1]


def test_the_probe_is_what_the_framework_asked_for():
    world = AgentWorld()
    checked(world, health_http(8080, "/ok?x=1", scheme="https", ipv6=True, delay_s=0, timeout_s=7))
    world.advance(0)
    (probe,) = world.probes("t")
    assert probe.probe == HttpProbe(8080, "/ok?x=1", "https", ipv6=True)
    assert probe.probe.url == "https://[::1]:8080/ok?x=1"
    assert probe.timeout_s == 7


def test_the_next_probe_comes_an_interval_after_the_end_of_the_last():
    world = AgentWorld()
    checked(world, tcp(timeout_s=60))
    world.advance(2)
    world.advance(30)
    assert len(world.probes("t")) == 1  # in flight still: no second beside it
    world.probed("t", True)
    world.advance(4.9)
    assert len(world.probes("t")) == 1
    world.advance(0.1)
    assert len(world.probes("t")) == 2


def test_without_times_those_of_mesos_count():
    world = AgentWorld()
    checked(world, pb.HealthCheck(command=pb.CommandInfo(value="true")))
    world.advance(14.9)
    assert world.probes("t") == []
    world.advance(0.1)
    world.probed("t", True)
    world.advance(9.9)
    assert len(world.probes("t")) == 1
    world.advance(0.1 + 20)
    assert healths(world) == [True]
    world.acknowledge_all("t")
    assert healths(world) == [True, False]  # after 20 s without an answer


def test_a_timeout_of_zero_is_none():
    world = AgentWorld()
    checked(world, tcp(timeout_s=0))
    world.advance(100_000)
    assert len(world.probes("t")) == 1
    assert world.stopped_probes() == []


def test_a_task_of_a_custom_executor_is_left_to_that():
    world = AgentWorld()
    world.run(for_executor("t", executor_info(), health_check=tcp(delay_s=0), check=tcp_check()))
    world.started("ex")
    world.subscribe("ex")
    world.advance(50)
    assert world.probes("ex") == []


# ---- What becomes of outcomes -----------------------------------------------------------


def test_the_first_success_is_told_and_the_next_ones_are_not():
    world = AgentWorld()
    checked(world, tcp())
    world.advance(2)
    world.probed("t", True, 1, text="port 80 took a connection")
    status = world.last("t")
    assert (status.state, status.healthy, status.reason) == (pb.TASK_RUNNING, True, HEALTH_REASON)
    assert status.message == "Health check: port 80 took a connection"
    assert status.source == pb.TaskStatus.SOURCE_EXECUTOR
    world.acknowledge_all("t")
    world.advance(5)
    world.probed("t", True, 1)
    assert healths(world) == [True]


def test_each_failure_is_told_and_so_is_the_recovery():
    world = AgentWorld()
    checked(world, tcp(failures=3))
    world.advance(2)
    world.probed("t", True)
    world.acknowledge_all("t")
    fail(world, 2)
    world.advance(5)
    world.probed("t", True)
    assert healths(world) == [True, False, False, True]
    assert world.kills() == []


def test_the_running_update_comes_first_and_says_nothing_of_health():
    world = AgentWorld()
    world.run(command("t", health_check=tcp(delay_s=0)))
    world.started("t")
    world.advance(0)
    world.probed("t", True)
    world.acknowledge_all("t")
    assert world.states("t") == ["STARTING", "RUNNING", "RUNNING"]
    assert [u.status.HasField("healthy") for u in world.updates("t")] == [False, False, True]


def test_failures_in_a_row_kill_the_task_with_its_grace_as_not_healthy():
    world = AgentWorld()
    world.framework = framework_info(CAPABILITY.TASK_KILLING_STATE)
    checked(world, tcp(failures=3, delay_s=5), grace_s=4)
    fail(world, 2)
    assert world.kills() == []
    fail(world)
    assert world.states("t")[-1] == "KILLING"
    assert [name for _, name in world.kills()] == ["TERM"]
    world.advance(4)
    assert [name for _, name in world.kills()] == ["TERM", "KILL"]
    world.ended("t", 9)
    world.acknowledge_all("t")
    ended = world.last("t")
    assert (ended.state, ended.healthy) == (pb.TASK_KILLED, False)
    assert ended.message == (
        "Health check failed (3 of 3 in a row): port 80: Connection refused; "
        "Command terminated with signal SIGKILL"
    )
    assert ended.exit_status.signal == 9


def test_a_success_starts_the_count_anew():
    world = AgentWorld()
    checked(world, tcp(failures=2, delay_s=5))
    for _ in range(5):
        fail(world)
        world.advance(5)
        world.probed("t", True)
        world.acknowledge_all("t")
    assert world.kills() == []


@pytest.mark.parametrize("failures", [0, 1])
def test_one_failure_is_enough_if_one_is_asked_for(failures):
    world = AgentWorld()
    health = tcp(delay_s=5)
    health.consecutive_failures = failures
    checked(world, health)
    fail(world)
    assert [name for _, name in world.kills()] == ["TERM"]


def test_a_task_that_ends_by_itself_is_not_called_unhealthy_at_its_end():
    world = AgentWorld()
    checked(world, tcp(delay_s=5))
    fail(world)
    world.ended("t", 0)
    assert world.last("t").state == pb.TASK_FINISHED
    assert not world.last("t").HasField("healthy")


def test_failures_within_the_grace_count_only_after_the_first_success():
    world = AgentWorld()
    checked(world, tcp(failures=1, delay_s=5, grace_s=12))
    fail(world, 2)  # 5 s and 10 s after the start
    assert healths(world) == []
    world.advance(5)
    world.probed("t", False)
    assert healths(world) == [False]
    assert len(world.kills()) == 1


def test_the_grace_ends_with_the_first_success():
    world = AgentWorld()
    checked(world, tcp(failures=2, delay_s=5, grace_s=1000))
    world.advance(5)
    world.probed("t", True)
    world.acknowledge_all("t")
    fail(world)
    assert healths(world) == [True, False]


def test_a_probe_that_does_not_answer_is_stopped_and_has_failed():
    world = AgentWorld()
    checked(world, tcp())
    world.advance(2 + 3)
    assert world.stopped_probes() == [(world.container("t"), "health")]
    assert world.last("t").healthy is False
    assert "no answer within 3 s" in world.last("t").message
    world.acknowledge_all("t")
    world.probed("t", True, number=1)  # too late
    assert healths(world) == [False]
    assert world.drops() == ["outcome of a probe that was given up"]


def test_a_probe_that_was_lost_says_nothing_and_is_done_again():
    world = AgentWorld()
    checked(world, tcp(failures=1))
    world.advance(2)
    world.probed("t", None, text="the process that ran it has ended")
    assert healths(world) == []
    assert world.drops() == ["probe was lost"]
    world.advance(5)
    assert len(world.probes("t")) == 2


# ---- Checks -----------------------------------------------------------------------------


def results(world: AgentWorld) -> list[bool | None]:
    told = {update.status.uuid: update.status for update in world.updates("t")}
    return [
        status.check_status.tcp.succeeded if status.check_status.tcp.HasField("succeeded") else None
        for status in told.values()
    ]


def test_a_check_tells_each_change_of_its_result_and_kills_nothing():
    world = AgentWorld()
    checked(world, check=tcp_check())
    world.advance(2)
    for value in (1, 1, 0, 0, 0, 0, 1):
        world.probed("t", bool(value), value, kind="check")
        world.acknowledge_all("t")
        world.advance(5)
    assert results(world) == [None, None, True, False, True]
    assert world.last("t").reason == CHECK_REASON
    assert world.kills() == []


def test_a_check_without_an_answer_has_an_empty_result():
    world = AgentWorld()
    checked(world, check=tcp_check())
    world.advance(2 + 3)
    assert results(world) == [None, None]  # as empty as before: no news
    world.advance(5)
    world.probed("t", True, 1, kind="check")
    world.acknowledge_all("t")
    world.advance(5 + 3)
    assert results(world) == [None, None, True, None]
    assert world.last("t").check_status.type == CheckInfo.TCP


@pytest.mark.parametrize(
    ("check", "value", "told"),
    [
        (
            CheckInfo(
                type=CheckInfo.COMMAND,
                command=CheckInfo.Command(command=pb.CommandInfo(value="exit 7")),
            ),
            7,
            "command { exit_code: 7 }",
        ),
        (
            CheckInfo(type=CheckInfo.HTTP, http=CheckInfo.Http(port=80, path="/x")),
            503,
            "http { status_code: 503 }",
        ),
        (CheckInfo(type=CheckInfo.TCP, tcp=CheckInfo.Tcp(port=80)), 0, "tcp { succeeded: false }"),
    ],
)
def test_every_status_of_a_task_with_a_check_has_its_result(check, value, told):
    world = AgentWorld()
    checked(world, check=check)
    world.advance(15)
    world.probed("t", value == 0, value, kind="check")
    world.ended("t", 0)
    world.acknowledge_all("t")
    statuses = [update.status.check_status for update in world.updates("t")]
    assert {each.type for each in statuses} == {check.type}
    assert [told in " ".join(str(each).split()) for each in statuses] == [
        False,
        False,
        True,
        False,
    ]


def test_health_and_check_go_on_side_by_side_and_each_update_has_both():
    world = AgentWorld()
    checked(world, tcp(), tcp_check(delay_seconds=3))
    world.advance(3)
    world.probed("t", True)
    world.acknowledge_all("t")
    world.probed("t", False, 0, kind="check")
    last = world.last("t")
    assert (last.reason, last.healthy, last.check_status.tcp.succeeded) == (
        CHECK_REASON,
        True,
        False,
    )


# ---- The end ----------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["kill", "end", "limit", "stop"])
def test_a_task_that_ends_is_probed_no_more_and_nothing_of_its_probes_is_left(how):
    world = AgentWorld()
    checked(world, tcp(), tcp_check(), grace_s=1000)
    world.advance(2)
    container = world.container("t")
    if how == "kill":
        world.kill("t")
    elif how == "end":
        world.ended("t")
    elif how == "stop":
        world.core.on_stop(world.clock.now())
    else:
        reason = pb.TaskStatus.REASON_CONTAINER_LIMITATION_MEMORY
        world.core.on_container_limited(
            container, reason, "too much", pb.TaskResourceLimitation(), world.clock.now()
        )
    world.collect()
    assert sorted(world.stopped_probes()) == [(container, "check"), (container, "health")]
    world.probed("t", False, number=1)
    world.advance(500)
    assert len(world.probes("t")) == 1
    assert healths(world) == []
    assert world.stopped_probes() == [(container, "health"), (container, "check")]


def test_a_task_killed_before_it_ran_is_not_probed():
    world = AgentWorld()
    world.run(command("t", health_check=tcp(delay_s=0), grace_s=1000))
    world.kill("t")
    world.started("t")
    world.advance(100)
    assert world.probes("t") == []


# ---- Standing still, and slow frameworks --------------------------------------------------


def test_an_agent_that_stood_still_counts_nothing_of_that_time():
    world = AgentWorld()
    checked(world, tcp(failures=1, grace_s=20))
    world.advance(2)
    world.clock.advance(60)  # stopped while the probe was in flight
    world.core.on_time(world.clock.now())
    world.collect()
    assert healths(world) == []
    assert world.stopped_probes() == [(world.container("t"), "health")]
    assert [each.number for each in world.probes("t")] == [1, 2]  # anew, at once
    world.probed("t", False, number=1)
    world.probed("t", False)
    assert healths(world) == []  # the grace has not gone by either
    assert world.kills() == []


def test_checks_add_nothing_to_a_queue_that_nobody_empties_and_the_newest_is_told_then():
    world = AgentWorld()
    checked(world, check=tcp_check())
    world.core.on_disconnected()
    world.advance(2)
    for n in range(50):
        world.probed("t", bool(n % 2), n % 2, kind="check")
        world.advance(5)
    assert world.core.state.updates.waiting(("F1", "t")) == MAX_WAITING
    world.probed("t", False, 0, kind="check")
    world.advance(5)
    world.probed("t", True, 1, kind="check")
    world.register()
    world.acknowledge_all("t")
    assert world.last("t").check_status.tcp.succeeded is True
    assert world.core.state.updates.waiting(("F1", "t")) == 0


# ---- Bad ones ---------------------------------------------------------------------------


def test_a_check_that_cannot_be_is_a_task_error_that_names_it():
    world = AgentWorld()
    world.run(command("t", health_check=pb.HealthCheck(type=pb.HealthCheck.TCP)))
    assert world.states("t") == ["ERROR"]
    assert world.last("t").reason == pb.TaskStatus.REASON_TASK_INVALID
    assert world.last("t").message == "health_check.tcp: '': is missing; the type is TCP"
    assert world.specs() == []


def test_a_command_probe_has_its_command():
    world = AgentWorld()
    checked(world, health_command(["curl", "-f", "x"], delay_s=0))
    world.advance(0)
    (probe,) = world.probes("t")
    assert isinstance(probe.probe, CommandProbe)
    assert list(probe.probe.command.arguments) == ["curl", "-f", "x"]


# ---- After a restart of the agent ---------------------------------------------------------


def test_after_a_restart_of_the_agent_checks_start_anew():
    world = AgentWorld()
    checked(world, tcp(failures=2, delay_s=5, grace_s=7), tcp_check())
    fail(world)
    world.restart()
    world.register()
    world.advance(4.9)
    assert world.probes("t") == []
    world.advance(0.1)
    world.probed("t", False)  # within the grace again
    assert healths(world) == []
    world.advance(5)
    world.probed("t", True)
    assert healths(world) == [True]
    assert world.last("t").check_status.type == CheckInfo.TCP
    assert world.kills() == []


def test_a_task_that_was_being_killed_for_its_health_is_told_so_after_a_restart():
    world = AgentWorld()
    checked(world, tcp(failures=1, delay_s=5), grace_s=100)
    fail(world)
    world.restart()
    world.register()
    world.advance(50)
    assert world.probes("t") == []
    world.ended("t", 15)
    world.acknowledge_all("t")
    assert (world.last("t").state, world.last("t").healthy) == (pb.TASK_KILLED, False)
    assert world.last("t").message.startswith("Health check failed (1 of 1 in a row)")


def test_a_task_that_was_not_started_yet_is_checked_once_it_is():
    world = AgentWorld()
    world.run(command("t", health_check=tcp()))
    world.restart()
    world.register()
    world.advance(60)
    assert world.of(StartProbe) == []
    world.started("t")
    world.advance(2)
    assert len(world.probes("t")) == 1
