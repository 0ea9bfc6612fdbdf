"""What the commands that list things print, as JSON and as tables."""

import pytest

from mesos_py.cli import output
from mesos_py.resources import Resources
from mesos_py.v1 import operator_pb2 as pb
from mesos_py.v1 import types_pb2
from mesos_py.v1.types_pb2 import (
    TASK_FAILED,
    TASK_FINISHED,
    TASK_RUNNING,
    TASK_STAGING,
    TASK_STARTING,
    TaskStatus,
)
from tests.unit.mesos_py.cli import fake_master as fake

A0 = f"{fake.CLUSTER}-S0"
F0 = f"{fake.CLUSTER}-0000"


# --- tasks --------------------------------------------------------------------


def test_a_task_row_has_all_its_keys(master, cli):
    master.tasks.append(
        fake.task(
            "t",
            state=TASK_FAILED,
            name="my task",
            statuses=[
                fake.status("t", TASK_STARTING, timestamp=10.0),
                fake.status(
                    "t", TASK_RUNNING, timestamp=11.5, container_status={"executor_pid": 77}
                ),
                fake.status(
                    "t",
                    TASK_FAILED,
                    timestamp=12.0,
                    source=TaskStatus.SOURCE_EXECUTOR,
                    reason=TaskStatus.REASON_COMMAND_EXECUTOR_FAILED,
                    message="Command exited with status 3",
                    exit_status={"exit_code": 3},
                ),
            ],
            resources=Resources.parse("cpus:0.5;ports:[1-3]").to_proto(),
            launched_time=9.5,
            ended_time=12.25,
            user="ann",
            allocation_role="*",
        )
    )
    assert cli("tasks", "--all", "--json").json == [
        {
            "id": "t",
            "name": "my task",
            "framework_id": F0,
            "agent_id": A0,
            "state": "TASK_FAILED",
            "source": "SOURCE_EXECUTOR",
            "reason": "REASON_COMMAND_EXECUTOR_FAILED",
            "message": "Command exited with status 3",
            "healthy": None,
            "check": None,
            "exit_code": 3,
            "signal": None,
            "pid": 77,
            "resources": {"cpus": 0.5, "ports": "[1-3]"},
            "launched": 9.5,
            "started": 11.5,
            "ended": 12.25,
            "user": "ann",
            "role": "*",
            "executor_id": None,
        }
    ]


def test_what_is_not_known_of_a_task_is_null(master, cli):
    master.tasks.append(fake.task("t", state=TASK_STAGING, statuses=[]))
    (row,) = cli("tasks", "--json").json
    nulls = {key for key, value in row.items() if value is None}
    assert nulls == {
        "source", "reason", "message", "exit_code", "signal", "pid", "launched", "started",
        "ended", "user", "role", "executor_id", "healthy", "check",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("status", "healthy", "check"),
    [
        ({"healthy": True}, True, None),
        ({"healthy": False, "check_status": {"command": {"exit_code": 0}}}, False, 0),
        ({"check_status": {"http": {"status_code": 503}}}, None, 503),
        ({"check_status": {"tcp": {"succeeded": False}}}, None, False),
        ({"check_status": {"tcp": {}}}, None, None),
    ],
)
def test_a_row_has_what_its_checks_said_last(master, cli, status, healthy, check):
    master.tasks.append(fake.task("t", statuses=[fake.status("t", TASK_RUNNING, **status)]))
    (row,) = cli("tasks", "--json").json
    assert (row["healthy"], row["check"]) == (healthy, check)


def test_health_is_a_column_where_some_task_has_any(master, cli):
    master.tasks.append(fake.task("plain"))
    assert "HEALTH" not in cli("tasks").out
    for word, healthy in (("ill", False), ("well", True)):
        status = fake.status(word, TASK_RUNNING, healthy=healthy)
        master.tasks.append(fake.task(word, statuses=[status]))
    lines = {line.split()[0]: line.split()[2] for line in cli("tasks").out.splitlines()}
    assert lines == {"ID": "HEALTH", "plain": "-", "ill": "unhealthy", "well": "healthy"}


def test_exit_code_zero_is_not_null(master, cli):
    ended = fake.status("t", TASK_FINISHED, exit_status={"exit_code": 0})
    master.tasks.append(fake.task("t", state=TASK_FINISHED, statuses=[ended]))
    (row,) = cli("tasks", "--all", "--json").json
    assert (row["exit_code"], row["signal"]) == (0, None)


def test_an_end_by_a_signal_has_no_exit_code(master, cli):
    ended = fake.status("t", TASK_FAILED, exit_status={"signal": 9})
    master.tasks.append(fake.task("t", state=TASK_FAILED, statuses=[ended]))
    ended = cli("tasks", "--all", "--json")
    (row,) = ended.json
    assert (row["exit_code"], row["signal"]) == (None, 9)
    assert "SIG9" in cli("tasks", "--all").out


