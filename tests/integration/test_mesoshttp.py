"""mesoshttp, a scheduler library written for Apache Mesos, unmodified, on a cluster of ours.

Its way is another one than that of pymesos: calls go each over a connection of its own,
redirects are followed by the HTTP library, and records are read line by line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from tests.kit.cluster import Cluster
from tests.kit.pymesos_programs import MesosHttpScheduler, master_of, need_pymesos, serving


@pytest.fixture
def cluster(tmp_path: Path, lacking: Callable[[str], NoReturn]) -> Iterator[Cluster]:
    need_pymesos(lacking)
    with serving(tmp_path / "cluster", echoed=True) as made:
        yield made


def scheduler_of(cluster: Cluster, directory: Path, framework_id: str = "") -> MesosHttpScheduler:
    return MesosHttpScheduler(directory, f"http://{master_of(cluster)}", framework_id)


def test_command_tasks(cluster: Cluster, tmp_path: Path) -> None:
    cluster.start_agent("a")
    with scheduler_of(cluster, tmp_path / "p") as scheduler:
        framework_id = scheduler.wait("registered")
        scheduler.launch("good", "test -d $MESOS_SANDBOX")
        scheduler.launch("bad", "exit 3")
        scheduler.launch("long", "exec sleep 1000")
        scheduler.wait("TASK_FINISHED", "good")
        scheduler.wait("TASK_FAILED", "bad")
        scheduler.wait("TASK_RUNNING", "long")
        scheduler.tell({"reconcile": ["long", "nobody"]})
        scheduler.wait("TASK_RUNNING", "long", count=2)
        scheduler.tell({"kill": "long"})
        scheduler.wait("TASK_KILLED", "long")
        # It acknowledges by itself.
        cluster.wait_for_history(framework_id, 3)
        scheduler.tell({"stop": None})
        assert scheduler.process.wait(60) == 0
        assert scheduler.said("error") == []
    cluster.wait_until(lambda: not cluster.operator.frameworks().frameworks)


def test_a_scheduler_that_was_killed_comes_back(cluster: Cluster, tmp_path: Path) -> None:
    cluster.start_agent("a")
    with scheduler_of(cluster, tmp_path / "p") as first:
        framework_id = first.wait("registered")
        first.launch("long", "exec sleep 1000")
        first.wait("TASK_RUNNING", "long")
        first.kill()
    with scheduler_of(cluster, tmp_path / "p", framework_id) as second:
        assert second.wait("registered") == framework_id
        second.tell({"reconcile": ["long"]})
        second.wait("TASK_RUNNING", "long")
        second.launch("short", "true")
        second.wait("TASK_FINISHED", "short")
        second.tell({"kill": "long"})
        second.wait("TASK_KILLED", "long")
        assert second.leave() == 0
