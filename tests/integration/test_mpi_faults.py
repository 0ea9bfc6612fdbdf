"""MPI jobs while daemons of the cluster end, and where there is no room."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.kit.cluster import Cluster
from tests.kit.mpi.jobs import MPICH, Parts, end, run
from tests.kit.mpi.programs import build

pytestmark = pytest.mark.needs("mpiexec.hydra", "mpicc.mpich")


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> str:
    return str(build(tmp_path_factory.mktemp("programs"), MPICH.compiler))


@pytest.fixture
def cluster(tmp_path) -> Iterator[Cluster]:
    (tmp_path / "cluster").mkdir()
    with Cluster(tmp_path / "cluster", first_offer_timeout="2s") as cluster:
        cluster.start_agents("a", "b", resources="cpus:4;mem:2048")
        yield cluster


def test_a_job_outlives_a_change_of_the_master_and_ends_with_an_agent(cluster, program, tmp_path):
    with closing(Parts(cluster, MPICH, program, tmp_path)) as parts:
        cluster.restart_master()
        cluster.wait_until(lambda: cluster.operator.frameworks().frameworks)
        with pytest.raises(subprocess.TimeoutExpired):
            parts.wrapper.wait(7)
        cluster.wait_until(
            lambda: [a.state for a in cluster.operator.agents()] == ["connected"] * 2
        )
        larger = cluster.cli("mpi", "run", "-n", "9", program)
        assert larger.code == 5
        assert "needs 9 x (cpus:1;mem:128); 2 agents have room for 8 when empty" in larger.err
        cluster.agents[1].kill()
        code, err = parts.end()
        assert (code, "agent b" in err) == (4, True), err


# MPI_GANGS=50 for the whole of it.
ROUNDS = int(os.environ.get("MPI_GANGS", "2"))


def test_of_two_jobs_on_room_for_one_each_runs_in_turn(cluster, program):
    """One round more or less, each of them guaranteed half of what it needs while both wait."""
    for _ in range(ROUNDS):
        for ended in end(*(run(cluster, MPICH, "-n", "8", program) for _ in range(2))):
            assert ended.code == 0, ended.err
            assert len(ended.out.splitlines()) == 8


def test_offers_that_do_not_last_until_the_launcher_has_answered_are_gathered_again(
    cluster, program, tmp_path
):
    """As on a machine that is starved.  The launcher is not asked again for the same agents."""
    slow = tmp_path / "bin" / MPICH.launcher
    slow.parent.mkdir()
    asked = tmp_path / "asked"
    real = shutil.which(MPICH.launcher)
    slow.write_text(f'#!/bin/sh\necho again >>{asked}\nsleep 3\nexec {real} "$@"\n')
    slow.chmod(0o755)
    path = {"PATH": f"{slow.parent}:{os.environ['PATH']}"}
    ended = cluster.cli("mpi", "run", "-n", "8", program, env=path)
    assert (ended.code, len(ended.out.splitlines())) == (0, 8), ended.err
    assert asked.read_text() == "again\n"
