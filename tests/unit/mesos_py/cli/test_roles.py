"""`mesos-py roles`: the list, and what may be said of a role."""

import pytest
from click.shell_completion import ShellComplete

from mesos_py.cli.main import group
from mesos_py.errors import InsufficientResources
from mesos_py.v1 import operator_pb2 as pb
from mesos_py.v1 import types_pb2
from tests.unit.mesos_py.cli import fake_master as fake

F0 = f"{fake.CLUSTER}-0000"


def amounts(**given):
    return {name: types_pb2.Value.Scalar(value=value) for name, value in given.items()}


def dev() -> types_pb2.Role:
    return types_pb2.Role(
        name="dev",
        weight=2,
        share=0.25,
        frameworks=[types_pb2.FrameworkID(value=F0)],
        policy=types_pb2.RolePolicy(
            weight=2,
            priority=-1,
            guarantees=amounts(cpus=1.5),
            limits=amounts(mem=0, cpus=4),
            need_limits=amounts(cpus=1),
            agents=["host0", "host9"],
        ),
    )


def said(master):
    """The only change that was asked for."""
    (call,) = [each for each in master.calls if each.type == pb.Call.UPDATE_ROLES]
    return call.update_roles


# --- the list -----------------------------------------------------------------


def test_roles_are_listed_with_what_was_said_of_them(master, cli):
    master.roles += [dev(), types_pb2.Role(name="idle", weight=1)]
    assert cli("roles", "--json").json == [
        {
            "name": "dev",
            "weight": 2.0,
            "share": 0.25,
            "frameworks": [F0],
            "resources": {},
            "priority": -1,
            "guarantee": {"cpus": 1.5},
            "limit": {"cpus": 4.0, "mem": 0.0},
            "need_limit": {"cpus": 1.0},
            "agents": ["host0", "host9"],
        },
        {
            "name": "idle",
            "weight": 1.0,
            "share": None,
            "frameworks": [],
            "resources": {},
            "priority": 0,
            "guarantee": {},
            "limit": {},
            "need_limit": {},
            "agents": [],
        },
    ]
    heads = ["ROLE", "WEIGHT", "PRIORITY", "GUARANTEE", "LIMIT", "AGENTS", "SHARE", "HELD"]
    assert cli("roles").table == [
        [*heads, "FRAMEWORKS"],
        ["dev", "2", "-1", "cpus:1.5", "cpus:4;mem:0", "2", "25.0%", "-", "1"],
        ["idle", "1", "0", "-", "-", "0", "-", "-", "0"],
    ]


def test_no_roles(master, cli):
    ended = cli("roles")
    assert (ended.code, ended.out, ended.err) == (0, "", "no roles\n")


@pytest.mark.parametrize(
    ("args", "option"),
    [
        (("--json",), "--json"),
        (("--master", "127.0.0.1:1"), "--master"),
        (("--timeout", "1s"), "--timeout"),
    ],
)
def test_options_of_the_list_are_not_those_of_a_sub_command(cli, args, option):
    ended = cli("roles", *args, "show", "dev")
    assert ended.code == 2
    assert f"give {option} behind 'show'" in ended.err


# --- show ---------------------------------------------------------------------


def test_one_role_is_shown_whole(master, cli):
    master.roles.append(dev())
    master.agents.append(fake.agent(0))
    assert cli("roles", "show", "dev").out.splitlines() == [
        "role dev",
        "  weight:      2",
        "  priority:    -1",
        "  guarantee:   cpus:1.5",
        "  limit:       cpus:4;mem:0",
        "  need limit:  cpus:1",
        "  agents:      host0, host9 (not known)",
        "  share:       25.0%",
        "  held:        -",
        f"  frameworks:  {F0}",
    ]
    (row,) = cli("roles", "show", "dev", "--json").json
    assert row["agents"] == ["host0", "host9"]


def test_a_role_that_nobody_knows(master, cli):
    ended = cli("roles", "show", "nobody")
    assert ended.code == 1
    assert ended.err == (
        "mesos-py: error: role 'nobody': no framework is in it, and nothing was said of it\n"
    )


# --- set ----------------------------------------------------------------------


def test_only_what_is_named_is_said(master, cli):
    ended = cli("roles", "set", "web", "--weight", "2", "--limit", "cpus:0;mem:2048")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == "web: weight 2, limit cpus:0;mem:2048\n"
    (change,) = said(master).changes
    assert list(change.fields) == ["weight", "limits"]
    assert change.policy == types_pb2.RolePolicy(weight=2, limits=amounts(cpus=0, mem=2048))
    assert not said(master).force


