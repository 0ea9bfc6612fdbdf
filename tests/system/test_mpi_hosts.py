"""MPI jobs over hosts with several interfaces, one of which is cut off."""

import ipaddress
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import psutil
import pytest

from tests.kit.local import LIMIT_S
from tests.kit.mpi.hosts import EVERYWHERE, MpiHosts, mpi_hosts
from tests.kit.mpi.jobs import DEADLY, Parts
from tests.kit.mpi.programs import build
from tests.kit.waiting import until

pytestmark = pytest.mark.needs(
    *("root", "nft", "mpiexec.hydra", "mpicc.mpich", "mpirun.openmpi", "orted", "mpicc.openmpi")
)
# From the cut until the job has ended: 10 s where nothing else runs, while TCP alone would take
# a quarter of an hour.
WITHIN_S: Final = 60.0
# UCX, MPICH's transport, would see that they are one machine in truth.
BY_NETWORK: Final = ("-e", "UCX_TLS=tcp,self")
_LISTENING: Final = "0A"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[MpiHosts]:
    directory = tmp_path_factory.mktemp("hosts")
    with mpi_hosts(directory, "a", "b", "c", resources="cpus:2;mem:512") as made:
        yield made


def addresses(process: psutil.Process) -> tuple[set[str], set[str]]:
    """Where it listens for others, and whom it is connected with, by TCP over IPv4."""
    proc = Path(f"/proc/{process.pid}")
    own = {each.readlink().name for each in proc.joinpath("fd").iterdir() if each.is_symlink()}
    listening, peers = set(), set()
    for line in proc.joinpath("net/tcp").read_text().splitlines()[1:]:
        _, here, there, state, *_ = line.split()
        if f"socket:[{line.split()[9]}]" not in own:
            continue
        if state == _LISTENING:
            listening.add(_dotted(here))
        else:
            peers.add(_dotted(there))
    return listening, peers


def _dotted(address: str) -> str:
    """An address as /proc has it: the bytes from the last to the first, and a port."""
    return str(ipaddress.IPv4Address(bytes.fromhex(address.partition(":")[0])[::-1]))


@pytest.mark.parametrize("mpi", DEADLY, ids=lambda mpi: mpi.name)
def test_hosts_find_each_other_and_one_that_is_cut_off_ends_the_job(cluster, mpi, tmp_path):
    program = str(build(tmp_path, mpi.compiler))
    hosts = {name: host.address for name, host in cluster.network.hosts.items()}
    files = tmp_path / "ranks"
    parts = cluster.head.inside(lambda: Parts(cluster, mpi, program, files, 3, options=BY_NETWORK))
    with closing(parts):
        own = {hosts[name] for name in "abc"}
        for rank, proxy in zip(parts.ranks, parts.proxies, strict=True):
            assert hosts["head"] in addresses(proxy)[1]
            listening, peers = addresses(rank)
            assert peers & own, (listening, peers)
            for each in (rank, proxy):
                assert EVERYWHERE not in set.union(*addresses(each))
        cut = cluster.cut("b")
        cluster.wires.add(cut)
        since_s = time.monotonic()
        try:
            parts.wrapper.wait(LIMIT_S)
            took_s = time.monotonic() - since_s
        finally:
            cluster.wires.remove(cut)
        code, err = parts.end()
        assert (code, "agent b" in err) == (4, True), err
        assert took_s < WITHIN_S, err
    # Back again, it ends what it had.
    until(lambda: cluster.idle() == ["a", "b", "c"], LIMIT_S)
    until(lambda: not cluster.strays())
