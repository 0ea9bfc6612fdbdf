"""A real Slurm whose nodes are on several machines, some of which are lost."""

from collections.abc import Iterator

import pytest

from tests.kit.local import LIMIT_S
from tests.kit.torque_hosts import HostBatch, HostCluster, on_hosts
from tests.kit.waiting import gone, until

pytestmark = pytest.mark.needs("root", "slurmctld", "slurmd", "munged", "qsub", "unshare", "nft")
MACHINE = "cpus:2;mem:1024;disk:0;ports:[31000-31999]"
# What each machine calls itself, and whether that is in its /etc/hosts.
HOSTS = {
    "ant": "",
    "bee.example.org": "",
    "cat.example.org": "127.0.1.1 cat.example.org cat\n",
}


@pytest.fixture
def cluster(tmp_path) -> Iterator[HostCluster]:
    with on_hosts(tmp_path) as made:
        for hostname, hosts in HOSTS.items():
            made.host_agent(hostname, MACHINE, hosts).launch()
        for agent in made.agents:
            agent.ready()
        yield made


def test_jobs_on_several_machines(cluster):
    """Whatever machines call themselves; a machine that is lost, and one that is cut off."""
    with HostBatch(cluster) as batch:
        _on_all_of_them(batch)
        _lost_and_cut_off(batch)


def _on_all_of_them(batch: HostBatch) -> None:
    job = batch.submit("#!/bin/sh\nsrun hostname\n", "-l", "nodes=3:ppn=2")
    batch.wait_for_job(job, "COMPLETED")
    lines = (batch.work / f"job.sh.o{job}").read_text().split()
    assert sorted(lines) == sorted([*HOSTS] * 2)
    batch.wait_for_no_nodes()


def _lost_and_cut_off(batch: HostBatch) -> None:
    """Each job that ran there begins anew elsewhere, once, or is closed, as it was submitted."""
    cluster = batch.cluster
    again = batch.gated("again", "-l", "nodes=1:ppn=1")
    once = batch.gated("once", "-l", "nodes=1:ppn=1", "-r", "n")
    batch.wait_for_lines("again", "began")
    batch.wait_for_lines("once", "began")
    lost = _host_of(batch, once)
    # In general both are on one node: it has room for two, and they come one after the other.
    begins = ["began"] * (2 if _host_of(batch, again) == lost else 1)
    far = batch.gated("far", "-l", "nodes=1:ppn=2")
    batch.wait_for_lines("far", "began")
    cut = _host_of(batch, far)
    (left_over,) = batch.scripts_of(far)
    drops = cluster.cut(cut.partition(".")[0])
    cluster.wires.add(drops)
    cluster.lose(lost)
    batch.wait_for_job(once, "NODE_FAIL")
    # The master has said so of the one that was cut off as well; its job runs on there.
    until(lambda: batch.job(far)["restart_cnt"] == 1, LIMIT_S)
    assert not gone(left_over)
    cluster.wires.remove(drops)
    until(lambda: gone(left_over), LIMIT_S)
    assert "ended" not in batch.lines("far")
    batch.open_gate()
    for job, mark, began in ((again, "again", begins), (far, "far", ["began"] * 2)):
        assert batch.wait_for_job(job, "COMPLETED")["restart_cnt"] == len(began) - 1
        assert batch.lines(mark) == [*began, "ended"]
    assert batch.lines("once") == ["began"]
    batch.wait_for_no_nodes()


def _host_of(batch: HostBatch, job_id: str) -> str:
    """The machine that has the node on which a job runs."""
    node = batch.job(job_id)["nodes"]
    (host,) = [each["host"] for each in batch.view()["nodes"] if each["name"] == node]
    return str(host)
