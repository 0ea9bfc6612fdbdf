"""Names and aliases of network devices: short, apart, and true about whose they are."""

from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.isolation.network import names
from agent.isolation.network.names import Owner
from mesos_py.errors import InvalidValue

ADDRESS = IPv4Address("10.213.0.2")
# What mesos_py.ids.check_id lets through.
IDS = st.text("abcXYZ019._-", min_size=1, max_size=60)


def test_all_names_fit_the_kernel():
    long = "a" * 200
    made = (names.bridge(long), names.veth(long, long), names.shaper(long, long))
    assert {len(name) for name in made} == {15}
    assert len(set(made)) == 3


def test_containers_of_different_agents_have_different_names():
    assert names.veth("A1", "c") != names.veth("A2", "c")
    assert names.veth("A1", "c") != names.veth("A1", "d")
    # The border between the two ids counts.
    assert names.veth("A1", "1c") != names.veth("A11", "c")


def test_an_alias_says_whose_a_device_is():
    owner = Owner("5f0c-S0", "9b1e", ADDRESS)
    assert names.alias(owner) == "mesos-py 5f0c-S0 9b1e 10.213.0.2"
    assert names.owner_of(names.alias(owner)) == owner


@pytest.mark.parametrize(
    "alias",
    [
        None,
        "",
        "eth0",
        "mesos-py",
        "mesos-py A1",
        "mesos-py A1 c1",
        "mesos-py A1 c1 10.213.0",
        "mesos-py A1 c1 10.213.0.2 more",
        "mesos-py  c1 10.213.0.2",
        "mesos-pyx A1 c1 10.213.0.2",
        "Mesos-py A1 c1 10.213.0.2",
    ],
)
def test_what_only_looks_like_an_alias_belongs_to_nobody(alias):
    assert names.owner_of(alias) is None


def test_the_alias_of_a_bridge_is_not_taken_for_that_of_a_container():
    assert names.owner_of(names.bridge_alias("A1")) is None


def test_ids_too_long_for_an_alias_are_refused():
    with pytest.raises(InvalidValue, match="longer than 255 bytes"):
        names.alias(Owner("a" * 200, "c" * 60, ADDRESS))


@given(IDS, IDS, st.ip_addresses(v=4))
def test_every_alias_is_read_as_it_was_written(agent_id, container_id, address):
    owner = Owner(agent_id, container_id, address)
    assert names.owner_of(names.alias(owner)) == owner


@given(st.text(max_size=80))
def test_any_text_is_read_without_an_error(text):
    owner = names.owner_of(text)
    assert owner is None or names.alias(owner) == text


def test_hardware_addresses_follow_from_the_others_and_are_private_single_ones():
    assert names.mac(ADDRESS) == "02:6d:0a:d5:00:02"
