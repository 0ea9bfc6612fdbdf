"""reserve, unreserve, reservations and volume."""

import sys

import pytest

from mesos_py.errors import Conflict
from mesos_py.reserved import Reservation
from mesos_py.resources import Resources
from mesos_py.v1 import operator_pb2 as pb
from mesos_py.v1.types_pb2 import TASK_FINISHED, AgentID
from mesos_py.volumes import volume_at
from tests.kit.reserving import amount, by, volume
from tests.unit.mesos_py.cli import fake_master as fake

A0 = f"{fake.CLUSTER}-S0"
A1 = f"{fake.CLUSTER}-S1"
NODE = f"agent {A0} (host0)"
PLAIN = Resources.of(cpus=4, mem=1024, disk=500, ports=[(1000, 1009)])
ALICE = by("ads", "alice", {"for": "db"})
BOB = by("ads", "bob")
STATIC = Resources.parse_reserved("cpus(web):2;disk(web):80")
ORDERS = volume(ALICE, 64, "orders", "data", principal="carol")


@pytest.fixture
def has(master):
    """Let there be an agent on host0 that has this, and of which that is used and offered."""

    def put(total: Resources, used=None, offered=None) -> None:
        parts = {"total": total, "allocated": used, "offered": offered}
        fields = {f"{n}_resources": part.to_proto() if part else () for n, part in parts.items()}
        master.agents[:] = [fake.agent(0, **fields)]

    put(PLAIN)
    return put


def asked(master):
    """The last order: its kind, and what it is about, if it is one of an agent."""
    order = master.calls[-1]
    kind = pb.Call.Type.Name(order.type)
    fields = getattr(order, kind.lower())
    assert fields.agent_id.value == A0
    return kind, fields


def orders(master) -> list[str]:
    """All that was asked and is no question."""
    kinds = [pb.Call.Type.Name(each.type) for each in master.calls]
    return [kind for kind in kinds if not kind.startswith("GET_")]


def resources(messages) -> Resources:
    return Resources.from_proto("asked", messages)


def ordered(what: str) -> str:
    """What is said of it: the master's word is not yet the agent's."""
    return f"ordered: {what}; if the agent cannot, its log says why\n"


# ---- reserve ---------------------------------------------------------------------------------


def test_reserve_says_what_of_which_agent_for_whom(master, has, cli):
    ended = cli("reserve", "host0", "cpus:2;ports:[1000-1001]", "--role", "ads")
    said = ordered(f"reserve cpus:2;ports:[1000-1001] of {NODE} for ads")
    assert (ended.code, ended.out, ended.err) == (0, said, "")
    kind, fields = asked(master)
    assert kind == "RESERVE_RESOURCES"
    assert resources(fields.resources) == amount(by("ads"), cpus=2, ports=(1000, 1001))
    assert not fields.source


def test_reserve_keeps_who_and_labels(master, has, cli):
    given = ("--principal", "alice", "--label", "for=db", "--label", "x", "--label", "y=a=b")
    assert cli("reserve", "S0", "cpus:2", "--role", "ads", *given).code == 0
    labels = (("for", "db"), ("x", None), ("y", "a=b"))
    expected = amount((Reservation("ads", "dynamic", "alice", labels),), cpus=2)
    assert resources(asked(master)[1].resources) == expected


def test_reserve_refines_what_the_agent_reserves_itself(master, has, cli):
    assert cli("reserve", "host0", "cpus(web):1", "--role", "web/a").code == 0
    (made,) = asked(master)[1].resources
    assert [each.role for each in made.reservations] == ["web", "web/a"]


@pytest.mark.parametrize(
    ("args", "code", "error"),
    [
        (["host0", "cpus:-1", "--role", "ads"], 2, "resources.cpus: -1: must be above zero"),
        (["host0", "", "--role", "ads"], 2, "resources: '': names no resource"),
        (["host0", "cpus:1", "--role", "a//b"], 2, "role: 'a//b'"),
        (
            ["host0", "cpus:1", "--role", "ads", "--label", "a=1", "--label=b", "--label=a=2"],
            2,
            "--label: 'a=2': the key 'a' is given twice",
        ),
        (["host0", "cpus:1", "--role", "*"], 2, "'*': nothing can be reserved for all roles"),
        (["host0", "cpus:1", "--role", "ads", "--label", "=x"], 2, "--label: '=x': must have a"),
        (["host0", "cpus:1"], 2, "Missing option '--role'"),
        (["host9", "cpus:1", "--role", "ads"], 1, "agent 'host9': no agent has this id"),
    ],
)
def test_what_reserve_cannot_take_is_said(master, has, cli, args, code, error):
    ended = cli("reserve", *args)
    assert (ended.code, ended.out) == (code, "")
    assert error in ended.err
    assert orders(master) == []


