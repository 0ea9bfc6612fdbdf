"""drain, deactivate, reactivate and gone, and how agents are listed meanwhile."""

from typing import Any

import pytest

from mesos_py.cli import drain
from mesos_py.errors import Conflict, Unavailable
from mesos_py.v1 import operator_pb2 as pb
from mesos_py.v1 import types_pb2
from tests.unit.mesos_py.cli import fake_master as fake

A0 = f"{fake.CLUSTER}-S0"
DRAINING = types_pb2.DrainInfo(state=types_pb2.DRAINING)
DRAINED = types_pb2.DrainInfo(state=types_pb2.DRAINED)


@pytest.fixture
def agent(master):
    """An agent on host0, the only one."""
    master.agents.append(fake.agent(0))
    return master.agents[0]


@pytest.fixture
def looks(monkeypatch, master):
    """Instead of pauses: what happens between one look at the agent and the next."""
    steps: list[Any] = []

    class Time:
        now = 0.0

        def monotonic(self):
            return self.now

        def sleep(self, seconds):
            self.now += seconds
            if steps:
                steps.pop(0)()

    monkeypatch.setattr(drain, "time", Time())
    return steps


# ---- drain -----------------------------------------------------------------------------------


def test_drain_names_the_agent_in_full(master, agent, cli):
    ended = cli("drain", "host0")
    assert (ended.code, ended.out) == (0, f"draining agent {A0} (host0)\n")
    order = master.calls[-1]
    assert order.type == pb.Call.DRAIN_AGENT
    assert order.drain_agent.agent_id.value == A0
    assert not order.drain_agent.HasField("max_grace_period")
    assert not order.drain_agent.mark_gone


def test_drain_passes_grace_and_mark_on(master, agent, cli):
    assert cli("drain", "S0", "--grace", "1500ms", "--mark-gone").code == 0
    order = master.calls[-1].drain_agent
    assert (order.max_grace_period.seconds, order.max_grace_period.nanos) == (1, 500_000_000)
    assert order.mark_gone


def test_drain_waits_until_it_is_drained_and_says_what_for(agent, looks, cli):
    agent.running_tasks = 2

    def one_left():
        agent.running_tasks = 1

    def none_left():
        agent.running_tasks = 0

    def over():
        agent.drain_info.CopyFrom(DRAINED)

    looks[:] = [one_left, one_left, none_left, over]
    ended = cli("drain", "host0", "--wait")
    assert ended.code == 0
    assert ended.out.splitlines()[-1] == f"drained agent {A0} (host0)"
    assert ended.err.splitlines() == [
        "mesos-py drain: waiting: 2 tasks left",
        "mesos-py drain: waiting: 1 task left",
        "mesos-py drain: waiting: executors, or ends of tasks that their frameworks have not"
        " acknowledged",
    ]


def test_drain_waits_for_an_agent_that_is_away(agent, looks, cli):
    agent.state = "unreachable"

    def over():
        agent.drain_info.CopyFrom(DRAINED)

    looks[:] = [over]
    ended = cli("drain", "host0", "--wait")
    assert ended.code == 0
    assert "the agent is unreachable; it is drained when it is back" in ended.err


def test_an_agent_that_is_gone_has_been_drained(agent, looks, cli):
    def over():
        agent.state = "gone"

    looks[:] = [over]
    assert cli("drain", "host0", "--mark-gone", "--wait").code == 0


def test_waiting_survives_a_change_of_leader(master, agent, looks, cli):
    def nobody():
        master.failure = Unavailable("stepping down")

    def next_leader():
        master.failure = None
        agent.drain_info.CopyFrom(DRAINED)

    looks[:] = [nobody, lambda: None, next_leader]
    ended = cli("drain", "host0", "--wait")
    assert ended.code == 0
    assert "waiting: no master answers" in ended.err


