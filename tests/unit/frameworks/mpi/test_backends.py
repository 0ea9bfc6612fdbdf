"""What launchers say, and how they are told what to do."""

import pytest

from frameworks.mpi.backends.base import Host, Launch, Proxy
from frameworks.mpi.backends.mpich import Mpich
from frameworks.mpi.backends.openmpi import OpenMpi

LAUNCH = Launch(
    [Host("192.0.2.1", 2), Host("192.0.2.2", 1)],
    "192.0.2.9",
    ["./ring"],
    b"WORD",
    ["python", "agent.py", "/tmp/ask"],
)


def test_launchers_are_told_hosts_in_order_and_the_address_that_all_reach(monkeypatch):
    monkeypatch.setattr(Mpich, "program", lambda self: "mpiexec")
    monkeypatch.setattr(OpenMpi, "program", lambda self: "mpirun")
    argv = " ".join(Mpich().argv(LAUNCH))
    assert "-localhost 192.0.2.9 -hosts 192.0.2.1:2,192.0.2.2:1 " in argv
    assert argv.endswith("-n 3 ./ring")
    argv = " ".join(OpenMpi().argv(LAUNCH))
    assert "oob_tcp_if_include 192.0.2.9/32" in argv
    assert argv.endswith("--host mesos-py-0:2,mesos-py-1:1 -np 3 ./ring")


def state(text: str) -> bytes:
    return b"[host:12] [[7,0],0] ACTIVATE " + text.encode() + b" AT ../odls.c:1746\n"


def test_mpich_prints_what_is_to_be_run_where():
    line = b"HYDRA_LAUNCH: /usr/bin/hydra_pmi_proxy --control-port h:1 --proxy-id 1 \n"
    command = "/usr/bin/hydra_pmi_proxy --control-port h:1 --proxy-id 1"
    assert Mpich().printed(line) == Proxy(1, command)
    assert Mpich().printed(b"HYDRA_LAUNCH_END\n") is None


@pytest.mark.parametrize(
    ("line", "entered", "failed"),
    [
        (state("PROC [[7,1],3] STATE SYNC REGISTERED"), 3, None),
        (state("PROC [[7,1],3] STATE ABORTED BY SIGNAL"), None, 3),
        (state("PROC [[7,1],3] STATE EXITED WITH NON-ZERO STATUS"), None, 3),
        (state("PROC [[7,1],3] STATE CALLED ABORT"), None, 3),
        # Its own end of it, not what it has seen.
        (state("PROC [[7,1],3] STATE KILLED BY INTERNAL COMMAND"), None, None),
        # A proxy's, which is no rank.
        (state("PROC [[7,0],3] STATE ABORTED BY SIGNAL"), None, None),
        (state("JOB [7,1] STATE SYNC REGISTERED"), None, None),
    ],
)
def test_open_mpi_tells_of_ranks(line, entered, failed):
    backend = OpenMpi()
    assert backend.is_state(line)
    assert (backend.entered(line), backend.failed(line)) == (entered, failed)


def test_what_a_rank_says_is_not_the_launchers_word():
    line = b"[1,3]<stderr>:" + state("PROC [[7,1],3] STATE ABORTED BY SIGNAL")
    backend = OpenMpi()
    assert not backend.is_state(line)
    assert (backend.entered(line), backend.failed(line)) == (None, None)


def test_open_mpi_asks_by_its_agent_for_hosts_that_no_resolver_knows():
    words = ["orted", "-mca", "ess", "env", "-mca", "oob_tcp_if_include", '"192.0.2.9/32"']
    asked = OpenMpi().asked("mesos-py-1", words)
    assert asked == Proxy(1, 'TMPDIR="$PWD" orted -mca ess env')
    assert OpenMpi().asked("elsewhere", words) is None
