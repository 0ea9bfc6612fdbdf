"""`mesos-py mpi run` with real MPICH and Open MPI on real daemons."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.kit.cluster import Cluster
from tests.kit.mpi.jobs import (
    DEADLY,
    MPICH,
    OPENMPI,
    Mpi,
    Parts,
    end,
    end_of,
    ended_at_last,
    run,
)
from tests.kit.mpi.programs import build
from tests.kit.waiting import until

pytestmark = pytest.mark.needs(
    "mpiexec.hydra", "mpicc.mpich", "mpirun.openmpi", "orted", "mpicc.openmpi"
)

# Enough ranks at a time for jobs beside each other.
AGENT = "cpus:4;mem:2048"
SMALL = ("--cpus", "0.2", "--mem", "32")
APART = ("--placement", "one-per-agent")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("mpi"), first_offer_timeout="2s") as cluster:
        cluster.start_agents("a", "b", resources=AGENT)
        # Opened now, its connection is nothing that a test leaves behind.
        cluster.operator.agents()
        yield cluster


@pytest.fixture(scope="module", params=[MPICH, OPENMPI], ids=lambda mpi: mpi.name)
def mpi(request) -> Mpi:
    made: Mpi = request.param
    return made


@pytest.fixture(scope="module")
def program(mpi, tmp_path_factory) -> str:
    return str(build(tmp_path_factory.mktemp("programs"), mpi.compiler))


@pytest.fixture(autouse=True)
def nothing_left(cluster) -> Iterator[None]:
    """Whatever a test did: no task, nothing held, no process, no shared memory."""
    before = set(Path("/dev/shm").iterdir())
    yield
    cluster.wait_until(lambda: not cluster.operator.frameworks().frameworks)
    cluster.wait_until(lambda: not cluster.used())
    until(lambda: not cluster.strays())
    until(lambda: set(Path("/dev/shm").iterdir()) <= before)


@pytest.fixture
def parts(cluster, mpi, program, tmp_path) -> Iterator[Parts]:
    with closing(Parts(cluster, mpi, program, tmp_path)) as parts:
        yield parts


def ring(size: int) -> list[str]:
    total = sum(range(size))
    return [f"[{rank}] rank {rank} of {size}: {total}" for rank in range(size)]


@pytest.mark.parametrize("size", [1, 7])
def test_a_ring_goes_round_at_several_sizes(cluster, mpi, program, size):
    options = ("-n", str(size), "--placement", "spread")
    ended = end_of(lambda: end(run(cluster, mpi, *options, program))[0])
    assert (ended.code, sorted(ended.out.decode().splitlines())) == (0, ring(size)), ended.err


# --- output and input -------------------------------------------------------------------------


def test_stdin_goes_to_rank_0_and_stdout_and_stderr_are_kept_apart(cluster, mpi):
    script = f"cat; echo out ${mpi.rank}; echo err ${mpi.rank} >&2"
    argv = ("mpi", "run", "--backend", mpi.name, "-n", "2", "sh", "-c", script)
    ended = end_of(lambda: cluster.cli(*argv, input=b"one\ntwo\n"))
    assert ended.code == 0, ended.err
    assert sorted(ended.out.decode().splitlines()) == [
        "[0] one",
        "[0] out 0",
        "[0] two",
        "[1] out 1",
    ]
    assert sorted(ended.err.splitlines()) == ["[0] err 0", "[1] err 1"]


def test_without_prefixes_bytes_are_the_programs_own(cluster, mpi):
    script = r"""printf 'a\n%s\n%s\377' "$HERE" "${MINE-none}"; [ "$PWD" = "$MESOS_SANDBOX" ]"""
    options = ("-n", "1", "--no-prefix", "-e", "HERE=there")
    argv = ("mpi", "run", "--backend", mpi.name, *options, "sh", "-c", script)
    ended = end_of(lambda: cluster.cli(*argv, env={"MINE": "mine"}))
    assert (ended.code, ended.out) == (0, b"a\nthere\nnone\xff"), ended.err


# --- ranks that end ---------------------------------------------------------------------------

ENDS = {
    "1:pre:0": (1, "rank 1 on b has ended (exit code 0) without MPI_Finalize"),
    "1:pre:1": (1, "rank 1 on b has ended with exit code 1"),
    "1:pre:k": (128 + signal.SIGKILL, "rank 1 on b was ended by SIGKILL"),
    "1:mid:3": (3, "rank 1 on b has ended with exit code 3"),
    "1:mid:a": (128 + signal.SIGABRT, "rank 1 on b was ended by SIGABRT"),
    "1:post:5": (5, "rank 1 on b has ended with exit code 5"),
}


@pytest.mark.parametrize("mpi", DEADLY, indirect=True, ids=lambda mpi: mpi.name)
def test_a_rank_that_ends_ends_the_job_and_is_named(cluster, mpi, program, tmp_path):
    """Jobs beside each other, from the same host; one of them may go on, long after one of its
    ranks has left MPI."""
    tmp_path.chmod(0o777)

    def start(how: str) -> subprocess.Popen[bytes]:
        start_timeout = ("--start-timeout", "10s") if how == "1:pre:0" else ()
        return run(cluster, mpi, "-n", "2", *SMALL, *APART, *start_timeout, program, how)

    jobs = {how: start(how) for how in [f"0:post:{tmp_path}", *ENDS]}
    lasting, *others = jobs.values()
    with ended_at_last(lasting):
        ended = dict(zip(ENDS, end(*others), strict=True))
        for how, (code, words) in ENDS.items():
            assert (ended[how].code, words in ended[how].err) == (code, True), (how, ended[how])
        until((tmp_path / "0").exists)
        assert lasting.poll() is None
        os.kill(int((tmp_path / "0").read_text()), signal.SIGTERM)
        (last,) = end(lasting)
    assert last.code == 128 + signal.SIGTERM, last


def test_a_program_that_is_not_there_is_told(cluster, mpi):
    ended = end_of(lambda: end(run(cluster, mpi, "-n", "2", "/no/such/program"))[0])
    assert ended.code == 127
    assert "could not be started: no such program there" in ended.err


# --- each part, killed in turn ----------------------------------------------------------------


@pytest.mark.parametrize("mpi", DEADLY, indirect=True, ids=lambda mpi: mpi.name)
def test_the_death_of_a_rank_ends_all(parts):
    parts.ranks[1].kill()
    code, err = parts.end()
    assert (code, "rank 1 on b was ended by SIGKILL" in err) == (137, True), err


@pytest.mark.parametrize("mpi", DEADLY, indirect=True, ids=lambda mpi: mpi.name)
def test_the_death_of_a_ranks_keeper_ends_all(parts, mpi):
    parts.keepers[1].kill()
    code, err = parts.end()
    told = {4: "b: what a rank runs under was killed"}
    if mpi is OPENMPI:
        # Its launcher tells too, of the keeper as if it were the rank.
        told[137] = "rank 1 on b was ended by SIGKILL"
    assert told.get(code, "no such code") in err, err


@pytest.mark.parametrize("mpi", DEADLY, indirect=True, ids=lambda mpi: mpi.name)
def test_the_death_of_a_proxy_ends_all(parts):
    parts.proxies[1].kill()
    code, err = parts.end()
    assert (code, "the proxy on b" in err) == (4, True), err


@pytest.mark.parametrize("mpi", DEADLY, indirect=True, ids=lambda mpi: mpi.name)
def test_the_death_of_the_launcher_ends_all(parts):
    parts.launcher.kill()
    code, err = parts.end()
    assert (code, "the launcher was ended by SIGKILL" in err) == (137, True), err


@pytest.mark.parametrize("mpi", DEADLY, indirect=True, ids=lambda mpi: mpi.name)
def test_the_death_of_the_wrapper_ends_all(parts):
    parts.wrapper.kill()
    assert parts.end()[0] == -signal.SIGKILL


@pytest.mark.parametrize("mpi", DEADLY, indirect=True, ids=lambda mpi: mpi.name)
def test_an_interrupt_ends_all(parts):
    parts.wrapper.send_signal(signal.SIGINT)
    code, err = parts.end()
    assert (code, "interrupted by SIGINT" in err) == (130, True), err


@pytest.mark.parametrize("mpi", [MPICH], indirect=True, ids=["mpich"])
def test_a_hangup_ends_all(parts):
    parts.wrapper.send_signal(signal.SIGHUP)
    code, err = parts.end()
    assert (code, "interrupted by SIGHUP" in err) == (129, True), err
