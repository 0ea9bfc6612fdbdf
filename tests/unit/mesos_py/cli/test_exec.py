"""exec: which container at which agent, which command, which exit code."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator

import pytest

from mesos_py.cli import exec as subject
from mesos_py.v1.agent_operator_pb2 import Call
from mesos_py.v1.types_pb2 import (
    TASK_KILLED,
    TASK_STAGING,
    TASK_UNREACHABLE,
    ContainerID,
    ContainerStatus,
    TaskStatus,
)
from tests.unit.mesos_py.cli import fake_master as fake
from tests.unit.mesos_py.cli.fake_agent import Data, FakeAgent


@pytest.fixture
async def agent(master) -> AsyncIterator[FakeAgent]:
    """That of the task `web`."""
    async with FakeAgent().serving() as made:
        master.agents.append(fake.agent(0))
        master.agents[0].agent_info.http_port = made.port
        master.tasks.append(fake.task("web-1", name="web", statuses=[in_container("c")]))
        yield made


@pytest.fixture
def no_terminal(monkeypatch) -> Iterator[None]:
    reading, writing = os.pipe()
    monkeypatch.setattr(subject, "_STDIN", reading)
    os.close(writing)
    yield
    os.close(reading)


def in_container(name: str) -> TaskStatus:
    status = ContainerStatus(container_id=ContainerID(value=name))
    return TaskStatus(container_status=status)


@pytest.mark.parametrize(("status", "code"), [(0, 0), (3 << 8, 3), (9, 137)])
async def test_it_shows_what_the_command_writes_and_ends_as_it(agent, cli, status, code):
    agent.write(Data.STDOUT, b"out\n")
    agent.write(Data.STDERR, b"err\n")
    agent.end()
    agent.status = status
    ended = await asyncio.to_thread(cli, "exec", "web", "--", "ls", "-l")
    assert (ended.code, ended.out, ended.err) == (code, "out\n", "err\n")
    asked = agent.calls[0].launch_nested_container_session
    assert asked.container_id.parent == ContainerID(value="c")
    assert (asked.command.shell, list(asked.command.arguments)) == (False, ["ls", "-l"])
    assert not asked.HasField("container")


async def test_input_is_ours_if_that_is_wanted(agent, cli, no_terminal):
    running = asyncio.create_task(asyncio.to_thread(cli, "exec", "-i", "web", "cat"))
    await agent.until(1)
    agent.end()
    assert (await running).code == 0
    assert agent.typed[-1].data.data == b""


async def test_what_the_agent_refuses_is_a_negative_answer(agent, cli):
    agent.refusals[Call.LAUNCH_NESTED_CONTAINER_SESSION] = (403, "off")
    ended = await asyncio.to_thread(cli, "exec", "--user", "root", "web", "id")
    assert ended.code == 1
    assert ended.err == f"mesos-py: error: agent {agent.address} refuses: off (403)\n"
    assert agent.calls[0].launch_nested_container_session.command.user == "root"


async def test_an_end_that_nobody_knows_is_no_success(agent, cli):
    agent.end()
    agent.status = None
    ended = await asyncio.to_thread(cli, "exec", "web", "id")
    assert ended.code == 1
    assert "command in task 'web-1' ended is not known" in ended.err


def test_one_word_is_a_line_for_a_shell_and_a_terminal_has_a_kind():
    made = subject.command_of(["date; id"], user=None, term="xterm")
    assert (made.shell, made.value, made.HasField("user")) == (True, "date; id", False)
    assert [(v.name, v.value) for v in made.environment.variables] == [("TERM", "xterm")]


def variables_of(command):
    return [(each.name, each.value) for each in command.environment.variables]


def test_variables_are_given_or_ours_and_theirs_is_the_last_word(monkeypatch):
    monkeypatch.setenv("MINE", "from here")
    made = subject.command_of(["id"], term="xterm", env=["A=1=2", "B=", "MINE", "TERM=vt100"])
    assert variables_of(made) == [
        ("TERM", "xterm"),
        *(("A", "1=2"), ("B", ""), ("MINE", "from here"), ("TERM", "vt100")),
    ]
    assert (made.shell, made.value) == (True, "id")


@pytest.mark.parametrize(
    ("directory", "path"), [("/tmp", "/tmp"), ("a b", "./a b"), ("-", "./-"), ("..", "./..")]
)
@pytest.mark.parametrize(
    ("words", "line"), [(["pwd; id"], ["/bin/sh", "-c", "pwd; id"]), (["ls", "-l"], ["ls", "-l"])]
)
def test_in_a_directory_a_shell_goes_there_first(directory, path, words, line):
    made = subject.command_of(words, directory=directory)
    assert (made.shell, made.value) == (False, "/bin/sh")
    assert list(made.arguments)[:2] == ["sh", "-c"]
    assert list(made.arguments)[3:] == ["sh", path, *line]


async def test_what_is_asked_for_reaches_the_agent(agent, cli):
    agent.end()
    ended = await asyncio.to_thread(
        cli, "exec", "-e", "A=1", "--env", "B=2", "-w", "x", "web", "id"
    )
    assert ended.code == 0
    asked = agent.calls[0].launch_nested_container_session.command
    assert variables_of(asked) == [("A", "1"), ("B", "2")]
    assert "./x" in asked.arguments


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["-e", "1A=x"], "--env: '1A=x': must be NAME=VALUE"),
        (
            ["-e", "a.b=x"],
            "--env: 'a.b=x': must be NAME=VALUE, the NAME of letters (A to Z), digits",
        ),
        (["-e", "A=\udcff"], r"--env: 'A=\udcff': must be UTF-8"),
        (["-w", "\udcff"], r"--workdir: '\udcff': must be UTF-8"),
        (["--user", "\udcff"], r"--user: '\udcff': must be UTF-8"),
        (["-e", "NOT_SET_HERE"], "is not in this environment"),
        (["-w", ""], "--workdir: '': must not be empty"),
    ],
)
def test_options_that_cannot_be_are_named_before_anybody_is_asked(master, cli, options, text):
    ended = cli("exec", *options, "no-such-task", "id")
    assert ended.code == 2
    assert text in ended.err


def test_a_variable_of_ours_that_is_no_text_is_named(master, cli, monkeypatch):
    monkeypatch.setenv("MINE", "\udcff")
    ended = cli("exec", "-e", "MINE", "no-such-task", "id")
    assert (ended.code, ended.err) == (
        2,
        "mesos-py: error: --env: 'MINE=\\udcff': must be UTF-8\n",
    )


@pytest.mark.parametrize("words", [["\udcff"], ["ls", "\udcff"]])
@pytest.mark.parametrize("command", [["exec", "no-such-task"], ["run", "--"]])
def test_words_that_are_no_text_are_named(master, cli, command, words):
    ended = cli(*command, *words)
    assert ended.code == 2
    assert r"COMMAND: '\udcff': must be UTF-8" in ended.err


# ---- What cannot be done -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (TASK_KILLED, "task 'web-1' has ended already: KILLED"),
        (TASK_STAGING, "task 'web-1' does not run yet: STAGING"),
        (TASK_UNREACHABLE, f"cannot be reached: its agent '{fake.CLUSTER}-S0' is away"),
    ],
)
def test_a_task_that_does_not_run_has_no_container(master, cli, state, text):
    master.tasks.append(fake.task("web-1", state=state))
    ended = cli("exec", "web-1", "id")
    assert ended.code == 1
    assert text in ended.err


def test_a_container_that_nobody_has_told_is_said_to_be_so(master, cli):
    master.tasks.append(fake.task("web-1"))
    assert "nobody has told its container" in cli("exec", "web-1", "id").err


def test_the_container_is_that_of_the_last_status_that_has_one():
    task = fake.task("t", statuses=[in_container("a"), in_container("b"), TaskStatus()])
    assert subject.container_of(task).value == "b"


@pytest.mark.parametrize("state", ["disconnected", "unreachable", "expected", "gone"])
def test_an_agent_that_is_away_is_said_to_be_so(master, cli, state):
    master.agents.append(fake.agent(0, state=state))
    master.tasks.append(fake.task("web-1", statuses=[in_container("c")]))
    ended = cli("exec", "web-1", "id")
    assert ended.code == 1
    assert ended.err.endswith(f"-S0' of task 'web-1' is away: {state}\n")


def test_an_agent_that_nobody_knows_or_that_has_no_http_is_told(master, cli):
    master.tasks.append(fake.task("web-1", statuses=[in_container("c")]))
    assert "is away: not known" in cli("exec", "web-1", "id").err
    master.agents.append(fake.agent(0))
    assert "has not told where its HTTP is" in cli("exec", "web-1", "id").err


def test_tasks_are_found_as_by_the_other_commands(master, cli):
    assert "no task has this id" in cli("exec", "nope", "id").err
    master.tasks += [fake.task("a-1", name="a"), fake.task("a-2", name="a")]
    assert "task 'a' means 2: a-1" in cli("exec", "a", "id").err


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["web", "-i", "--", "sh"], "COMMAND: '-i': is no program; options come before TASK"),
        (["web", "--"], "COMMAND: '': must not be empty"),
        (["-it", "web", "sh"], "--tty: True: cannot go with -i: stdin is no terminal"),
    ],
)
def test_wrong_usage_is_told(master, no_terminal, cli, args, text):
    ended = cli("exec", *args)
    assert (ended.code, ended.err) == (2, f"mesos-py: error: {text}\n")
