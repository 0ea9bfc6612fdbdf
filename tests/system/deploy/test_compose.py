"""The image, and the cluster of deploy/docker-compose.yml: it survives its leading master."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit import dockerd as kit
from tests.kit import images
from tests.kit.compose import MASTERS, Compose
from tests.kit.waiting import until

pytestmark = pytest.mark.needs(*kit.NEEDS, "docker-compose", "java", "iptables")
# A cluster comes up, or changes its leader, within this; the machine may be busy.
LIMIT_S = 90.0
JOB = "until test -e /tmp/go; do sleep 0.2; done; echo done"


@pytest.fixture
def cluster(dockerd: kit.PrivateDockerd, tmp_path: Path) -> Iterator[Compose]:
    with Compose(dockerd, tmp_path) as made:
        yield made
    client = dockerd.client
    assert client.containers(all=True) == []
    assert not client.volumes()["Volumes"]
    assert {each["Name"] for each in client.networks()} == {"bridge", "host", "none"}


def test_the_image_needs_no_root_and_says_whether_it_is_well(dockerd):
    image = dockerd.client.inspect_image(images.MESOS_PY)["Config"]
    assert image["User"] == "10001:10001"
    assert image["StopSignal"] == "SIGTERM"
    assert image["Healthcheck"]["Test"][0] == "CMD"
    made = dockerd.client.create_container(images.MESOS_PY, ["version"])
    dockerd.client.start(made["Id"])
    ended = dockerd.client.wait(made["Id"])
    printed = dockerd.client.logs(made["Id"]).decode()
    dockerd.client.remove_container(made["Id"], v=True)
    assert (ended["StatusCode"], printed.split()[0]) == (0, "mesos-py"), printed


def connected(cluster: Compose) -> int:
    agents = cluster.rows("agents") or []
    return sum(each["state"] == "connected" for each in agents)


def running(cluster: Compose) -> int:
    tasks = cluster.rows("tasks") or []
    return sum(each["state"] == "TASK_RUNNING" for each in tasks)


def health(cluster: Compose, master: str) -> str:
    (container,) = cluster.containers(master)
    return str(container["State"]["Health"]["Status"])


def leader(cluster: Compose) -> str | None:
    """The master that ZooKeeper names, and that answers for the cluster."""
    address = cluster.leader()
    if address is None or cluster.rows("agents") is None:
        return None
    for each in MASTERS:
        (container,) = cluster.containers(each)
        (network,) = container["NetworkSettings"]["Networks"].values()
        if network["IPAddress"] == address:
            return each
    return None


def test_a_job_survives_the_leading_master_and_agents_come_and_go(cluster):
    cluster.up(agents=2)
    until(lambda: connected(cluster) == 2, LIMIT_S)
    first = leader(cluster)
    assert first is not None

    run = ("run", "-n", "3", "--cpus", "1", JOB)
    with cluster.start("run", "--rm", "--no-deps", "-T", "client", *run) as job:
        until(lambda: running(cluster) == 3, LIMIT_S)
        (before,) = cluster.containers(first)
        os.kill(before["State"]["Pid"], signal.SIGKILL)
        until(lambda: leader(cluster) not in (None, first), LIMIT_S)
        until(lambda: connected(cluster) == 2 and running(cluster) == 3, LIMIT_S)
        for agent in cluster.containers("agent"):
            assert cluster.inside(agent["Id"], ["touch", "/tmp/go"]) == (0, "")
        printed, errors = job.communicate(timeout=LIMIT_S)
    assert job.returncode == 0, errors
    assert printed.count("| done") == 3

    # Its container is started again, as one that stands by.
    until(lambda: health(cluster, first) == "healthy", LIMIT_S)
    (after,) = cluster.containers(first)
    assert after["RestartCount"] == 1
    assert leader(cluster) != first

    cluster.up(agents=3)
    until(lambda: connected(cluster) == 3, LIMIT_S)
    cluster.up(agents=1)
    until(lambda: connected(cluster) == 1, LIMIT_S)
    # They have said that they go: nobody waits for them.
    agents = cluster.rows("agents")
    assert agents is not None
    assert len(agents) == 1
    assert cluster.run("run", "--rm", "--no-deps", "-T", "client", "run", "echo still here") == (
        "still here\n"
    )
