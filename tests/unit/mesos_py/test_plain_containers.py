"""Containers without an image from few words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.isolation.network.asked import Asked, Kind, PortMapping, parse
from mesos_py.errors import InvalidValue
from mesos_py.plain_containers import parse_rlimit, plain_container, rlimit_info
from mesos_py.v1.types_pb2 import ContainerInfo, RLimitInfo

RLimit = RLimitInfo.RLimit


def test_a_container_without_wishes_asks_for_nothing():
    assert plain_container() == ContainerInfo(type=ContainerInfo.MESOS)


def test_limits_are_given_by_their_names():
    info = rlimit_info({"nofile": (10, 20), "NPROC": 5, "core": None})
    assert list(info.rlimits) == [
        RLimit(type=RLimit.RLMT_NOFILE, soft=10, hard=20),
        RLimit(type=RLimit.RLMT_NPROC, soft=5, hard=5),
        RLimit(type=RLimit.RLMT_CORE),
    ]


@pytest.mark.parametrize("name", ["", "files", "rlmt_nofile", "unknown?"])
def test_a_name_that_is_no_limit_is_refused_with_those_that_are(name):
    with pytest.raises(InvalidValue, match="there are: as, core, cpu"):
        rlimit_info({name: 1})


@pytest.mark.parametrize("limit", [-1, (2, 1), (0, 2**63)])
def test_numbers_that_are_no_limit_are_refused(limit):
    with pytest.raises(InvalidValue) as caught:
        rlimit_info({"nofile": limit})
    assert caught.value.field == "rlimits.nofile"


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("nofile=1024", ("nofile", (1024, 1024))),
        ("nofile=1:2", ("nofile", (1, 2))),
        ("core=unlimited", ("core", None)),
    ],
)
def test_a_limit_is_read_from_text(text, limit):
    assert parse_rlimit(text) == limit


@pytest.mark.parametrize(
    "text", ["", "nofile", "=5", "nofile=", "nofile=1:", "nofile=:1", "nofile=x", "nofile=-1:2"]
)
def test_a_text_that_is_no_limit_is_refused(text):
    with pytest.raises(InvalidValue):
        parse_rlimit(text)


@given(st.text("nofile=0123456789:-unlimited²", max_size=20))
def test_any_text_is_a_limit_or_refused(text):
    try:
        name, limit = parse_rlimit(text)
    except InvalidValue:
        return
    assert name
    assert limit is None or isinstance(limit, tuple)


def test_what_is_asked_of_the_network_is_what_the_agent_understands():
    made = plain_container(ports={80: 31000}, egress="10mbit", ingress="2gbit")
    assert parse(made) == Asked(
        Kind.BRIDGED, (PortMapping("tcp", 31000, 80),), 10_000_000, 2_000_000_000
    )
    assert parse(plain_container(network="mesos-py")) == Asked(Kind.BRIDGED)
    assert parse(plain_container(network="none")).kind is Kind.NONE
    assert parse(plain_container(rlimits={"core": 0})).kind is Kind.HOST


def test_a_port_that_is_none_is_refused():
    with pytest.raises(InvalidValue, match="1 to 65535"):
        plain_container(ports={80: 0})