def test_what_the_master_refuses_is_a_negative_answer(master, has, cli):
    def refuse(call):
        if call.type == pb.Call.RESERVE_RESOURCES:
            master.failure = Conflict("cpus: 9 wanted, 4 there that nobody uses")

    master.before_call = refuse
    ended = cli("reserve", "host0", "cpus:9", "--role", "ads")
    assert ended.code == 1
    assert ended.err == "mesos-py: error: cpus: 9 wanted, 4 there that nobody uses\n"


# ---- unreserve -------------------------------------------------------------------------------


def test_unreserve_finds_who_has_reserved_it_and_with_which_labels(master, has, cli):
    has(PLAIN + STATIC + amount(ALICE, cpus=2, disk=9) + ORDERS + amount(by("web"), cpus=2))
    ended = cli("unreserve", "host0", "cpus:1;disk:9", "--role", "ads")
    assert (ended.code, ended.out) == (0, ordered(f"unreserve cpus:1;disk:9 of {NODE}"))
    kind, fields = asked(master)
    assert kind == "UNRESERVE_RESOURCES"
    assert resources(fields.resources) == amount(ALICE, cpus=1, disk=9)


@pytest.mark.parametrize(
    "given", [["--principal", "alice"], ["--label", "for=db"], ["--label=for=db", "--label=b"]]
)
def test_unreserve_is_told_which_of_several_it_may_be(master, has, cli, given):
    mine = (Reservation("ads", "dynamic", "alice", (("b", None), ("for", "db"))),)
    has(PLAIN + amount(mine, cpus=2) + amount(BOB, cpus=2))
    ended = cli("unreserve", "host0", "cpus:1", "--role", "ads")
    assert ended.code == 1
    assert ended.err == (
        f"mesos-py: error: cpus:1: 2 kinds of reservation on {NODE} have as much: "
        "dynamic for ads (principal alice, labels b,for=db); dynamic for ads (principal bob)\n"
    )
    assert cli("unreserve", "host0", "cpus:1", "--role", "ads", *given).code == 0
    assert resources(asked(master)[1].resources) == amount(mine, cpus=1)


def test_of_several_reservations_the_one_that_has_as_much_is_meant(master, has, cli):
    has(PLAIN + amount(ALICE, cpus=2) + amount(BOB, cpus=1))
    assert cli("unreserve", "host0", "cpus:2", "--role", "ads").code == 0
    assert resources(asked(master)[1].resources) == amount(ALICE, cpus=2)


def test_all_that_is_reserved_so_is_given_back_but_volumes(master, has, cli):
    has(PLAIN + amount(ALICE, cpus=2, ports=(2000, 2001)) + amount(BOB, cpus=1) + ORDERS)
    assert cli("unreserve", "host0", "--all", "--role", "ads").code == 0
    both = amount(ALICE, cpus=2, ports=(2000, 2001)) + amount(BOB, cpus=1)
    assert resources(asked(master)[1].resources) == both
    assert cli("unreserve", "host0", "--all", "--role", "ads", "--principal", "bob").code == 0
    assert resources(asked(master)[1].resources) == amount(BOB, cpus=1)


@pytest.mark.parametrize(
    ("args", "code", "error"),
    [
        (["cpus:1"], 1, f"reservation 'ads': nothing on {NODE} was reserved so while"),
        (["cpus:1", "--label", "a"], 1, "reservation 'ads, labels a': nothing on"),
        (["--all", "--principal", "x"], 1, "reservation 'ads, principal x': nothing on"),
        ([], 2, "resources: '': either amounts or --all must be given"),
        (["cpus:1", "--all"], 2, "resources: 'cpus:1': either amounts or --all must be given"),
        (["cpus(ads):1"], 2, "resources"),
    ],
)
def test_what_unreserve_cannot_take_is_said(master, has, cli, args, code, error):
    has(PLAIN + Resources.parse_reserved("cpus(ads):2"))
    ended = cli("unreserve", "host0", "--role", "ads", *args)
    assert (ended.code, ended.out) == (code, "")
    assert error in ended.err
    assert orders(master) == []


def test_what_is_not_reserved_as_much_is_said_by_name(has, cli):
    has(PLAIN + amount(ALICE, cpus=2, mem=64) + amount(BOB, mem=64))
    ended = cli("unreserve", "host0", "cpus:3;mem:64", "--role", "ads")
    assert ended.code == 1
    assert ended.err == f"mesos-py: error: cpus: 3 wanted, 2 reserved so on {NODE}\n"