@pytest.mark.parametrize(
    ("args", "ids"),
    [
        ([], ["r0", "s0", "r1"]),
        (["--active"], ["r0", "s0", "r1"]),
        (["--all"], ["r0", "s0", "r1", "f0", "x1"]),
        (["--state", "FAILED"], ["x1"]),
        (["--state", "task_failed,running"], ["r0", "r1", "x1"]),
        (["--state", "failed,running", "--active"], ["r0", "r1"]),
        (["--framework", "two"], ["r1"]),
        (["--framework", "0001", "--all"], ["r1", "x1"]),
        (["--agent", "S1"], ["r1"]),
        (["--agent", "host1"], ["r1"]),
    ],
)
def test_tasks_are_filtered(master, cli, args, ids):
    master.agents += [fake.agent(0), fake.agent(1)]
    master.frameworks += [fake.framework(0, "one"), fake.framework(1, "two")]
    other = types_pb2.AgentID(value=f"{fake.CLUSTER}-S1")
    master.tasks += [
        fake.task("r0"),
        fake.task("s0", state=TASK_STAGING),
        fake.task("r1", framework=1, agent_id=other),
        fake.task("f0", state=TASK_FINISHED),
        fake.task("x1", state=TASK_FAILED, framework=1),
    ]
    assert [row["id"] for row in cli("tasks", "--json", *args).json] == ids


def test_an_unknown_state_lists_the_known_ones(master, cli):
    ended = cli("tasks", "--state", "DONE")
    assert ended.code == 2
    assert "'DONE': is no task state; they are DROPPED, ERROR, FAILED" in ended.err


def test_an_unknown_framework_is_a_negative_answer(master, cli):
    ended = cli("tasks", "--framework", "nope")
    assert ended.code == 1
    assert ended.err.startswith("mesos-py: error: framework 'nope': ")


def test_no_tasks_is_an_empty_array(master, cli):
    ended = cli("tasks", "--json")
    assert (ended.code, ended.out, ended.err) == (0, "[]\n", "")


def test_no_tasks_is_said_on_stderr(master, cli):
    ended = cli("tasks")
    assert (ended.code, ended.out, ended.err) == (0, "", "no tasks\n")


def test_ended_tasks_are_hinted_at(master, cli):
    master.tasks.append(fake.task("f0", state=TASK_FINISHED))
    assert cli("tasks").err == "no live tasks (--all lists those that have ended)\n"
    assert cli("tasks", "--state", "FAILED").err == "no such tasks\n"


# --- the others ---------------------------------------------------------------


def test_an_agent_row(master, cli):
    master.agents.append(
        fake.agent(
            0,
            running_tasks=2,
        )
    )
    master.agents[0].agent_info.attributes.add(name="rack", type=3, text={"value": "a"})
    assert cli("agents", "--json").json == [
        {
            "id": A0,
            "hostname": "host0",
            "address": "127.0.0.1:6000",
            "state": "connected",
            "active": True,
            "deactivated": False,
            "drain": None,
            "version": "0.1.0",
            "attributes": {"rack": "a"},
            "total": {"cpus": 4.0, "mem": 1024.0, "ports": "[1000-1009]"},
            "allocated": {"cpus": 1.5, "ports": "[1000-1001]"},
            "offered": {"cpus": 1.0},
            "free": {"cpus": 1.5, "mem": 1024.0, "ports": "[1002-1009]"},
            "tasks": 2,
            "registered": 1.5,
            "reregistered": None,
            "unreachable": None,
        }
    ]


def test_an_agent_that_came_back_smaller_can_be_listed(master, cli):
    total = Resources.parse("cpus:1").to_proto()
    master.agents.append(fake.agent(0, total_resources=total))
    (row,) = cli("agents", "--json").json
    assert row["free"] == {}


def test_frameworks_that_have_ended_are_listed_with_all(master, cli):
    master.frameworks.append(fake.framework(0, "one"))
    master.frameworks.append(fake.framework(1, "two", connected=False, active=False))
    master.frameworks.append(fake.framework(2, "three", active=False))
    master.completed.append(fake.framework(3, "four"))
    assert [(row["name"], row["state"]) for row in cli("frameworks", "--json").json] == [
        ("one", "active"),
        ("two", "disconnected"),
        ("three", "inactive"),
    ]
    (last,) = cli("frameworks", "--json", "--all").json[3:]
    assert (last["state"], last["active"], last["connected"]) == ("completed", False, False)


