"""Faults of every kind in a cluster whose parts are hosts of their own."""

from __future__ import annotations

import pytest

from tests.kit import zookeeper
from tests.kit.chaos.cluster import ChaosCluster
from tests.kit.chaos.run import Size, round_of_faults
from tests.kit.chaos.workload import Plan

pytestmark = pytest.mark.needs("root", "nft", "unshare", "nsenter", *zookeeper.NEEDS)


@pytest.mark.parametrize(("masters", "zookeepers"), [(1, 0), (3, 3)])
def test_without_faults_all_work_is_done_and_nothing_is_left(tmp_path, masters, zookeepers):
    plan = Plan("", "", short=40, long=2, seconds=0.2)
    # Nobody is to lose the lead, whatever else the machine does.
    patient = {"zk_session_timeout": "30s"} if zookeepers else {}
    with ChaosCluster(
        tmp_path, plan, masters=masters, zookeepers=zookeepers, master_flags=patient
    ) as cluster:
        cluster.wait_for("update", 40, state="FINISHED")
        cluster.prove()
        assert len(cluster.runs()) == 42
        assert len(cluster.terms()) == 1


# In this one whoever leads is killed twice, then is alone, then stands still.
@pytest.mark.parametrize("seed", [1350])
def test_a_round_of_random_faults_loses_nothing(tmp_path, seed):
    told: list[str] = []
    size = Size(length_s=40, masters=3, zookeepers=3)
    found = round_of_faults(tmp_path, seed, size, told.append)
    assert not found, "\n".join([*found, *told, f"once more: make chaos MINUTES=0 SEED={seed}"])