def test_volumes_have_to_be_destroyed_first(has, cli):
    has(PLAIN + ORDERS)
    ended = cli("unreserve", "host0", "disk:64", "--role", "ads")
    assert ended.code == 1
    assert "are volumes, which have to be destroyed" in ended.err


# ---- reservations ----------------------------------------------------------------------------


def test_reservations_say_for_whom_by_whom_and_how_much_is_unused(has, cli):
    offered = amount(ALICE, cpus=0.5)
    has(PLAIN + STATIC + amount(ALICE, cpus=2) + ORDERS, amount(ALICE, cpus=1) + ORDERS, offered)
    ended = cli("reservations", "--json")
    assert ended.code == 0
    ads, web = ended.json
    labels = [{"key": "for", "value": "db"}]
    assert ads == {
        "role": "ads",
        "agent_id": A0,
        "hostname": "host0",
        "kind": "dynamic",
        "principal": "alice",
        "labels": labels,
        "within": [],
        "reserved": {"cpus": 2.0, "disk": 64.0},
        "used": {"cpus": 1.0, "disk": 64.0},
        "offered": {"cpus": 0.5},
        "unused": {"cpus": 1.0},
        "volumes": {"orders": 64.0},
    }
    assert (web["role"], web["kind"], web["principal"], web["labels"]) == (
        "web",
        "static",
        None,
        [],
    )
    assert web["reserved"] == web["unused"] == {"cpus": 2.0, "disk": 80.0}
    table = cli("reservations").table
    assert table == [
        ["ROLE", "AGENT", "HOST", "KIND", "BY", "LABELS", "RESERVED", "UNUSED", "VOLUMES"],
        [
            *("ads", A0, "host0", "dynamic", "alice", "for=db"),
            "cpus:2;disk:64",
            "cpus:1",
            "orders:64",
        ],
        ["web", A0, "host0", "static", "-", "-", "cpus:2;disk:80", "cpus:2;disk:80", "-"],
    ]


def test_a_reservation_within_another_says_within_which(has, cli):
    refined = amount((*ALICE, *by("ads/x", "bob")), cpus=1)
    has(PLAIN + refined)
    (row,) = cli("reservations", "--json").json
    assert (row["role"], row["principal"]) == ("ads/x", "bob")
    assert [(each["role"], each["kind"], each["principal"]) for each in row["within"]] == [
        ("ads", "dynamic", "alice")
    ]


def test_reservations_of_one_role_or_agent_only(master, has, cli):
    has(PLAIN + STATIC + amount(ALICE, cpus=2))
    other = fake.agent(1, total_resources=amount(BOB, cpus=1).to_proto())
    gone = fake.agent(2, total_resources=amount(BOB, cpus=1).to_proto(), state="gone")
    master.agents += [other, gone]
    rows = cli("reservations", "--json", "--role", "ads").json
    assert [(row["hostname"], row["principal"]) for row in rows] == [
        ("host0", "alice"),
        ("host1", "bob"),
    ]
    (row,) = cli("reservations", "--json", "--agent", "host1").json
    assert row["agent_id"] == A1
    ended = cli("reservations", "--role", "nobody")
    assert (ended.code, ended.out, ended.err) == (0, "", "nothing is reserved\n")


def test_an_agent_that_came_back_smaller_is_listed_too(has, cli):
    has(amount(ALICE, cpus=1), used=amount(ALICE, cpus=2))
    (row,) = cli("reservations", "--json").json
    assert (row["used"], row["unused"]) == ({"cpus": 2.0}, {})


# ---- volume create ---------------------------------------------------------------------------


MAKE = ("volume", "create", "host0", "--role", "ads", "--id", "v1", "--path", "data")


def test_a_volume_is_made_of_the_disk_that_is_reserved(master, has, cli):
    has(PLAIN + STATIC + amount(ALICE, cpus=2, disk=128))
    ended = cli(*MAKE, "--disk", 64, "--principal", "carol")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == ordered(f"make volume v1 of ads, 64 MB, on {NODE}")
    kind, fields = asked(master)
    assert kind == "CREATE_VOLUMES"
    assert resources(fields.volumes) == volume(ALICE, 64, principal="carol")


def test_a_volume_may_be_made_of_disk_that_the_agent_reserves_itself(master, has, cli):
    has(PLAIN + Resources.parse_reserved("disk(ads):64"))
    assert cli(*MAKE, "--disk", 64).code == 0
    (made,) = asked(master)[1].volumes
    assert [each.role for each in made.reservations] == ["ads"]


