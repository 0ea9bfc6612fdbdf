"""The network isolator on the real kernel: the end, the next run, what the machine lacks."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from dataclasses import replace
from ipaddress import IPv4Address

import pytest
from pyroute2.nftables.main import NFTables

from agent.isolation import base
from agent.isolation.base import AgentFacts, Container, Preparation, Recovered
from agent.isolation.network import links, names
from agent.isolation.network.isolator import NetworkIsolator
from agent.isolation.network.nat import Nat
from mesos_py.errors import InvalidValue, MesosPyError, Refused
from mesos_py.resources import Resources
from mesos_py.testing.isolator_contract import IsolatorContract
from tests.kit.network_containers import (
    AGENT,
    BRIDGE,
    PLAIN,
    container,
    info,
    isolator,
    labels,
    reachable,
    recovered,
    running,
)
from tests.kit.networks import (
    ADDRESS,
    Machine,
    add_device,
    device_names,
    greet,
    set_up,
)
from tests.kit.waiting import until

pytestmark = pytest.mark.needs("root")


def test_nothing_is_left_and_the_end_may_come_twice(here):
    network = isolator()
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    asked = info(labels=labels(egress="1mbit"))
    with running(network, container("c1", 31000, asked=asked), container("c2", 31001)):
        pass
    network.cleanup("c1")
    network.cleanup("never there")
    assert device_names() == {*PLAIN, BRIDGE}
    assert Nat(names.table(AGENT)).ports() == []
    network.close()
    assert device_names() == PLAIN
    assert not Nat(names.table(AGENT)).exists()
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def test_the_bridge_stays_while_a_container_runs_on_without_its_agent(here):
    network = isolator()
    with running(network, container("c1")):
        network.close()
        assert BRIDGE in device_names()
    network.close()
    assert device_names() == PLAIN


def test_the_next_run_takes_up_what_still_runs_and_removes_what_does_not(here):
    asked = info(labels=labels(egress="5mbit"))
    first = isolator()
    with (
        running(
            first,
            container("lives", 31000, asked=asked),
            container("ended", 31001, asked=asked),
            cleanup=False,
        ) as [lives, ended],
        lives.greeter("lives", 31000),
    ):
        # The agent is killed; one of its containers ends before it is back.
        second = isolator()
        second.recover([recovered("lives", 31000, asked=asked)])
        assert here.outside(lambda: greet(ADDRESS, 31000)) == "lives"
        assert {entry.host_port for entry in Nat(names.table(AGENT)).ports()} == {31000}
        assert names.veth(AGENT, "ended") not in device_names()
        assert names.shaper(AGENT, "ended") not in device_names()
        assert second.usage("lives")["net_tx_bytes"] > 0
        # A new one gets an address that nobody has.
        with running(second, container("new", 31001)) as [new]:
            assert new.address not in (lives.address, ended.address)
        second.update("lives", Resources.of(cpus=1, ports=[(31005, 31005)]))
        assert not here.outside(lambda: reachable(ADDRESS, 31000))
    second.cleanup("lives")
    second.close()
    assert device_names() == PLAIN


def test_the_next_run_without_containers_removes_what_the_last_one_left(here):
    asked = info(labels=labels(egress="5mbit"))
    with running(isolator(), container("c1", 31000, asked=asked), cleanup=False):
        pass
    second = isolator()
    second.recover([])
    until(lambda: device_names() == {*PLAIN, BRIDGE})
    assert Nat(names.table(AGENT)).ports() == []
    second.close()
    assert device_names() == PLAIN
    assert not Nat(names.table(AGENT)).exists()


def test_what_only_looks_like_this_agents_is_left_alone(here):
    other = isolator(AGENT[:-1], network_range="10.99.0.0/24")
    longer = isolator(f"{AGENT}0", network_range="10.98.0.0/24")
    address = IPv4Address("10.213.0.9")
    strangers = {
        "mpv000000000000": None,
        "mpi000000000000": f"mesos-py {AGENT}",
        "strange0": names.alias(names.Owner(f"{AGENT}1", "c1", address)),
        "strange1": names.alias(names.Owner("A1", "c1", address)).replace("mesos-py", "mesos"),
    }
    for name, alias in strangers.items():
        add_device(name, alias)
    with (
        running(other, container("c1", 31000)) as [theirs],
        running(longer, container("c1", 31001)),
        theirs.greeter("theirs", 31000),
    ):
        before = device_names()
        mine = isolator()
        with running(mine, container("c1", 31002), cleanup=False):
            pass
        again = isolator()
        again.recover([])
        again.close()
        until(lambda: device_names() == before)
        assert here.outside(lambda: greet(ADDRESS, 31000)) == "theirs"
        assert len(Nat(names.table(f"{AGENT}0")).ports()) == 2
    other.close()
    longer.close()
    assert device_names() == {*PLAIN, *strangers}


def test_ports_that_were_flushed_while_the_agent_was_away_are_mapped_again(here):
    with (
        running(isolator(), container("c1", 31000, 31001), cleanup=False) as [inside],
        inside.greeter("there", 31001),
    ):
        Nat(names.table(AGENT)).drop()
        again = isolator()
        again.recover([recovered("c1", 31001)])
        assert here.outside(lambda: greet(ADDRESS, 31001)) == "there"
        assert {each.host_port for each in Nat(names.table(AGENT)).ports()} == {31001}
    again.cleanup("c1")
    again.close()
    assert device_names() == PLAIN


def test_a_container_whose_wishes_are_not_understood_any_more_runs_on(here):
    with running(isolator(), container("c1", 31000), cleanup=False) as [inside]:
        again = isolator()
        again.recover([recovered("c1", 31000, asked=info("of-an-older-version"))])
        with inside.greeter("there", 31000):
            assert here.outside(lambda: greet(ADDRESS, 31000)) == "there"
    again.cleanup("c1")
    again.close()
    assert device_names() == PLAIN


def test_a_container_of_an_earlier_run_is_cleaned_up_by_its_id_alone(here):
    asked = info(labels=labels(egress="5mbit"))
    with running(isolator(), container("c1", asked=asked), cleanup=False):
        isolator().cleanup("c1")
        assert device_names() == {*PLAIN, BRIDGE}
    again = isolator()
    again.recover([])
    again.close()
    assert device_names() == PLAIN


def test_another_range_is_refused_while_containers_have_addresses_of_the_last_one(here):
    with running(isolator(), container("c1"), cleanup=False):
        later = isolator(network_range="10.99.0.0/24")
        with pytest.raises(InvalidValue, match=r"c1 still runs with the address 10\.213\.0\.2"):
            later.recover([recovered("c1")])


def test_a_bridge_that_was_half_made_is_completed(here):
    add_device(BRIDGE, kind="bridge")
    network = isolator()
    with running(network, container("c1", 31000)) as [inside], inside.greeter("there", 31000):
        assert here.outside(lambda: greet(ADDRESS, 31000)) == "there"
    network.close()
    assert device_names() == PLAIN


def test_a_device_of_somebody_else_under_the_bridges_name_is_an_error_and_stays(here):
    add_device(BRIDGE)
    network = isolator()
    with pytest.raises(Refused, match=f"the device {BRIDGE} is there already, and not ours"):
        network.prepare(container("c1"))
    network.cleanup("c1")
    network.close()
    assert device_names() == {*PLAIN, BRIDGE}


# ---- What the machine lacks ---------------------------------------------------------


def test_a_range_that_the_machine_uses_itself_is_refused(here):
    add_device("other", kind="bridge")
    set_up("other", "10.213.7.1")
    with pytest.raises(InvalidValue, match=r"overlaps with 10\.213\.7\.1/24 of the device other"):
        isolator()


def test_two_agents_of_one_machine_need_two_ranges(here):
    first, second = isolator("A1"), isolator("A2")
    with running(first, container("c1")):
        with pytest.raises(InvalidValue, match="needs a range of its own"):
            second.prepare(container("c2"))
        second.cleanup("c2")
    first.close()
    second.close()
    assert device_names() == PLAIN


def test_without_forwarding_the_agent_says_what_to_do(here):
    here.forward(False)
    with pytest.raises(Refused, match="sysctl -w"):
        isolator()


def test_more_containers_than_addresses_are_refused_in_words(here):
    network = isolator(network_range="10.99.0.0/29")
    with running(network, *(container(f"c{n}") for n in range(5))):
        with pytest.raises(MesosPyError, match=r"all 5 addresses of 10\.99\.0\.0/29 are taken"):
            network.prepare(container("one-too-many"))
        network.cleanup("one-too-many")
    network.close()
    assert device_names() == PLAIN


def test_tables_of_others_are_not_touched(here):
    with NFTables(nfgen_family=socket.AF_INET) as nft:
        nft.table("add", name="theirs")
    network = isolator()
    with running(network, container("c1", 31000)):
        pass
    network.close()
    assert Nat("theirs").exists()


# ---- The contract of all isolators -----------------------------------------------------


class Networked(NetworkIsolator):
    """All its containers ask for a network of their own."""

    def prepare(self, container: Container) -> Preparation:
        return super().prepare(replace(container, info=info()))

    def recover(self, containers: Sequence[Recovered]) -> None:
        super().recover([replace(each, info=info()) for each in containers])


class TestContract(IsolatorContract):
    interface = base

    @pytest.fixture(autouse=True)
    def somewhere(self, here: Machine) -> None:
        """In namespaces of its own, like all tests here."""
        self.ranges: dict[str, str] = {}

    def make(self, facts: AgentFacts) -> NetworkIsolator:
        number = len(self.ranges)
        network_range = self.ranges.setdefault(facts.agent_id, f"10.9{number}.0.0/24")
        return Networked(replace(facts, flags={"network_range": network_range}))

    def traces(self, agent_id: str) -> list[str]:
        mine = [
            each.name
            for each in links.devices()
            if each.alias is not None and agent_id in each.alias.split(" ")
        ]
        table = names.table(agent_id)
        return sorted([*mine, *([table] if Nat(table).exists() else [])])
