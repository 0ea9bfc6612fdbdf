from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesos_py.address import Address
from mesos_py.election.zookeeper.layout import (
    decode,
    encode,
    leader_of,
    sequence_of,
    why_skipped,
)
from mesos_py.errors import InvalidValue
from mesos_py.v1 import types_pb2 as pb


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("json.info_0000000000", 0),
        ("json.info_0000000012", 12),
        # What the counter turns into after 2147483647.
        ("json.info_-2147483648", -2147483648),
        ("info_0000000001", None),
        ("log_replicas", None),
        ("json.info_", None),
        ("json.info_12x", None),
        ("json.info_٣", None),
        ("x.json.info_0000000001", None),
        ("0000000001", None),
        ("", None),
    ],
)
def test_the_number_of_a_candidate(name, number) -> None:
    assert sequence_of(name) == number
    assert (why_skipped(name) is None) == (number is not None)


def test_binary_candidates_of_long_ago_are_told_from_strangers() -> None:
    assert "binary" in str(why_skipped("info_0000000001"))
    assert "binary" not in str(why_skipped("log_replicas"))


def test_the_smallest_number_leads_whatever_else_is_there() -> None:
    names = ["log_replicas", "json.info_0000000010", "info_0000000001", "json.info_0000000009"]
    assert leader_of(names) == "json.info_0000000009"
    assert leader_of(["log_replicas", "info_0000000001"]) is None
    assert leader_of([]) is None


@given(st.lists(st.integers(0, 2**31 - 1), min_size=1, unique=True), st.randoms())
def test_clients_that_compare_names_find_the_same_one(numbers: list[int], random) -> None:
    names = [f"json.info_{number:010d}" for number in numbers]
    random.shuffle(names)
    assert leader_of(names) == min(names)


def info(ip: str = "10.0.0.1", version: str = "0.1.0") -> pb.MasterInfo:
    return pb.MasterInfo(
        id="m1",
        ip=0x0100000A,
        port=5050,
        hostname="one",
        version=version,
        address=pb.Address(hostname="one", ip=ip, port=5050),
    )


def test_content_is_read_back() -> None:
    assert decode(encode(info())) == Address("10.0.0.1", 5050)
    assert decode(encode(info("fe80::1"))) == Address("fe80::1", 5050)
    assert json.loads(encode(info("fe80::1")))["pid"] == "master@[fe80::1]:5050"


def test_clients_of_http_and_our_own_peers_find_different_ports() -> None:
    told = info()
    told.grpc_port = 5060
    content = json.loads(encode(told))
    # What clients of Mesos read.
    assert (content["address"]["port"], content["port"]) == (5050, 5050)
    assert content["pid"] == "master@10.0.0.1:5050"
    found = decode(encode(told))
    assert found == Address("10.0.0.1", 5060)
    assert found.http == Address("one", 5050)


def test_a_candidate_that_names_one_port_has_both_there() -> None:
    content = {"address": {"hostname": "", "ip": "10.0.0.1", "port": 5050}}
    for grpc_port in ({}, {"grpc_port": "x"}, {"grpc_port": True}):
        found = decode(json.dumps({**content, **grpc_port}).encode())
        assert found == Address("10.0.0.1", 5050)
        assert found.http == Address("10.0.0.1", 5050)


@pytest.mark.parametrize(
    ("version", "shown"),
    [("1.2.3", "1.2.3"), ("0.2.0.dev1", "0.2.0"), ("1.0rc1", "1.0"), ("", "0"), ("x", "0")],
)
def test_the_version_is_numbers_only(version, shown) -> None:
    assert json.loads(encode(info(version=version)))["version"] == shown


@pytest.mark.parametrize("ip", ["0.0.0.0", "::"])
def test_an_address_that_nobody_can_connect_to_is_refused(ip) -> None:
    with pytest.raises(InvalidValue, match="connect to"):
        encode(info(ip))


def test_a_master_of_another_kind_is_read_by_its_host_name() -> None:
    content = {"address": {"hostname": "one", "port": 5050}, "more": [1], "ip": 16777343}
    assert decode(json.dumps(content).encode()) == Address("one", 5050)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x0a\x24",
        b"{",
        b"[]",
        b"null",
        b"{}",
        b'{"address": "10.0.0.1:5050"}',
        b'{"address": {"ip": "10.0.0.1"}}',
        b'{"address": {"ip": 16777343, "port": 5050}}',
        b'{"address": {"ip": "10.0.0.1", "port": "5050"}}',
        b'{"address": {"ip": "10.0.0.1", "port": true}}',
        b'{"address": {"ip": "10.0.0.1", "port": 0}}',
        b'{"address": {"ip": "a b", "port": 1}}',
        b'{"address": {"port": 1}}',
        b'{"address": {"ip": "10.0.0.1", "port": 1}, "grpc_port": 70000}',
    ],
)
def test_what_is_no_master_is_refused(data) -> None:
    with pytest.raises(InvalidValue, match="MasterInfo"):
        decode(data)


@given(st.binary(max_size=60))
def test_any_content_is_read_or_refused(data: bytes) -> None:
    try:
        decode(data)
    except InvalidValue:
        pass
