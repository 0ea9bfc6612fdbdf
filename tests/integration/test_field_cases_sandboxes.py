"""Field cases of sandboxes: logs of whatever became of a task, and what is removed when.

The client reaches the master only.
"""

from __future__ import annotations

import getpass
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mesos_py.errors import NotFound
from mesos_py.states import TASK_FAILED, TASK_FINISHED, TASK_RUNNING
from tests.kit.cluster import Cluster
from tests.kit.framework import Framework
from tests.kit.local import MESOS_PY, environment
from tests.kit.recorder import PATIENCE_S
from tests.kit.waiting import until

GC = {"gc_delay": "0s", "disk_watch_interval": "50ms"}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path) as made:
        yield made


def log(cluster: Cluster, framework: Framework, task_id: str, **options) -> bytes:
    parts = cluster.operator.read_log(framework.id, task_id, **options)
    return b"".join(part.data for part in parts)


def sandbox(cluster: Cluster, framework: Framework, task_id: str) -> Path | None:
    """Its newest sandbox, wherever it is."""
    pattern = f"*/agents/*/frameworks/{framework.id}/executors/{task_id}/runs/*"
    while True:
        try:
            found = list(cluster.directory.glob(pattern))
        except FileNotFoundError:
            continue  # a directory on the way went while it was looked into
        return next((each for each in found if not each.is_symlink()), None)


def until_removed(cluster: Cluster, framework: Framework, task_id: str) -> None:
    until(lambda: sandbox(cluster, framework, task_id) is None, PATIENCE_S)


def test_the_logs_of_a_task_whose_fetch_failed_are_there_and_say_so(cluster):
    cluster.start_agent()
    with Framework(cluster.address) as framework:
        task_id = framework.launch("true", uris=["file:///no/such/file"])
        failed = framework.status(task_id, TASK_FAILED)
        assert failed.message == "cannot fetch file:///no/such/file: is not there"
        text = f"fetcher: {failed.message}\n".encode()
        for follow in (False, True):
            assert log(cluster, framework, task_id, follow=follow) == b""
            assert log(cluster, framework, task_id, path="stderr", follow=follow) == text


def test_a_sandbox_goes_after_its_task_and_its_readers_are_told_when(cluster, tmp_path):
    agent = cluster.start_agent(**GC)
    with Framework(cluster.address) as framework:
        running = framework.run("echo alive; exec sleep 600").task_id.value
        ended = framework.launch("echo x")
        framework.status(ended, TASK_FINISHED)
        failed = framework.launch("true", uris=["file:///no/such/file"])
        framework.status(failed, TASK_FAILED)
        for task_id in (ended, failed):
            until_removed(cluster, framework, task_id)
            for path in ("stdout", "stderr"):
                with pytest.raises(NotFound, match=r"its sandbox was removed at 20\d\d-"):
                    log(cluster, framework, task_id, path=path)
            with pytest.raises(NotFound, match="its sandbox was removed at"):
                log(cluster, framework, task_id, follow=True)
        # However old and however full: what runs stays.
        assert log(cluster, framework, running) == b"alive\n"
        framework.driver.kill_task(running)
        until_removed(cluster, framework, running)
    assert "Traceback" not in agent.log


def test_what_an_earlier_run_of_the_agent_left_is_found_and_removed(cluster):
    agent = cluster.start_agent()
    with Framework(cluster.address) as framework:
        task_id = framework.launch("echo x")
        framework.status(task_id, TASK_FINISHED)
        cluster.wait_for_history(framework.id)
        assert agent.stop() == 0
        left = sandbox(cluster, framework, task_id)
        assert left is not None
        again = cluster.agent("a", **GC)
        again.start()
        until_removed(cluster, framework, task_id)
        assert framework.run("exec sleep 600").state == TASK_RUNNING


def test_run_takes_what_it_needs_along(cluster, tmp_path):
    cluster.start_agent()
    tool = tmp_path / "tool.sh"
    tool.write_text("#!/bin/sh\necho ran with $1\n")
    argv = [*MESOS_PY, "run", "--master", cluster.address, "--user", getpass.getuser()]
    argv += ["--uri", f"{tool} executable as=bin/tool", "--", "bin/tool", "arguments"]
    done = subprocess.run(argv, env=environment(), capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "ran with arguments\n")
    assert f"fetcher: fetched file://{tool} (27 bytes in " in done.stderr