def test_everything_can_be_said_at_once(master, cli):
    options = {
        "weight": "0.5",
        "priority": "-7",
        "guarantee": "cpus:1",
        "limit": "cpus:2",
        "need-limit": "cpus:1;mem:0.5",
        "agents": "host0, host1",
    }
    args = [word for name, value in options.items() for word in (f"--{name}", value)]
    master.agents += [fake.agent(0), fake.agent(1)]
    ended = cli("roles", "set", "a/b", *args, "--force")
    assert ended.out == (
        "a/b: weight 0.5, priority -7, guarantee cpus:1, limit cpus:2, "
        "need limit cpus:1;mem:0.5, agents host0,host1\n"
    )
    assert ended.err == ""
    (change,) = said(master).changes
    assert change.role == "a/b"
    assert change.policy == types_pb2.RolePolicy(
        weight=0.5,
        priority=-7,
        guarantees=amounts(cpus=1),
        limits=amounts(cpus=2),
        need_limits=amounts(cpus=1, mem=0.5),
        agents=["host0", "host1"],
    )
    assert said(master).force


@pytest.mark.parametrize(
    ("option", "field"),
    [
        ("--no-weight", "weight"),
        ("--no-priority", "priority"),
        ("--no-guarantee", "guarantees"),
        ("--no-limit", "limits"),
        ("--no-need-limit", "need_limits"),
        ("--no-agents", "agents"),
    ],
)
def test_each_can_be_taken_back(master, cli, option, field):
    assert cli("roles", "set", "web", option).code == 0
    (change,) = said(master).changes
    assert (list(change.fields), change.policy) == ([field], types_pb2.RolePolicy())


def test_agents_that_are_not_known_are_said(master, cli):
    master.agents.append(fake.agent(0))
    agent_id = f"{fake.CLUSTER}-S0"
    ended = cli("roles", "set", "web", "--agents", f"host0,typo,{agent_id}")
    assert (ended.code, ended.err) == (0, "note: no agent is known as typo (it may come)\n")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "nothing to set"),
        (("--force",), "nothing to set"),
        (
            ("--limit", "cpus:1", "--no-limit"),
            "--limit: 'cpus:1': cannot be given together with --no-limit",
        ),
        (("--limit", "cpus"), "--limit: 'cpus': must be NAME:VALUE"),
        (("--guarantee", "cpus:-1"), "--guarantee.cpus: -1: must be above zero"),
        (("--need-limit", "ports:[1-2]"), "--need-limit.ports: '[1-2]': must be a number"),
        (("--agents", "a,,b"), "--agents: 'a,,b': has an empty name"),
        (("--priority", str(2**31)), f"--priority: {2**31}: must be a 32-bit number"),
        (("--weight", "heavy"), "--weight"),
    ],
)
def test_what_cannot_be_said_is_refused_here(master, cli, args, message):
    ended = cli("roles", "set", "web", *args)
    assert ended.code == 2
    assert message in ended.err
    assert master.calls == []


def test_what_the_master_refuses_is_said_in_its_words(master, cli):
    master.failure = InsufficientResources(
        "changes[web].policy.guarantees.cpus: 9: all guarantees come to 9 cpus, the cluster has 4"
    )
    ended = cli("roles", "set", "web", "--guarantee", "cpus:9")
    assert ended.code == 1
    assert ended.err.startswith("mesos-py: error: changes[web].policy.guarantees.cpus: 9: all")


# --- unset --------------------------------------------------------------------


def test_all_of_it_is_taken_back(master, cli):
    master.roles.append(dev())
    ended = cli("roles", "unset", "dev")
    assert (ended.code, ended.out) == (0, "dev: nothing is said of it\n")
    (change,) = said(master).changes
    assert (list(change.fields), change.policy) == ([], types_pb2.RolePolicy())


# --- the shell ----------------------------------------------------------------


@pytest.mark.parametrize("sub", ["set", "show", "unset"])
def test_the_shell_knows_the_roles(master, sub):
    master.roles += [dev(), types_pb2.Role(name="web", weight=1)]
    found = ShellComplete(group, {}, "mesos-py", "_X").get_completions(["roles", sub], "d")
    assert [item.value for item in found] == ["dev"]
