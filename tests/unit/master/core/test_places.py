"""Which agents are at an address."""

from master.core.places import Places
from mesos_py.v1 import types_pb2 as pb


def info(port=1, ip="127.0.0.1", hostname="web1"):
    return pb.AgentInfo(ip=ip, port=port, hostname=hostname)


def test_agents_are_found_at_their_address_and_nowhere_else():
    places = Places()
    places.put("a", info())
    places.put("b", info())
    places.put("c", info(port=2))
    assert places.at(info()) == ["a", "b"]
    assert places.at(info(port=2)) == ["c"]
    for other in (info(port=3), info(ip="::1"), info(hostname="web2")):
        assert places.at(other) == []


def test_an_agent_that_moves_or_ends_leaves_nothing_behind():
    places = Places()
    places.put("a", info())
    places.put("a", info(port=2))
    places.put("a", info(port=2))
    assert (places.at(info()), places.at(info(port=2))) == ([], ["a"])
    places.forget("a")
    places.forget("a")
    assert places.at(info(port=2)) == []
    assert (places._at, places._place_of) == ({}, {})


def test_an_address_without_a_port_is_nobodys():
    places = Places()
    places.put("a", info(port=0))
    assert places.at(info(port=0)) == []