def test_offers_are_listed_with_whom_they_were_made_to(master, cli):
    one = fake.framework(0, "one")
    one.offers.add(
        id={"value": "M-O7"},
        framework_id=one.framework_info.id,
        agent_id={"value": A0},
        hostname="host0",
        allocation_info={"role": "dev"},
        resources=Resources.parse("cpus:2").to_proto(),
    )
    master.frameworks.append(one)
    assert cli("offers", "--json").json == [
        {
            "id": "M-O7",
            "framework_id": F0,
            "framework": "one",
            "agent_id": A0,
            "hostname": "host0",
            "role": "dev",
            "resources": {"cpus": 2.0},
        }
    ]
    assert cli("offers").table[1][-1] == "cpus:2"


# --- tables -------------------------------------------------------------------


def test_in_a_pipe_ids_are_whole_and_lines_are_not_wrapped(master, cli):
    task_id = "a-very-long-task-id-" * 10
    master.tasks.append(fake.task(task_id))
    lines = cli("tasks").out.splitlines()
    assert len(lines) == 2
    assert task_id in lines[1]
    assert A0 in lines[1]


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setattr(output, "on_terminal", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")


def test_a_terminal_of_80_columns_gets_lines_of_80_columns(master, cli, terminal):
    master.agents += [fake.agent(0), fake.agent(1)]
    master.frameworks += [fake.framework(0, "a" * 30)]
    message = "something long that has to be said " * 10
    last = fake.status("x", TASK_RUNNING, message=message)
    master.tasks.append(fake.task("job-a1b2c3-17", statuses=[last]))
    for command in ("tasks", "agents", "frameworks"):
        assert max(map(len, cli(command).out.splitlines())) <= 80, command


def test_a_terminal_gets_short_agent_ids_and_whole_task_ids(master, cli, terminal):
    master.tasks += [fake.task("job-a1b2c3-17"), fake.task("job-a1b2c3-18")]
    table = cli("tasks").table
    assert [row[0] for row in table] == ["ID", "job-a1b2c3-17", "job-a1b2c3-18"]
    assert {row[2] for row in table[1:]} == {"S0"}


def test_text_that_looks_like_markup_is_shown_as_it_is(master, cli, terminal):
    last = fake.status("x", TASK_RUNNING, message="[red]no[/red] [1-9]")
    master.tasks.append(fake.task("t", statuses=[last]))
    assert "[red]no[/red] [1-9]" in cli("tasks").out


def test_a_message_cannot_move_the_cursor(master, cli):
    last = fake.status("x", TASK_RUNNING, message="one\ntwo\x1b[2Jthree")
    master.tasks.append(fake.task("t", statuses=[last]))
    assert cli("tasks").out.splitlines()[1].endswith("one two [2Jthree")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (-5, "0s"), (119, "119s"), (120, "2m"), (7200, "2h"), (3 * 86400, "3d")],
)
def test_ages_have_one_unit(seconds, text):
    assert output.age(1000.0, 1000.0 + seconds) == text


@pytest.mark.parametrize(
    ("value", "text"), [(2.0, "2"), (0.5, "0.5"), (0.125, "0.125"), (1000.0, "1000"), (None, "")]
)
def test_amounts_have_no_needless_digits(value, text):
    assert output.amount(value) == text


def test_a_value_of_a_newer_master_is_shown_as_its_number(master, cli):
    master.tasks.append(fake.task("t", state=99, statuses=[]))
    (row,) = cli("tasks", "--json").json
    assert row["state"] == "99"


# --- no master ----------------------------------------------------------------


@pytest.mark.parametrize("command", ["tasks", "agents", "frameworks", "offers", "roles", "explain"])
def test_without_a_master_the_code_says_so(command, cli, monkeypatch):
    monkeypatch.setenv("MESOS_PY_MASTER", "127.0.0.1:1")
    ended = cli(command)
    assert ended.code == 3
    assert ended.err == "mesos-py: error: cannot reach 127.0.0.1:1: Connection refused\n"


def test_the_option_counts_before_the_variable(master, cli, monkeypatch):
    monkeypatch.setenv("MESOS_PY_MASTER", "127.0.0.1:1")
    assert cli("tasks", "--master", f"127.0.0.1:{master.port}").code == 0


def test_a_master_that_was_not_named_is_said_to_be_the_default(cli):
    ended = cli("tasks", "--timeout", "2s")
    assert ended.code == 3
    assert "(the default address; give --master or set MESOS_PY_MASTER)" in ended.err


@pytest.mark.parametrize("text", ["-1", "soon", "1x"])
def test_a_timeout_that_is_none_is_refused(cli, text):
    ended = cli("tasks", "--timeout", text)
    assert ended.code == 2
    assert text in ended.err
    assert "--timeout" in ended.err


def test_filling_explain_is_not_needed_for_an_empty_answer(master, cli):
    assert cli("explain").err == "no framework is connected\n"
    assert master.calls[-1].type == pb.Call.EXPLAIN