def test_waiting_ends_when_no_master_comes_back(master, agent, looks, cli):
    def nobody():
        master.failure = Unavailable("stepping down")

    looks[:] = [nobody]
    ended = cli("drain", "host0", "--wait")
    assert ended.code == 1
    assert "stepping down" in ended.err


def test_waiting_ends_when_somebody_takes_the_agent_back(agent, looks, cli):
    looks[:] = [lambda: agent.ClearField("drain_info")]
    ended = cli("drain", "host0", "--wait")
    assert ended.code == 1
    assert f"agent {A0}: was reactivated meanwhile" in ended.err


def test_waiting_ends_when_the_agent_leaves(master, agent, looks, cli):
    looks[:] = [master.agents.clear]
    ended = cli("drain", "host0", "--wait")
    assert ended.code == 1
    assert "has left the cluster before it was drained" in ended.err


# ---- deactivate, reactivate, gone ------------------------------------------------------------


@pytest.mark.parametrize("word", ["deactivate", "reactivate"])
def test_the_word_is_passed_on(master, agent, cli, word):
    ended = cli(word, "host0")
    assert (ended.code, ended.out) == (0, f"{word}d agent {A0} (host0)\n")
    order = master.calls[-1]
    assert pb.Call.Type.Name(order.type) == f"{word.upper()}_AGENT"
    assert getattr(order, f"{word}_agent").agent_id.value == A0


def test_what_the_master_refuses_is_told(master, agent, cli):
    def refuse(call):
        if call.type == pb.Call.REACTIVATE_AGENT:
            master.failure = Conflict(f"agent {A0}: is not deactivated")

    master.before_call = refuse
    ended = cli("reactivate", "host0")
    assert ended.code == 1
    assert "is not deactivated" in ended.err


def test_gone_is_not_said_by_accident(master, agent, cli):
    ended = cli("gone", "host0")
    assert ended.code == 2
    assert ended.err == ("mesos-py: error: yes: 'not given': must be, where nobody can be asked\n")
    assert master.calls[-1].type == pb.Call.GET_AGENTS


def test_gone_is_said_where_it_is_meant(master, agent, cli):
    ended = cli("gone", "host0", "--yes")
    assert (ended.code, ended.out) == (0, f"marked agent {A0} (host0) as gone\n")
    assert master.calls[-1].mark_agent_gone.agent_id.value == A0


def test_a_host_name_means_the_agent_that_is_not_gone(master, agent, cli):
    agent.state = "gone"
    again = fake.agent(1)
    again.agent_info.hostname = "host0"
    master.agents.append(again)
    assert cli("deactivate", "host0").code == 0
    assert master.calls[-1].deactivate_agent.agent_id.value == again.agent_info.id.value


# ---- agents ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({}, "connected"),
        ({"deactivated": True}, "deactivated"),
        ({"deactivated": True, "drain_info": DRAINING}, "draining"),
        ({"deactivated": True, "drain_info": DRAINED}, "drained"),
        ({"deactivated": True, "drain_info": DRAINING, "state": "unreachable"}, "unreachable,"),
        ({"state": "expected"}, "expected"),
    ],
)
def test_the_state_says_why_nothing_is_offered(master, cli, fields, shown):
    master.agents.append(fake.agent(0, **fields))
    assert cli("agents").table[1][2] == shown


def test_rows_say_it_too(master, cli):
    master.agents.append(fake.agent(0, deactivated=True, drain_info=DRAINING))
    [row] = cli("agents", "--json").json
    assert (row["state"], row["deactivated"], row["drain"]) == ("connected", True, "draining")


def test_agents_that_are_gone_are_listed_if_that_is_wanted(master, cli):
    master.agents += [fake.agent(0), fake.agent(1, state="gone", drain_info=DRAINED)]
    assert [row["hostname"] for row in cli("agents", "--json").json] == ["host0"]
    assert [line[2] for line in cli("agents", "--all").table[1:]] == ["connected", "gone"]
