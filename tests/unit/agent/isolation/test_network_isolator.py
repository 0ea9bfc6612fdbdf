"""What the network isolator says where a machine lacks what it needs."""

import pytest

from agent.isolation.base import NETWORKS, AgentFacts
from agent.isolation.network import namespaces
from agent.isolation.network.isolator import NetworkIsolator
from mesos_py.errors import InvalidValue, Refused
from mesos_py.resources import Resources


def facts(**flags: object) -> AgentFacts:
    return AgentFacts("A1", "/nowhere", Resources(), flags)


def test_it_provides_networks():
    assert NetworkIsolator.provides == {NETWORKS}


def test_without_the_rights_it_says_what_is_missing(monkeypatch):
    def refused() -> int:
        raise PermissionError(1, "unshare: Operation not permitted")

    monkeypatch.setattr(namespaces, "create", refused)
    with pytest.raises(Refused) as caught:
        NetworkIsolator(facts())
    assert caught.value.message == (
        "this machine cannot give containers networks of their own: unshare: Operation not "
        "permitted; the agent needs root's rights for it"
    )


def test_a_range_that_is_none_is_refused_before_anything_is_tried():
    with pytest.raises(InvalidValue, match="network-range"):
        NetworkIsolator(facts(network_range="10.0.0.0/31"))
