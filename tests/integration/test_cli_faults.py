"""Commands while daemons die and come back."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.cluster import Cluster
from tests.kit.local import LIMIT_S, MESOS_PY, environment
from tests.kit.waiting import gone, until


@pytest.fixture
def directory(tmp_path) -> Path:
    made: Path = tmp_path / "cluster"
    made.mkdir()
    return made


@pytest.fixture
def cluster(directory) -> Iterator[Cluster]:
    with Cluster(directory) as cluster:
        yield cluster


@pytest.fixture
def hasty(directory) -> Iterator[Cluster]:
    """One that soon gives up an agent whose link has ended."""
    with Cluster(directory, agent_reregister_timeout="1s") as cluster:
        yield cluster


def start(cluster: Cluster, *args: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*MESOS_PY, *args],
        cwd=cluster.directory,
        env=environment(cluster.address),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def first_line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    return process.stdout.readline()


def holding(directory: Path) -> str:
    return f"while ! [ -e {directory}/go ]; do sleep 0.05; done"


def test_a_run_outlives_its_master_and_loses_no_output(cluster, tmp_path):
    cluster.start_agent()
    run = start(
        cluster, "run", "--name", "long", f"echo one; {holding(tmp_path)}; echo two; exit 5"
    )
    follow = None
    try:
        assert first_line(run) == b"one\n"
        follow = start(cluster, "logs", "-f", "long")
        assert first_line(follow) == b"one\n"
        cluster.restart_master()
        (tmp_path / "go").touch()
        out, err = run.communicate(timeout=LIMIT_S)
        assert (run.returncode, out) == (5, b"two\n"), err
        assert b"lost the master" in err
        out, err = follow.communicate(timeout=LIMIT_S)
        assert (follow.returncode, out, err) == (0, b"two\n", b"")
    finally:
        for process in (run, follow):
            if process is not None and process.poll() is None:
                process.kill()
                process.communicate()


def test_a_task_that_is_lost_with_its_agent_has_code_4(hasty):
    agent = hasty.start_agent()
    run = start(hasty, "run", "echo one; sleep 600")
    assert first_line(run) == b"one\n"
    agent.kill()
    _, err = run.communicate(timeout=LIMIT_S)
    assert run.returncode == 4
    assert b"LOST" in err
    until(lambda: hasty.strays() == [])


def test_a_task_that_is_lost_can_be_run_again_elsewhere(hasty, tmp_path):
    first = hasty.start_agent("first")
    command = f"echo attempt $MESOS_PY_ATTEMPT; {holding(tmp_path)}"
    run = start(hasty, "run", "--retry", "1", command)
    assert first_line(run) == b"attempt 0\n"
    hasty.start_agent("second")
    first.kill()
    assert first_line(run) == b"attempt 1\n"
    (tmp_path / "go").touch()
    _, err = run.communicate(timeout=LIMIT_S)
    assert run.returncode == 0
    assert b"; trying again" in err
    until(lambda: hasty.strays() == [])


def test_a_log_whose_agent_is_away_says_so(cluster):
    agent = cluster.start_agent("away")
    cluster.cli("run", "--name", "said", "echo x")
    agent.kill()
    cluster.wait_until(lambda: cluster.agent_row("away").state != "connected")
    ended = cluster.cli("logs", "said")
    assert ended.code == 1
    assert ended.err.startswith("mesos-py: error: ")
    assert "away" in ended.err


def test_a_run_that_is_interrupted_while_the_master_is_away_still_ends(cluster, tmp_path):
    cluster.start_agent()
    run = start(cluster, "run", f"echo $$ > {tmp_path}/pid; echo one; sleep 600")
    assert first_line(run) == b"one\n"
    cluster.master.kill()
    run.terminate()
    cluster.master.start()
    run.communicate(timeout=LIMIT_S)
    assert run.returncode == 143
    until(lambda: gone(int((tmp_path / "pid").read_text())))


def test_the_first_address_that_answers_is_enough(cluster):
    cluster.start_agent()
    ended = cluster.cli("run", "--master", f"127.0.0.1:1,{cluster.address}", "echo x")
    assert (ended.code, ended.out, ended.err) == (0, b"x\n", "")
