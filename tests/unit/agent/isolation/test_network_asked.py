"""ContainerInfo.network_infos: what is understood, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.isolation.network.asked import (
    HOST,
    Asked,
    Kind,
    PortMapping,
    mappings_of,
    parse,
    rate,
    rates_of,
)
from mesos_py.errors import InvalidValue
from mesos_py.resources import Resources
from mesos_py.v1 import types_pb2 as pb

Mapping = pb.NetworkInfo.PortMapping
PORTS = Resources.of(cpus=1, ports=[(31000, 31001)])


def info(*networks: pb.NetworkInfo) -> pb.ContainerInfo:
    return pb.ContainerInfo(type=pb.ContainerInfo.MESOS, network_infos=networks)


def network(name: str | None = None, **fields) -> pb.ContainerInfo:
    return info(pb.NetworkInfo(name=name, **fields))


def labels(**given: str) -> pb.Labels:
    return pb.Labels(labels=[pb.Label(key=key, value=value) for key, value in given.items()])


def refusal(asked: pb.ContainerInfo) -> InvalidValue:
    with pytest.raises(InvalidValue) as caught:
        parse(asked)
    return caught.value


@pytest.mark.parametrize("asked", [None, pb.ContainerInfo(), info(), network("host")])
def test_who_asks_for_nothing_is_in_the_machines_network(asked):
    assert parse(asked) == HOST


@pytest.mark.parametrize("asked", [network(), network(""), network("mesos-py")])
def test_who_names_no_network_gets_the_agents_own(asked):
    assert parse(asked) == Asked(Kind.BRIDGED)


def test_the_network_none_is_nothing_but_loopback():
    assert parse(network("none")) == Asked(Kind.NONE)


def test_an_unknown_network_is_refused_with_those_that_there_are():
    error = refusal(network("weave"))
    assert (error.field, error.value) == ("container.network_infos.name", "weave")
    assert error.reason == "is no network of this agent; there are: host, mesos-py, none"


@pytest.mark.parametrize(
    ("asked", "field", "value", "reason"),
    [
        (
            info(pb.NetworkInfo(), pb.NetworkInfo(name="none")),
            "",
            "mesos-py, none",
            "in one network only",
        ),
        (network(groups=["web"]), ".groups", "web", "no groups here"),
        (
            network(ip_addresses=[pb.NetworkInfo.IPAddress(ip_address="10.1.1.1")]),
            ".ip_addresses",
            "10.1.1.1",
            "chosen by the agent",
        ),
        (
            network(port_mappings=[Mapping(host_port=0, container_port=80)]),
            ".port_mappings.host_port",
            0,
            "must be 1 to 65535",
        ),
        (
            network(port_mappings=[Mapping(host_port=31000, container_port=65536)]),
            ".port_mappings.container_port",
            65536,
            "must be 1 to 65535",
        ),
        (
            network(port_mappings=[Mapping(host_port=1, container_port=1, protocol="sctp")]),
            ".port_mappings.protocol",
            "sctp",
            "must be tcp or udp",
        ),
        (
            network(port_mappings=[Mapping(host_port=1, container_port=n) for n in (1, 2)]),
            ".port_mappings.host_port",
            "1/tcp",
            "mapped twice",
        ),
        (network(labels=labels(egress="fast")), ".labels.egress", "fast", "must be a number"),
        (network("none", labels=labels(egress="1mbit")), ".name", "none", "neither"),
        (
            network("host", port_mappings=[Mapping(host_port=1, container_port=1)]),
            ".name",
            "host",
            "neither",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_field_and_value(asked, field, value, reason):
    error = refusal(asked)
    assert (error.field, error.value) == (f"container.network_infos{field}", value)
    assert reason in error.reason


def test_mesos_asks_for_an_address_by_an_empty_one():
    asked = network(ip_addresses=[pb.NetworkInfo.IPAddress(protocol=pb.NetworkInfo.IPv4)])
    assert parse(asked).kind is Kind.BRIDGED


def test_tcp_is_what_is_mapped_by_default_and_the_same_port_may_be_mapped_for_both():
    mappings = [
        Mapping(host_port=31000, container_port=80),
        Mapping(host_port=31000, container_port=53, protocol="UDP"),
    ]
    assert parse(network(port_mappings=mappings)).mappings == (
        PortMapping("tcp", 31000, 80),
        PortMapping("udp", 31000, 53),
    )


def test_without_mappings_each_port_leads_to_the_same_number_inside():
    assert mappings_of(Asked(Kind.BRIDGED), PORTS) == (
        PortMapping("tcp", 31000, 31000),
        PortMapping("udp", 31000, 31000),
        PortMapping("tcp", 31001, 31001),
        PortMapping("udp", 31001, 31001),
    )
    assert mappings_of(Asked(Kind.BRIDGED), Resources.of(cpus=1)) == ()


def test_only_ports_that_the_task_was_given_can_be_mapped():
    mine = Asked(Kind.BRIDGED, (PortMapping("tcp", 31001, 80),))
    assert mappings_of(mine, PORTS) == mine.mappings
    other = Asked(Kind.BRIDGED, (PortMapping("tcp", 31002, 80),))
    with pytest.raises(InvalidValue) as caught:
        mappings_of(other, PORTS)
    assert caught.value.field == "container.network_infos.port_mappings.host_port"
    assert caught.value.value == 31002
    assert "[31000-31001]" in caught.value.reason


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("10mbit", 10_000_000),
        ("2.5Gbit", 2_500_000_000),
        (" 800 kbit/s ", 800_000),
        ("8000bit", 8_000),
        ("0.3mbit", 300_000),
        ("32gbit", 32_000_000_000),
    ],
)
def test_rates_are_read_exactly(text, bits):
    assert rate("egress", text) == bits


@pytest.mark.parametrize(
    "text", ["", "10", "10mb", "-1mbit", "1e3mbit", "7999bit", "33gbit", "٣mbit"]
)
def test_what_is_no_rate_is_refused(text):
    with pytest.raises(InvalidValue):
        rate("egress", text)


@given(st.text("0123456789.kmgbit/s ", max_size=20))
def test_any_text_is_a_rate_within_bounds_or_refused(text):
    try:
        assert 8_000 <= rate("egress", text) <= 32_000_000_000
    except InvalidValue:
        pass


def test_bandwidth_that_was_given_limits_both_directions_and_labels_limit_further():
    given = Resources.of(network_bandwidth=100)
    assert rates_of(Asked(Kind.BRIDGED), given) == (100_000_000, 100_000_000)
    less = Asked(Kind.BRIDGED, egress=5_000_000)
    assert rates_of(less, given) == (5_000_000, 100_000_000)
    assert rates_of(less, Resources.of(cpus=1)) == (5_000_000, None)


def test_labels_cannot_go_beyond_the_bandwidth_that_was_given():
    with pytest.raises(InvalidValue, match=r"more than the 1\.5 Mbit/s of network_bandwidth"):
        rates_of(Asked(Kind.BRIDGED, ingress=2_000_000), Resources.of(network_bandwidth=1.5))


def test_a_bandwidth_that_no_device_can_hold_to_is_refused():
    with pytest.raises(InvalidValue, match="8kbit to 32gbit"):
        rates_of(Asked(Kind.BRIDGED), Resources.of(network_bandwidth=0.001))