@pytest.mark.parametrize("given", [["--label", "for=db"], ["--reserved-by", "alice"]])
def test_of_several_reservations_one_is_named(master, has, cli, given):
    has(PLAIN + amount(ALICE, disk=128) + amount(BOB, disk=128))
    ended = cli(*MAKE, "--disk", 64)
    assert ended.code == 1
    assert f"disk:64: 2 kinds of reservation on {NODE} have as much" in ended.err
    assert cli(*MAKE, "--disk", 64, *given).code == 0
    assert resources(asked(master)[1].volumes) == volume(ALICE, 64)


@pytest.mark.parametrize(
    ("total", "args", "code", "error"),
    [
        (PLAIN, ["--disk", 1], 1, f"reservation 'ads': no disk of {NODE} is reserved so"),
        (amount(ALICE, cpus=1), ["--disk", 1], 1, "is reserved so"),
        (ORDERS, ["--disk", 1], 1, "is reserved so"),
        (amount(ALICE, disk=9), ["--disk", 10], 1, f"disk: 10 wanted, 9 reserved so on {NODE}"),
        (amount(ALICE, disk=9), ["--disk", 0], 2, "--disk: 0.0: must be above zero"),
        (amount(ALICE, disk=9), ["--disk", "x"], 2, "'x' is not a valid float"),
        (amount(ALICE, disk=9), ["--disk", 1, "--id", "a/b"], 2, "volume_id: 'a/b': must not"),
        (amount(ALICE, disk=9), ["--disk", 1, "--path", ".."], 2, "container_path: '..': must"),
        (amount(ALICE, disk=9), ["--disk", 1, "--id", "\udcff"], 2, r"volume_id: '\udcff': has"),
        (amount(ALICE, disk=9), ["--disk", 1, "--path", "\udcff"], 2, "container_path: '"),
        (amount(ALICE, disk=9), [], 2, "Missing option '--disk'"),
    ],
)
def test_what_create_cannot_take_is_said(master, has, cli, total, args, code, error):
    has(total)
    ended = cli(*MAKE, *args)
    assert (ended.code, ended.out) == (code, "")
    assert error in ended.err
    assert orders(master) == []


# ---- volume destroy, grow, shrink --------------------------------------------------------------


def test_a_volume_is_destroyed_as_the_agent_has_it(master, has, cli):
    has(PLAIN + ORDERS)
    ended = cli("volume", "destroy", "host0", "orders", "--yes")
    assert (ended.code, ended.out) == (0, ordered(f"erase volume orders on {NODE}"))
    kind, fields = asked(master)
    assert kind == "DESTROY_VOLUMES"
    assert resources(fields.volumes) == ORDERS


def test_nothing_is_erased_unasked(master, has, cli):
    has(PLAIN + ORDERS)
    ended = cli("volume", "destroy", "host0", "orders")
    assert ended.code == 2
    assert ended.err == ("mesos-py: error: yes: 'not given': must be, where nobody can be asked\n")
    assert orders(master) == []


def test_nothing_is_erased_or_given_up_where_stdin_is_closed(master, has, cli, monkeypatch):
    has(PLAIN + ORDERS)
    for words in (("volume", "destroy", "host0", "orders"), ("gone", "host0")):
        monkeypatch.setattr("sys.stdin", None)
        ended = cli(*words)
        sys.stdin.close()
        assert ended.code == 2
        assert ended.err.endswith("yes: 'not given': must be, where nobody can be asked\n")
    assert orders(master) == []


def test_a_volume_grows_by_disk_that_is_reserved_as_it_is(master, has, cli):
    has(PLAIN + ORDERS + amount(ALICE, disk=9))
    ended = cli("volume", "grow", "host0", "orders", "--by", 8)
    assert (ended.code, ended.out) == (0, ordered(f"72 MB for volume orders on {NODE}"))
    kind, fields = asked(master)
    assert kind == "GROW_VOLUME"
    assert resources([fields.volume]) == ORDERS
    assert resources([fields.addition]) == amount(ALICE, disk=8)


def test_a_volume_shrinks(master, has, cli):
    has(PLAIN + ORDERS)
    ended = cli("volume", "shrink", "host0", "orders", "--by", 0.5)
    assert (ended.code, ended.out) == (0, ordered(f"63.5 MB for volume orders on {NODE}"))
    kind, fields = asked(master)
    assert kind == "SHRINK_VOLUME"
    assert resources([fields.volume]) == ORDERS
    assert fields.subtract.value == 0.5


