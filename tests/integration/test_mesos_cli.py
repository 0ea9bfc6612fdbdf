"""The `mesos` command of Apache Mesos (avmesos-cli), unmodified, with a cluster of ours."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from tests.kit.cluster import Cluster
from tests.kit.pymesos_programs import MesosCli, Scheduler, master_of, need_pymesos, serving


@pytest.fixture
def cluster(tmp_path: Path, lacking: Callable[[str], NoReturn]) -> Iterator[Cluster]:
    need_pymesos(lacking)
    with serving(tmp_path / "cluster") as made:
        yield made


def test_what_it_shows(cluster: Cluster, tmp_path: Path) -> None:
    mesos = MesosCli(tmp_path / "cli", master_of(cluster))
    assert mesos.said("agent", "list") == "The cluster does not have any agents.\n"
    cluster.start_agent("a")
    agent_id = cluster.agent_id("a")
    assert mesos.table("agent", "list") == [[agent_id, "a", "True"]]
    with Scheduler(tmp_path / "p", master_of(cluster)) as scheduler:
        framework_id = scheduler.wait("registered")
        scheduler.launch("long", "exec sleep 1000")
        scheduler.launch("good", "true")
        scheduler.wait("TASK_RUNNING", "long")
        scheduler.wait("TASK_FINISHED", "good")
        # Until it is acknowledged the master may still have the state before.
        cluster.wait_for_history(framework_id)
        row = [framework_id, "True", "localhost", "pymesos"]
        assert mesos.table("framework", "list") == [row]
        shown = json.loads(mesos.said("framework", "inspect", framework_id))
        assert shown["used_resources"] == {"cpus": 0.1, "mem": 32.0, "disk": 0.0, "gpus": 0.0}
        # What a column has no text for it prints as nothing.
        long, good = ["long", "TASK_RUNNING", framework_id], ["good", "TASK_FINISHED", framework_id]
        assert mesos.table("task", "list") == [long]
        assert sorted(mesos.table("task", "list", "--all")) == [good, long]
        task = json.loads(mesos.said("task", "inspect", "long"))
        assert (task["slave_id"], task["state"]) == (agent_id, "TASK_RUNNING")
        assert [each["state"] for each in task["statuses"]] == ["TASK_STARTING", "TASK_RUNNING"]
        scheduler.tell({"stop": None})
        assert scheduler.process.wait(60) == 0


def test_a_command_in_the_container_of_a_task(cluster: Cluster, tmp_path: Path) -> None:
    mesos = MesosCli(tmp_path / "cli", master_of(cluster))
    cluster.start_agent("a")
    with Scheduler(tmp_path / "p", master_of(cluster)) as scheduler:
        scheduler.wait("registered")
        scheduler.launch("long", "touch here; exec sleep 1000")
        scheduler.wait("TASK_RUNNING", "long")
        told = "until [ -e here ]; do sleep 0.1; done; echo some; echo wrong >&2; exit 4"
        ended = mesos.run("task", "exec", "long", "sh", "-c", told)
        assert (ended.returncode, ended.stdout, ended.stderr) == (4, "some\n", "wrong\n")
        ended = mesos.run(
            "task", "exec", "--interactive", "long", "tr", "a-z", "A-Z", stdin="abc\n"
        )
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "ABC\n", "")
        ended = mesos.run("task", "exec", "nobody", "true")
        assert ended.returncode == 1
        assert "Unable to find running task 'nobody'" in ended.stderr
        scheduler.tell({"stop": None})
        assert scheduler.process.wait(60) == 0
