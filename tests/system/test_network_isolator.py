"""The network isolator on the real kernel: what a container gets."""

from __future__ import annotations

import os
import socket
import subprocess

import pytest
from pyroute2 import IPRoute

from agent.isolation.base import Container, Preparation
from agent.isolation.network import links, names
from agent.isolation.network.nat import Nat
from mesos_py.errors import InvalidValue
from mesos_py.resources import Resources
from mesos_py.v1 import types_pb2 as pb
from tests.kit.network_containers import (
    AGENT,
    BRIDGE,
    PLAIN,
    container,
    info,
    isolator,
    labels,
    reachable,
    running,
)
from tests.kit.networks import (
    ADDRESS,
    NEIGHBOUR,
    Greeter,
    device_names,
    greet,
    greet_udp,
    mtu_of,
    rates_of,
)

pytestmark = pytest.mark.needs("root")

PortMapping = pb.NetworkInfo.PortMapping


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


def test_one_more_process_enters_the_namespace_of_the_first(here):
    network = isolator()
    with running(network, container("c1")) as [inside]:
        first = inside.do(lambda: subprocess.Popen(["/bin/sleep", "600"]))
        try:
            assert network.join("c1", first.pid) == Preparation(
                environment={"MESOS_CONTAINER_IP": "10.213.0.2"},
                namespaces=(f"/proc/{first.pid}/ns/net",),
            )
        finally:
            first.kill()
            first.wait()
    assert network.join("c2", os.getpid()) == Preparation()
    network.close()


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
        assert second.do(lambda: greet(first.address, 31000)) == "first"
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