@pytest.mark.parametrize(
    ("args", "code", "error"),
    [
        (
            ["destroy", "host0", "v9", "--yes"],
            1,
            f"volume 'v9': there is none of that id on {NODE}",
        ),
        (["grow", "host0", "orders", "--by", 1, "--role", "web"], 1, "none of that id of the role"),
        (["grow", "host0", "orders"], 2, "Missing option '--by'"),
        (["grow", "host0", "orders", "--by", -1], 2, "--by: -1.0: must be above zero"),
        (
            ["shrink", "host0", "orders", "--by", 64],
            2,
            "shrink_volume.subtract: 64.0: must be less",
        ),
        (["shrink", "host9", "orders", "--by", 1], 1, "agent 'host9'"),
    ],
)
def test_a_volume_that_is_not_there_and_sizes_that_cannot_be(master, has, cli, args, code, error):
    has(PLAIN + ORDERS)
    ended = cli("volume", *args)
    assert (ended.code, ended.out) == (code, "")
    assert error in ended.err
    assert orders(master) == []


@pytest.mark.parametrize(
    "args", [["destroy", "--yes"], ["grow", "--by", 1], ["shrink", "--by", 1]], ids=lambda a: a[0]
)
def test_a_volume_that_is_used_is_left_alone_and_by_whom_is_said(master, has, cli, args):
    other = volume(by("web"), 9, "orders")
    has(PLAIN + ORDERS + other, used=ORDERS)
    verb, *options = args
    ended = cli("volume", verb, "host0", "orders", "--role", "ads", *options)
    assert (ended.code, ended.out) == (1, "")
    assert f"volume 'orders' on {NODE} is used by an executor" in ended.err
    master.tasks += [fake.task(name, resources=ORDERS.to_proto()) for name in ("t1", "t2")]
    ended = cli("volume", verb, "host0", "orders", "--role", "ads", *options)
    assert ended.code == 1
    assert f"volume 'orders' on {NODE} is used by t1,t2" in ended.err
    assert orders(master) == []


def test_an_id_that_two_roles_have_is_told_by_the_role(master, has, cli):
    other = volume(by("web"), 9, "orders")
    has(PLAIN + ORDERS + other)
    ended = cli("volume", "destroy", "host0", "orders", "--yes")
    assert ended.code == 1
    assert f"volume 'orders' means 2 on {NODE}, of the roles ads, web: give --role" in ended.err
    assert cli("volume", "destroy", "host0", "orders", "--yes", "--role", "web").code == 0
    assert resources(asked(master)[1].volumes) == other


# ---- volume list -----------------------------------------------------------------------------


def test_volumes_are_listed_with_who_uses_them(master, has, cli):
    second, third = volume(BOB, 9, "v2"), volume(BOB, 7, "v3")
    has(PLAIN + ORDERS + second + third, used=ORDERS + third, offered=second)
    seen = volume_at(ORDERS, "elsewhere") + Resources.of(cpus=1)
    master.tasks += [
        fake.task("t1", resources=seen.to_proto()),
        fake.task("t2"),
        fake.task("t3", state=TASK_FINISHED, resources=ORDERS.to_proto()),
        fake.task("t4", resources=ORDERS.to_proto(), agent_id=AgentID(value=A1)),
    ]
    orders_, v2, v3 = cli("volume", "list", "--json").json
    assert orders_ == {
        "id": "orders",
        "role": "ads",
        "disk": 64.0,
        "container_path": "data",
        "principal": "carol",
        "reservations": [
            {
                "role": "ads",
                "kind": "dynamic",
                "principal": "alice",
                "labels": [{"key": "for", "value": "db"}],
            }
        ],
        "agent_id": A0,
        "hostname": "host0",
        "used": True,
        "offered": False,
        "tasks": ["t1"],
    }
    assert (v2["id"], v2["used"], v2["offered"], v2["tasks"]) == ("v2", False, True, [])
    assert (v3["id"], v3["used"], v3["tasks"]) == ("v3", True, [])
    lines = cli("volume", "list").out.splitlines()
    assert lines[0].split() == ["ID", "ROLE", "AGENT", "HOST", "MB", "PATH", "BY", "USED", "BY"]
    assert lines[1].split() == ["orders", "ads", A0, "host0", "64", "data", "carol", "t1"]
    assert [line.split()[-1] for line in lines[2:]] == ["-", "executor"]


def test_volumes_of_one_role_or_agent_only(master, has, cli):
    has(PLAIN + ORDERS)
    ended = cli("volume", "list", "--role", "web")
    assert (ended.code, ended.out, ended.err) == (0, "", "no volumes\n")
    assert cli("volume", "list", "--agent", "host0", "--role", "ads", "--json").json
    assert cli("volume", "list", "--agent", "host9").code == 1
