"""Faults of every kind in a cluster whose parts are hosts of their own."""

from __future__ import annotations

import pytest

from tests.kit.chaos.cluster import ChaosCluster
from tests.kit.chaos.run import Size, round_of_faults
from tests.kit.chaos.workload import Plan

pytestmark = pytest.mark.needs("root", "nft", "unshare", "nsenter")


def test_without_faults_all_work_is_done_and_nothing_is_left(tmp_path):
    with ChaosCluster(tmp_path, Plan("", "", short=40, long=2, seconds=0.2)) as cluster:
        cluster.wait_for("update", 40, state="FINISHED")
        cluster.prove()
        assert len(cluster.runs()) == 42


@pytest.mark.parametrize("seed", [103])
def test_a_round_of_random_faults_loses_nothing(tmp_path, seed):
    told: list[str] = []
    found = round_of_faults(tmp_path, seed, Size(length_s=40), told.append)
    assert not found, "\n".join([*found, *told, f"once more: make chaos MINUTES=0 SEED={seed}"])
