"""The image, and the cluster of deploy/docker-compose.yml: it survives its leading master."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from docker.errors import APIError

from tests.kit import dockerd as kit
from tests.kit import images
from tests.kit.compose import MASTERS, Compose
from tests.kit.waiting import until

pytestmark = pytest.mark.needs(*kit.NEEDS, "docker-compose", "java", "iptables")
# A cluster comes up, or changes its leader, within this; the machine may be busy.
LIMIT_S = 90.0
CLIENT = ("run", "--rm", "--no-deps", "-T", "client")
JOB = "until test -e /tmp/go; do sleep 0.2; done; echo done"


@pytest.fixture
def cluster(dockerd: kit.PrivateDockerd, tmp_path: Path) -> Iterator[Compose]:
    with Compose(dockerd, tmp_path) as made:
        yield made
    client = dockerd.client
    assert client.containers(all=True) == []
    # docker-compose leaves the volume without a name of an agent that was scaled away.
    client.prune_volumes()
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


def numbers(cluster: Compose, master: str) -> dict[str, float]:
    """What a master tells Prometheus; nothing while it is away."""
    (container,) = cluster.containers(master)
    url = "http://127.0.0.1:5052/metrics"
    try:
        _, printed = cluster.inside(container["Id"], "wget", "-q", "-O", "-", url)
    except APIError:
        return {}
    lines = [line for line in printed.splitlines() if line.startswith("mesos_py_master_")]
    values = (line.removeprefix("mesos_py_master_").rsplit(" ", 1) for line in lines)
    return {name: float(value) for name, value in values}


def leader(cluster: Compose) -> str | None:
    """The one master that leads, by its own word."""
    leading = [each for each in MASTERS if numbers(cluster, each).get("leading") == 1]
    assert len(leading) <= 1
    return leading[0] if leading else None


def there_are(cluster: Compose, **wanted: int) -> bool:
    """Whether the leader counts so many `agents_connected`, `tasks_running` ..."""
    first = leader(cluster)
    counted = numbers(cluster, first) if first is not None else {}
    return all(counted.get(name) == number for name, number in wanted.items())


def health(cluster: Compose, master: str) -> str:
    (container,) = cluster.containers(master)
    return str(container["State"]["Health"]["Status"])


def test_a_job_survives_the_leading_master_and_agents_come_and_go(cluster):
    cluster.up(agents=2)
    until(lambda: there_are(cluster, agents_connected=2), LIMIT_S)
    first = leader(cluster)
    assert first is not None

    with cluster.start(*CLIENT, "run", "-n", "3", "--cpus", "1", JOB) as job:
        until(lambda: there_are(cluster, tasks_running=3), LIMIT_S)
        (before,) = cluster.containers(first)
        os.kill(before["State"]["Pid"], signal.SIGKILL)
        until(lambda: leader(cluster) not in (None, first), LIMIT_S)
        until(lambda: there_are(cluster, agents_connected=2, tasks_running=3), LIMIT_S)
        for agent in cluster.containers("agent"):
            assert cluster.inside(agent["Id"], "touch", "/tmp/go") == (0, "")
        printed, errors = job.communicate(timeout=LIMIT_S)
    assert job.returncode == 0, errors
    assert printed.count("| done") == 3

    # Its container is started again, as one that stands by.
    until(lambda: health(cluster, first) == "healthy", LIMIT_S)
    (after,) = cluster.containers(first)
    assert after["RestartCount"] == 1
    assert leader(cluster) not in (None, first)

    cluster.up(agents=3)
    until(lambda: there_are(cluster, agents_connected=3), LIMIT_S)
    cluster.up(agents=1)
    # They have said that they go: nobody waits for them to come back.
    until(lambda: there_are(cluster, agents=1, agents_connected=1), LIMIT_S)
    assert cluster.run(*CLIENT, "run", "echo still here") == "still here\n"
