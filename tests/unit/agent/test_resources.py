"""What an agent offers, and its attributes, from text and from the machine."""

import pytest

from agent.resources import detect, offered, parse_attributes, taken_ports, usable_mb
from mesos_py.errors import InvalidResources, InvalidValue
from mesos_py.v1 import types_pb2 as pb


@pytest.mark.parametrize(
    ("total", "kept", "left"),
    [(16384, 1024, 15360), (2048, 1024, 1024), (2047, 1024, 1023), (1000, 1024, 500)],
)
def test_the_system_keeps_its_share_or_half(total, kept, left):
    assert usable_mb(total, kept) == left


def test_the_machine_is_detected(tmp_path):
    found = detect(tmp_path)
    assert found.scalar("cpus") >= 1
    assert found.scalar("mem") > 0
    assert found.ranges["ports"] == ((31000, 32000),)


def test_text_overrides_what_is_detected_name_by_name(tmp_path):
    merged = offered("cpus:2.5;gpus:1;ports:[1-9]", tmp_path)
    found = detect(tmp_path)
    assert (merged.scalar("cpus"), merged.scalar("gpus")) == (2.5, 1.0)
    assert merged.ranges["ports"] == ((1, 9),)
    assert merged.scalars["mem"] == found.scalars["mem"]
    assert offered("", tmp_path).scalars["cpus"] == found.scalars["cpus"]


def test_zero_offers_none_of_it(tmp_path):
    merged = offered("cpus:1; disk:0 ;ports:[];mem:0.00", tmp_path)
    assert merged.names() == ["cpus"]


@pytest.mark.parametrize(
    "text",
    [
        "cpus:1;cpus(ads):0;mem(ads): 0.0 ;disk(a/b):0;ports(ads):[ ];names:{}; names(ads):{ }",
        """[
            {"name": "cpus", "type": "SCALAR", "scalar": {"value": 1}},
            {"name": "cpus", "type": "SCALAR", "scalar": {"value": 0}, "role": "ads"},
            {"name": "mem", "type": "SCALAR", "scalar": {"value": 0}},
            {"name": "disk", "type": "SCALAR", "scalar": {"value": 0},
             "reservations": [{"type": "STATIC", "role": "ads"}]},
            {"name": "ports", "type": "RANGES", "ranges": {"range": []}},
            {"name": "names", "type": "SET", "set": {"item": []}}
        ]""",
    ],
)
def test_nothing_that_is_reserved_is_nothing(text, tmp_path):
    """Mesos ignores empty amounts, and detects nothing in place of them."""
    assert str(offered(text, tmp_path)) == "cpus:1"


def test_what_is_reserved_replaces_what_is_detected_of_that_name(tmp_path):
    merged = offered("cpus(ads):2;cpus(web):1;mem(*):64;ports(ads):[1-9]", tmp_path)
    assert str(merged.only(lambda name: name != "disk")) == (
        "cpus(ads):2;cpus(web):1;mem:64;ports(ads):[1-9]"
    )
    assert merged.scalars["disk"] == detect(tmp_path).scalars["disk"]


def test_json_says_the_same(tmp_path):
    text = """ [
        {"name": "cpus", "type": "SCALAR", "scalar": {"value": 2}, "role": "ads"},
        {"name": "cpus", "type": "SCALAR", "scalar": {"value": 1.5}},
        {"name": "mem", "type": "SCALAR", "scalar": {"value": 64},
         "reservations": [{"type": "STATIC", "role": "ads"}]},
        {"name": "ports", "type": "RANGES", "ranges": {"range": [{"begin": 1, "end": 9}]}}
    ]"""
    merged = offered(text, tmp_path)
    assert str(merged.only(lambda name: name != "disk")) == (
        "cpus(ads):2;cpus:1.5;mem(ads):64;ports:[1-9]"
    )


@pytest.mark.parametrize(
    "text",
    [
        "cpus",
        "cpus:-1",
        "cpus:nan",
        "cpus:0.0001",
        "cpus:1;cpus:2",
        "cpus:0;cpus:0",
        "cpus:[1-2]",
        "mem:{a}",
        "ports:5",
        "ports:[9-1]",
        "gpus:0.5",
        "a b:1",
        "cpus:0;mem:0;disk:0;ports:[]",
        "cpus(a b):1",
        "cpus(ads:1",
        "cpus(ads):1;cpus(ads):1",
        "cpus(ads):0;cpus(ads):0;mem:1",
        "cpus(/ads):0;mem:1",
        '[{"name":"ports","type":"RANGES"}]',
        "cpus(ads):[1-2]",
        "ports(ads):5",
        "ports(ads):[1-9];ports:[9-10]",
        "[",
        '[{"name":"cpus"}]',
        '[{"name":"cpus","type":"SCALAR","scalar":{"value":1},"role":"ads","reservation":{}}]',
        '[{"name":"cpus","type":"SCALAR","scalar":{"value":1},"revocable":{}}]',
    ],
)
def test_malformed_resources_are_refused(text, tmp_path):
    with pytest.raises(InvalidResources):
        offered(text, tmp_path)


def test_attributes_are_texts_numbers_ranges_and_sets():
    rack, count, ports, zones = parse_attributes("rack:r1:a; n:3.5 ;ports:[1-2, 5-5];z:{a, b}")
    assert (rack.type, rack.text.value) == (pb.Value.TEXT, "r1:a")
    assert (count.type, count.scalar.value) == (pb.Value.SCALAR, 3.5)
    assert [(each.begin, each.end) for each in ports.ranges.range] == [(1, 2), (5, 5)]
    assert list(zones.set.item) == ["a", "b"]
    assert parse_attributes("") == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rack", "NAME:VALUE"),
        ("rack:", "NAME:VALUE"),
        (":x", "no name"),
        ("a b:1", "no name"),
        ("a:1;a:2", "twice"),
        ("p:[1", "must end"),
        ("p:[x-2]", "BEGIN-END"),
        ("s:{a", "must end"),
        ("s:{a,a}", "twice"),
        ("s:{}", "empty"),
        ("t:a\x01", "control"),
    ],
)
def test_malformed_attributes_are_refused(text, words):
    with pytest.raises(InvalidValue, match=words):
        parse_attributes(text)


@pytest.mark.parametrize(
    ("offered_ports", "kernels_own", "reserved", "taken"),
    [
        (((31000, 32000),), "32768\t60999\n", "\n", ()),
        (((31000, 33000),), "32768\t60999\n", "\n", ((32768, 33000),)),
        (((40000, 40009), (50000, 50000)), "32768 60999", "40000-40004,50000", ((40005, 40009),)),
        (((1, 65535),), "32768 60999", "", ((32768, 60999),)),
        ((), "32768 60999", "", ()),
    ],
)
def test_ports_that_the_kernel_gives_to_anybody_are_found(
    offered_ports, kernels_own, reserved, taken
):
    assert taken_ports(offered_ports, kernels_own, reserved) == taken
