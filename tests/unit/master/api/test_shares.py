"""The numbers of roles and frameworks for Prometheus."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from master.allocator.base import AllocatorOptions, Standing
from master.api import shares
from mesos_py.metrics import rendered
from tests.kit.core import World
from tests.kit.standings import ToldStandings


@pytest.fixture
def allocator():
    return ToldStandings(AllocatorOptions())


@pytest.fixture
def world(allocator):
    return World(allocator=allocator)


def numbers(world):
    text = rendered(shares.share_families(world.cluster, "m_")).decode()
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_of_a_role_and_of_a_framework_shares_and_offers_are_told(world, allocator):
    world.agent(resources="cpus:1;mem:100")
    framework = world.framework("f", role="web")
    (offer,) = framework.offers()
    world.advance(0.5)
    framework.decline(offer)
    held, lacking = {"cpus": 1500}, {"mem": 2_000}
    allocator.told = (
        Standing("web", "", 0.5, 0.25, 2.0, 1, 1, held=held, guarantee={"cpus": 3000}),
        Standing("web", framework.id, 0.5, 0.5, 1.0, 1, 1, held=held, lacking=lacking),
    )
    found = numbers(world)
    assert found["m_role_share", "web"] == 0.5
    assert found["m_role_weighted_share", "web"] == 0.25
    assert found["m_role_guarantee", "cpus", "web"] == 3
    assert found["m_framework_share", framework.id, "web"] == 0.5
    assert found["m_framework_held", framework.id, "cpus", "web"] == 1.5
    assert found["m_framework_lacking", framework.id, "mem", "web"] == 2
    assert found["m_role_offers_total", "web", "sent"] == 1
    assert found["m_framework_offers_total", framework.id, "web", "declined"] == 1
    assert found["m_role_answer_seconds_total", "web"] == pytest.approx(0.5)


def test_only_so_many_frameworks_are_told_one_by_one(world, allocator, monkeypatch):
    monkeypatch.setattr(shares, "MAX_FRAMEWORKS", 1)
    first, second = world.framework("f"), world.framework("g")
    allocator.told = tuple(Standing("*", each.id, 0.5, 0.5, 1.0, 1, 2) for each in (first, second))
    shown = {key[1] for key in numbers(world) if key[0] == "m_framework_share"}
    assert shown == {first.id}
