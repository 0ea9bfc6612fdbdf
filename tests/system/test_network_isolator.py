"""The network isolator on the real kernel, in namespaces that the tests make."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from ipaddress import IPv4Address

import pytest
from pyroute2 import IPRoute
from pyroute2.nftables.main import NFTables

from agent.isolation import base
from agent.isolation.base import AgentFacts, Container, Preparation, Recovered
from agent.isolation.network import links, names, namespaces
from agent.isolation.network.isolator import NetworkIsolator
from agent.isolation.network.nat import Nat
from mesos_py.errors import InvalidValue, MesosPyError, Refused
from mesos_py.resources import Resources
from mesos_py.testing.isolator_contract import IsolatorContract
from mesos_py.v1 import types_pb2 as pb
from tests.kit.networks import (
    ADDRESS,
    NEIGHBOUR,
    Greeter,
    Machine,
    add_device,
    device_names,
    greet,
    greet_udp,
    machine,
    mtu_of,
    rates_of,
    set_up,
)
from tests.kit.waiting import until

pytestmark = pytest.mark.needs("root")

AGENT = "5f0c1a52-17a9-4a8e-9c0e-0e8f0a1b2c3d-S0"
PortMapping = pb.NetworkInfo.PortMapping
BRIDGE = names.bridge(AGENT)
PLAIN = {"lo", "eth0"}


@pytest.fixture
def here(lacking) -> Iterator[Machine]:
    with ExitStack() as stack:
        try:
            made = stack.enter_context(machine())
        except PermissionError:
            lacking("network namespaces")
        yield made


def isolator(agent_id: str = AGENT, **flags: object) -> NetworkIsolator:
    return NetworkIsolator(AgentFacts(agent_id, "/nowhere", Resources(), flags))


def info(name: str | None = None, **fields: object) -> pb.ContainerInfo:
    return pb.ContainerInfo(
        type=pb.ContainerInfo.MESOS,
        network_infos=[pb.NetworkInfo(name=name, **fields)],  # type: ignore[arg-type]
    )


def labels(**given: str) -> pb.Labels:
    return pb.Labels(labels=[pb.Label(key=key, value=value) for key, value in given.items()])


def with_ports(ports: Sequence[int]) -> Resources:
    return Resources.of(ports=[(port, port) for port in ports]) if ports else Resources()


def container(
    container_id: str, *ports: int, asked: pb.ContainerInfo | None = None, **amounts: int
) -> Container:
    resources = Resources.of(None, cpus=1, **amounts) + with_ports(ports)
    return Container(container_id, "F1", "t", "/s", 0, 0, resources, asked or info(), {})


class Inside:
    """A container that is prepared: its namespace, as its process would hold it."""

    def __init__(self, made: Preparation) -> None:
        (path,) = made.namespaces
        self.address = made.environment.get("MESOS_CONTAINER_IP", "")
        self.namespace = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def greeter(self, name: str, port: int, kind: int = socket.SOCK_STREAM) -> Greeter:
        return namespaces.inside(self.namespace, lambda: Greeter(name, port, kind))

    def do(self, work):
        return namespaces.inside(self.namespace, work)

    def end(self) -> None:
        if self.namespace >= 0:
            os.close(self.namespace)
            self.namespace = -1


@contextmanager
def running(
    network: NetworkIsolator, *containers: Container, cleanup: bool = True
) -> Iterator[list[Inside]]:
    """Containers from prepare to cleanup."""
    made: list[Inside] = []
    try:
        for each in containers:
            made.append(Inside(network.prepare(each)))
            network.isolate(each.container_id, os.getpid())
        yield made
    finally:
        for inside in made:
            inside.end()
        if cleanup:
            for each in containers:
                network.cleanup(each.container_id)


def reachable(address: str, port: int) -> bool:
    with socket.socket() as trying:
        trying.settimeout(1)
        return trying.connect_ex((address, port)) == 0


# ---- What a container has -----------------------------------------------------------


def test_a_container_has_a_loopback_device_an_address_and_a_way_out(here):
    network = isolator()
    with running(network, container("c1")) as [inside]:
        assert inside.address == "10.213.0.2"
        assert inside.do(device_names) == PLAIN

        def talk_to_itself() -> str:
            with Greeter("itself", 8080):
                return greet("127.0.0.1", 8080)

        assert inside.do(talk_to_itself) == "itself"
        with here.outside(lambda: Greeter("neighbour", 7000)) as neighbour:
            assert inside.do(lambda: greet(NEIGHBOUR, 7000)) == "neighbour"
        # Who is outside sees the machine, whose address it has a way to.
        assert neighbour.peers == [ADDRESS]
    network.close()


def test_packets_are_no_larger_than_the_way_out_takes(here):
    with IPRoute() as route:
        index = route.link_lookup(ifname="eth0")[0]
        route.link("set", index=index, mtu=1400)
        route.route("add", gateway=NEIGHBOUR)
    network = isolator()
    for name in ("c1", "c2"):
        with running(network, container(name)) as [inside]:
            assert inside.do(lambda: mtu_of("eth0")) == 1400
            assert mtu_of(BRIDGE) == mtu_of(names.veth(AGENT, name)) == 1400
    network.close()


def test_who_asks_for_nothing_is_in_the_machines_network_and_costs_nothing(here):
    network = isolator()
    network.recover([])
    before = device_names()
    plain = Container("c1", "F1", "t", "/s", 0, 0, Resources.of(cpus=1), None, {})
    assert network.prepare(plain) == Preparation()
    network.isolate("c1", os.getpid())
    network.update("c1", Resources.of(cpus=2))
    assert network.usage("c1") == {}
    network.cleanup("c1")
    assert device_names() == before
    network.close()


def test_the_network_none_has_nothing_but_loopback(here):
    network = isolator()
    with running(network, container("c1", asked=info("none"))) as [inside]:
        assert inside.do(device_names) == {"lo"}
        with inside.greeter("alone", 8080):
            assert inside.do(lambda: greet("127.0.0.1", 8080)) == "alone"
        assert network.usage("c1") == {}
    assert device_names() == PLAIN


# ---- Ports --------------------------------------------------------------------------


def test_from_outside_exactly_the_ports_that_were_given_lead_into_the_container(here):
    network = isolator()
    with (
        running(network, container("c1", 31000)) as [inside],
        inside.greeter("given", 31000) as given,
        inside.greeter("not given", 31001),
    ):
        assert here.outside(lambda: greet(ADDRESS, 31000)) == "given"
        assert given.peers == [NEIGHBOUR]
        assert not here.outside(lambda: reachable(ADDRESS, 31001))
    network.close()


def test_who_routes_to_the_containers_address_from_outside_is_not_let_in(here):
    network = isolator()

    def add_route() -> None:
        with IPRoute() as route:
            route.route("add", dst="10.213.0.0/16", gateway=ADDRESS)

    here.outside(add_route)
    with (
        running(network, container("c1", 31000)) as [inside],
        inside.greeter("given", 31000),
    ):
        assert not here.outside(lambda: reachable(inside.address, 31000))
        assert here.outside(lambda: reachable(ADDRESS, 31000))
    network.close()


def test_a_port_may_lead_to_another_one_inside(here):
    network = isolator()
    mapped = info(port_mappings=[PortMapping(host_port=31000, container_port=80)])
    with (
        running(network, container("c1", 31000, 31001, asked=mapped)) as [inside],
        inside.greeter("web", 80),
        inside.greeter("not mapped", 31001),
    ):
        assert here.outside(lambda: greet(ADDRESS, 31000)) == "web"
        assert not here.outside(lambda: reachable(ADDRESS, 31001))
    network.close()


def test_udp_is_led_in_as_well_and_the_answer_comes_back(here):
    network = isolator()
    with (
        running(network, container("c1", 31000)) as [inside],
        inside.greeter("packet", 31000, socket.SOCK_DGRAM),
    ):
        assert here.outside(lambda: greet_udp(ADDRESS, 31000)) == "packet"
    network.close()


def test_the_machine_itself_and_other_containers_reach_a_container_by_its_port(here):
    network = isolator()
    with (
        running(network, container("c1", 31000), container("c2")) as [first, second],
        first.greeter("first", 31000),
    ):
        assert greet(ADDRESS, 31000) == "first"
        assert greet(first.address, 31000) == "first"
        assert second.do(lambda: greet(ADDRESS, 31000)) == "first"
        # Also a container itself, around the corner.
        assert first.do(lambda: greet(ADDRESS, 31000)) == "first"
    network.close()


def test_connections_to_other_machines_are_not_led_astray(here):
    network = isolator()
    with (
        running(network, container("c1", 31000)) as [inside],
        inside.greeter("container", 31000),
        here.outside(lambda: Greeter("neighbour", 31000)),
    ):
        assert greet(NEIGHBOUR, 31000) == "neighbour"
        assert inside.do(lambda: greet(NEIGHBOUR, 31000)) == "neighbour"
    network.close()


def test_a_port_that_somebody_else_listens_on_is_refused_by_number_and_nothing_is_left(here):
    network = isolator()
    with Greeter("squatter", 31000):
        with pytest.raises(InvalidValue) as caught:
            network.prepare(container("c1", 31000))
        assert caught.value.value == 31000
        assert "in use on this machine (tcp)" in caught.value.reason
        network.cleanup("c1")
    network.close()
    assert device_names() == PLAIN


def test_a_port_passes_to_the_next_container_before_the_last_one_is_cleaned_up(here):
    network = isolator()
    with running(network, container("old", 31000), cleanup=False):
        pass
    with (
        running(network, container("new", 31000)) as [inside],
        inside.greeter("new", 31000),
    ):
        network.cleanup("old")
        assert here.outside(lambda: greet(ADDRESS, 31000)) == "new"
    network.close()


def test_who_goes_on_sending_to_a_port_reaches_its_next_container(here):
    """Of datagrams the kernel remembers where they went, for minutes."""
    network = isolator()
    sending = here.outside(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    with sending:
        sending.settimeout(5)
        sending.connect((ADDRESS, 31000))
        for name in ("first", "second"):
            with (
                running(network, container(name, 31000)) as [inside],
                inside.greeter(name, 31000, socket.SOCK_DGRAM),
            ):
                sending.send(b"hello")
                assert sending.recv(100).decode() == name
    network.close()


def test_ports_come_and_go_with_the_tasks_of_an_executor(here):
    network = isolator()
    with (
        running(network, container("c1", 31000)) as [inside],
        inside.greeter("first", 31000),
        inside.greeter("second", 31001),
    ):
        network.update("c1", Resources.of(cpus=1, ports=[(31001, 31001)]))
        assert here.outside(lambda: greet(ADDRESS, 31001)) == "second"
        assert not here.outside(lambda: reachable(ADDRESS, 31000))
    network.close()


def test_more_ports_than_fit_one_message_are_mapped(here):
    network = isolator()
    many = Container("c1", "F1", "t", "/s", 0, 0, Resources.of(ports=[(20000, 21099)]), info(), {})
    with running(network, many) as [inside], inside.greeter("last", 21099):
        assert here.outside(lambda: greet(ADDRESS, 21099)) == "last"
        assert len(Nat(names.table(AGENT)).ports()) == 2200
    assert Nat(names.table(AGENT)).ports() == []
    network.close()


def test_a_firewall_that_flushes_everything_is_recovered_from(here):
    network = isolator()
    with (
        running(network, container("c1", 31000)) as [first],
        first.greeter("first", 31000),
    ):
        Nat(names.table(AGENT)).drop()
        with running(network, container("c2", 31001)) as [second], second.greeter("second", 31001):
            assert here.outside(lambda: greet(ADDRESS, 31000)) == "first"
            assert here.outside(lambda: greet(ADDRESS, 31001)) == "second"
    network.close()


# ---- Rates and counters ---------------------------------------------------------------


def test_rates_hold_in_both_directions_and_what_is_sent_goes_through_them(here):
    network = isolator()
    asked = info(labels=labels(egress="50mbit", ingress="20mbit"))
    veth, shaper = names.veth(AGENT, "c1"), names.shaper(AGENT, "c1")
    with running(network, container("c1", asked=asked)) as [inside]:
        assert (rates_of(veth), rates_of(shaper)) == ([20_000_000], [50_000_000])
        with here.outside(lambda: Greeter("neighbour", 7000)):
            before = links.traffic(shaper)
            assert inside.do(lambda: greet(NEIGHBOUR, 7000)) == "neighbour"
            after = links.traffic(shaper)
        assert before is not None and after is not None  # noqa: PT018
        assert after["tx_packets"] > before["tx_packets"]
    assert device_names() == {*PLAIN, BRIDGE}
    network.close()


def test_rates_change_with_what_the_container_is_given(here):
    network = isolator()
    veth, shaper = names.veth(AGENT, "c1"), names.shaper(AGENT, "c1")
    with running(network, container("c1", network_bandwidth=10)) as [inside]:
        assert (rates_of(veth), rates_of(shaper)) == ([10_000_000], [10_000_000])
        network.update("c1", Resources.of(cpus=1, network_bandwidth=30))
        assert (rates_of(veth), rates_of(shaper)) == ([30_000_000], [30_000_000])
        network.update("c1", Resources.of(cpus=1))
        assert rates_of(veth) == []
        assert shaper not in device_names()
        network.update("c1", Resources.of(cpus=1, network_bandwidth=5))
        assert (rates_of(veth), rates_of(shaper)) == ([5_000_000], [5_000_000])
        with here.outside(lambda: Greeter("neighbour", 7000)):
            assert inside.do(lambda: greet(NEIGHBOUR, 7000)) == "neighbour"
    network.close()


def test_traffic_is_counted_as_the_container_sees_it(here):
    network = isolator()
    with running(network, container("c1")) as [inside]:
        with here.outside(lambda: Greeter("x" * 90, 7000)):
            for _ in range(20):
                inside.do(lambda: greet(NEIGHBOUR, 7000))
        used = network.usage("c1")
    assert set(used) == {
        f"net_{way}_{what}" for way in ("rx", "tx") for what in ("bytes", "packets", "dropped")
    }
    # It is answered with more bytes than it sends.
    assert used["net_rx_bytes"] > used["net_tx_bytes"] > 20 * 40
    assert network.usage("c1") == {}
    network.close()


# ---- The end, and the next run ---------------------------------------------------------


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


def recovered(container_id: str, *ports: int, asked: pb.ContainerInfo | None = None) -> Recovered:
    resources = Resources.of(cpus=1) + with_ports(ports)
    return Recovered(container_id, "F1", "t", os.getpid(), resources, asked or info())


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
