"""`mesos-py top`: what it shows, and in how many characters."""

import io
import itertools

import pytest
from rich.console import Console

from mesos_py.cli.top import Looks, percent, size, watch
from mesos_py.operator import OperatorClient
from mesos_py.v1 import types_pb2
from mesos_py.v1.agent_operator_pb2 import Response as AgentResponse
from mesos_py.v1.operator_pb2 import Response
from tests.unit.mesos_py.cli import fake_master as fake
from tests.unit.mesos_py.test_usage import container

Usage = Response.GetUsage
Container = AgentResponse.GetContainers.Container


@pytest.fixture
def used(master):
    """A master whose one container uses half a core more with each look."""
    seconds = itertools.count(1)
    missing: list[Usage.Missing] = []

    def answer(call):
        at = next(seconds)
        found = container(
            "c1",
            f"{fake.CLUSTER}-0000",
            timestamp=at,
            cpus_user_time_secs=at / 2,
            mem_total_bytes=3 * 2**20,
            processes=4,
        )
        agent = Usage.Agent(
            agent_id=types_pb2.AgentID(value=f"{fake.CLUSTER}-S0"),
            hostname="host0",
            containers=[found],
        )
        usage = Usage(agents=[agent], missing=missing, left_out=7 if missing else 0)
        return Response(type=Response.GET_USAGE, get_usage=usage)

    master.agents.append(fake.agent(0))
    master.frameworks.append(fake.framework(0, "one"))
    master._get_usage = answer
    master.missing = missing
    return master


def test_in_a_pipe_it_looks_twice_and_shows_what_there_is(used, cli):
    ended = cli("top", "--interval", "100ms")
    assert ended.code == 0
    header, row = ended.table
    assert header == ["CONTAINER", "FRAMEWORK", "HOST", "CPU", "/CPUS", "MEM", "/MEM", "PIDS"]
    assert row == ["task-of-c1", "one", "host0", "0.50", "1", "3.0M", "64M", "4"]


def test_json_has_all_numbers(used, cli):
    (row,) = cli("top", "--json", "--interval", "100ms").json
    assert (row["cpu"], row["memory"], row["io_read"], row["disk"]) == (0.5, 3 * 2**20, None, None)
    assert row["framework"] == "one"


def test_sums_say_how_many_they_are_of(used, cli):
    header, row = cli("top", "--by", "agent", "--interval", "100ms").table
    assert (header[:2], row[:2]) == (["AGENT", "COUNT"], ["host0", "1"])


def test_only_what_was_asked_for_is_asked_for(used, cli):
    assert cli("top", "--framework", "one", "--agent", "host0", "--interval", "100ms").code == 0
    asked = [call.get_usage for call in used.calls if call.HasField("get_usage")]
    assert {each.framework_id.value for each in asked} == {f"{fake.CLUSTER}-0000"}
    assert {each.agent_id.value for each in asked} == {f"{fake.CLUSTER}-S0"}


def test_what_is_missing_is_said_on_stderr(used, cli):
    used.missing.append(Usage.Missing(reason="agent host1 (S1) did not answer within 2 s"))
    ended = cli("top", "--interval", "100ms")
    assert ended.code == 0
    assert ended.err.splitlines() == [
        "mesos-py top: missing: agent host1 (S1) did not answer within 2 s",
        "mesos-py top: 7 more containers; ask for one framework or agent",
    ]


def test_nothing_runs(master, cli):
    master._get_usage = lambda call: Response(get_usage=Usage())
    ended = cli("top", "--interval", "100ms")
    assert (ended.code, ended.out, ended.err) == (0, "", "no containers\n")
    assert cli("top", "--json", "--interval", "100ms").json == []


def test_live_it_goes_on_when_the_master_is_away_and_ends_with_ctrl_c(used):
    console = Console(file=io.StringIO(), force_terminal=True, width=100, height=20)
    pauses = iter(range(3))
    with OperatorClient(f"127.0.0.1:{used.port}") as client:
        looks = Looks(client, None, None, "container", "cpu")

        def pause() -> None:
            number = next(pauses)
            if number == 0:
                used.failure = fake_failure()
            elif number == 1:
                used.failure = None
            else:
                raise KeyboardInterrupt

        watch(looks, console, pause)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert shown.count("task-of-c1") == 3
    assert shown.count("the leader is away") == 1
    assert "1 containers: 0.50 cores, 3.0MB" in shown


def fake_failure():
    from mesos_py.errors import Unavailable

    return Unavailable("the leader is away")


def test_a_small_screen_shows_the_first_rows_and_says_so(used):
    console = Console(file=io.StringIO(), force_terminal=True, width=100, height=5)
    with OperatorClient(f"127.0.0.1:{used.port}") as client:
        looks = Looks(client, None, None, "container", "cpu")
        looks.take()
        looks.rows = looks.rows * 10
        looks.take = lambda: None  # type: ignore[method-assign]

        def pause() -> None:
            raise KeyboardInterrupt

        watch(looks, console, pause)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert shown.count("task-of-c1") == 2
    assert "10 containers" in shown
    assert "the first 2 containers" in shown


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (0, "0"),
        (999, "999"),
        (999.6, "1.0K"),
        (1024, "1.0K"),
        (10_189, "10K"),
        (34 * 2**20, "34M"),
        (1023 * 2**20, "1.0G"),
        (5.25 * 2**40, "5.2T"),
        (5000 * 2**40, "5000T"),
    ],
)
def test_sizes_are_short(value, text):
    assert size(value) == text


def test_shares():
    assert [percent(None), percent(0), percent(0.256), percent(1)] == ["", "0%", "26%", "100%"]
