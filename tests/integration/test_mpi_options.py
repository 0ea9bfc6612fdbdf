"""Options of `mesos-py mpi run`, with real MPICH on real daemons."""

import re
from collections.abc import Iterator

import pytest

from tests.kit.cluster import Cluster
from tests.kit.local import Ended
from tests.kit.mpi.jobs import MPICH, end, run
from tests.kit.mpi.programs import build
from tests.kit.wheels import ROOT

pytestmark = pytest.mark.needs("mpiexec.hydra", "mpicc.mpich", "bash")


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> str:
    return str(build(tmp_path_factory.mktemp("programs"), MPICH.compiler))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("mpi"), first_offer_timeout="2s") as cluster:
        cluster.start_agents("a", "b", resources="cpus:4;mem:2048")
        for name, said in {"limited": "--limit", "promised": "--guarantee"}.items():
            assert cluster.cli("roles", "set", name, said, "cpus:1").code == 0
        yield cluster


def job(cluster: Cluster, *args: str) -> Ended:
    return cluster.cli("mpi", "run", *args)


def test_a_program_and_its_files_are_sent_along(cluster, program, tmp_path):
    """They are in the sandbox of each agent, where no more than --ppn ranks are."""
    (tmp_path / "input of it.tar").write_text("as it is\n")
    files = ("--file", program, "--file", str(tmp_path / "input of it.tar"))
    script = '[ -x ./parts ] && pwd && cat "input of it.tar"'
    ended = job(cluster, "-n", "4", "--ppn", "2", *files, "--no-prefix", "sh", "-c", script)
    assert ended.code == 0, ended.err
    lines = ended.out.decode().splitlines()
    assert lines.count("as it is") == 4
    sandboxes = [line for line in lines if line != "as it is"]
    assert sorted(map(sandboxes.count, set(sandboxes))) == [2, 2]


def test_the_example_finds_pi(cluster, tmp_path):
    program = build(tmp_path, MPICH.compiler, ROOT / "examples/mpi_pi.c")
    ended = job(cluster, "-n", "3", "--file", str(program), "./mpi_pi", "3000")
    assert ended.code == 0, ended.err
    assert b"[0] pi is about 3.141593" in ended.out
    assert ended.out.count(b": 1000 strips") == 3


def test_one_per_agent_is_one_per_agent(cluster):
    ended = job(cluster, "-n", "3", "--placement", "one-per-agent", "true")
    assert (ended.code, "at most 1 on an agent; 2 agents have room for 2" in ended.err) == (5, True)


def test_a_job_that_does_not_get_done_is_ended(cluster, program):
    """For its time is over; or for a rank, with a descriptor of two digits, that left early."""
    late, early = end(
        run(cluster, MPICH, "-n", "2", "--timeout", "5s", program, "*:mid:s"),
        run(cluster, MPICH, "-n", "4", "--start-timeout", "10s", program, "3:pre:0"),
    )
    assert (late.code, "not done within 5 s" in late.err) == (124, True), late.err
    assert early.code == 1, early.err
    assert re.search(r"rank 3 on [ab] has ended \(exit code 0\) without", early.err), early.err


def test_a_job_is_within_the_limit_and_the_guarantee_of_its_role(cluster):
    ended = job(cluster, "-n", "2", "--role", "limited", "true")
    assert (ended.code, "role 'limited' is limited to 1" in ended.err) == (5, True), ended.err
    ended = job(cluster, "-n", "2", "--role", "promised", "true")
    assert (ended.code, "role 'promised' is guaranteed" in ended.err) == (5, True), ended.err
    ended = job(cluster, "-n", "2", "--role", "promised", "--beyond-guarantee", "true")
    assert ended.code == 0, ended.err
