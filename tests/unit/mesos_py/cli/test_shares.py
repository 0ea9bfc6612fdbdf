"""How `local` divides a machine."""

import pytest

from mesos_py import ranges as rng
from mesos_py.cli.shares import Machine, shares, this_machine, with_own_ports
from mesos_py.errors import InvalidResources, InvalidValue
from mesos_py.resources import Resources

MACHINE = Machine(cpus=8, mem_mb=9000, disk_mb=30_000)


def divided(machine: Machine, agents: int, text: str = "") -> list[Resources]:
    return [Resources.parse_reserved(part) for part in shares(machine, agents, text)]


@pytest.mark.parametrize("agents", [1, 2, 3, 100])
def test_ports_of_agents_never_overlap_and_stay_clear_of_the_kernels(agents):
    parts = divided(MACHINE, agents)
    assert len(parts) == agents
    together = [span for part in parts for span in part.ranges["ports"]]
    assert rng.overlap(together) is None
    assert all(20_000 <= begin <= end < 32_768 for begin, end in together)


def test_memory_and_disk_are_divided_and_cpus_at_least_two():
    for agents, cpus in ((1, 8), (2, 4), (3, 2), (50, 2)):
        part = divided(MACHINE, agents)[0]
        assert part.scalar("cpus") == cpus
        assert part.scalar("mem") == 9000 // agents
        assert part.scalar("disk") == 30_000 // agents


def test_a_tiny_machine_still_makes_usable_agents():
    part = divided(Machine(1, 100, 10), 5)[0]
    assert (part.scalar("cpus"), part.scalar("mem"), part.scalar("disk")) == (2, 64, 64)


def test_given_ports_are_divided_and_the_rest_is_for_each():
    given = Resources.parse("cpus:1;mem:64;ports:[10-19];bag:{a,b}")
    parts = with_own_ports(given, 3)
    assert [str(part) for part in parts] == [
        "cpus:1;mem:64;ports:[10-12];bag:{a,b}",
        "cpus:1;mem:64;ports:[13-15];bag:{a,b}",
        "cpus:1;mem:64;ports:[16-18];bag:{a,b}",
    ]


def test_without_ports_given_the_default_ones_are_divided():
    first, second = divided(MACHINE, 2, "cpus:1")
    assert first.ranges["ports"] == ((20_000, 20_999),)
    assert second.ranges["ports"] == ((21_000, 21_999),)


def test_scattered_ports_are_divided_too():
    parts = with_own_ports(Resources.parse("cpus:1;ports:[1-2,5-5,9-9]"), 2)
    assert [part.ranges["ports"] for part in parts] == [((1, 2),), ((5, 5), (9, 9))]


def test_fewer_ports_than_agents_is_an_error():
    with pytest.raises(InvalidValue, match="agents: 3"):
        with_own_ports(Resources.parse("cpus:1;ports:[1-2]"), 3)


def test_what_is_not_named_is_still_divided():
    part = divided(MACHINE, 3, "cpus:9;gpus:1")[0]
    assert str(part) == "mem:3000;disk:10000;cpus:9;gpus:1;ports:[20000-20999]"


def test_an_amount_of_zero_is_none_of_it():
    assert (
        shares(MACHINE, 2, " disk:0; ports:[] ;cpus:1") == ["mem:4500;cpus:1;disk:0;ports:[]"] * 2
    )


@pytest.mark.parametrize(
    "text",
    [
        *("cpus", "cpus:-1", "cpus:1;cpus:2", "ports:[9-1]", "cpus:x"),
        *("cpus():1", "cpus(a//b):1", "cpus(web):-1", "cpus(web):1;cpus(web):2", "cpus(web)"),
    ],
)
def test_a_text_that_cannot_be_is_refused_here(text):
    with pytest.raises(InvalidValue):
        shares(MACHINE, 2, text)


def test_json_is_refused_for_what_it_is():
    with pytest.raises(InvalidResources, match="in JSON resources are those of one agent"):
        shares(MACHINE, 2, '[{"name":"cpus","type":"SCALAR","scalar":{"value":1}}]')


def test_what_is_reserved_is_so_on_each_agent():
    parts = shares(MACHINE, 2, "cpus:3;cpus(web):1;bag(web):{a,b}")
    assert parts == [
        "mem:4500;disk:15000;cpus:3;cpus(web):1;ports:[20000-20999];bag(web):{a,b}",
        "mem:4500;disk:15000;cpus:3;cpus(web):1;ports:[21000-21999];bag(web):{a,b}",
    ]


def test_where_all_that_is_named_is_reserved_there_is_no_more_of_it():
    """As with the flag of an agent: what is not named at all is the machine's part."""
    part = divided(MACHINE, 1, "cpus(web):1;ports(web):[5-9]")[0]
    assert str(part) == "mem:9000;disk:30000;cpus(web):1;ports(web):[5-9]"


def test_ports_of_each_reservation_are_divided_by_themselves():
    parts = divided(MACHINE, 2, "ports:[1-4];ports(web):[11-12];ports(x/y):[20-21]")
    assert [dict(part.ranges) for part in parts] == [
        {"ports": ((1, 2),), "ports(web)": ((11, 11),), "ports(x/y)": ((20, 20),)},
        {"ports": ((3, 4),), "ports(web)": ((12, 12),), "ports(x/y)": ((21, 21),)},
    ]


def test_fewer_ports_of_a_role_than_agents_is_an_error():
    with pytest.raises(InvalidValue, match=r"agents: 3: there are 2 ports\(web\)"):
        shares(MACHINE, 3, "ports:[1-9];ports(web):[11-12]")


def test_none_for_a_role_is_said_on():
    (part,) = shares(MACHINE, 1, "cpus:1;ports(web):[]; cpus(web) : 0;bag:{ }")
    assert part == "mem:9000;disk:30000;cpus:1;ports(web):[];cpus(web) : 0;bag:{ }"


def test_no_agents_get_nothing():
    assert divided(MACHINE, 0) == []


def test_this_machine_has_something(tmp_path):
    machine = this_machine(tmp_path)
    assert machine.cpus >= 1
    assert machine.mem_mb > 0
    assert machine.disk_mb > 0
