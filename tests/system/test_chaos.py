"""Faults of every kind in a cluster whose parts are hosts of their own."""

from __future__ import annotations

import pytest

from tests.kit.chaos.cluster import ChaosCluster
from tests.kit.chaos.workload import Plan

pytestmark = pytest.mark.needs("root", "nft", "unshare", "nsenter")


def test_without_faults_all_work_is_done_and_nothing_is_left(tmp_path):
    with ChaosCluster(tmp_path, Plan("", "", short=40, long=2, seconds=0.2)) as cluster:
        cluster.wait_for("update", 40, state="FINISHED")
        cluster.prove()
        assert len(cluster.runs()) == 42
