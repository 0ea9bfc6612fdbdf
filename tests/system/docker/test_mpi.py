"""MPI jobs whose ranks run in docker containers."""

import pytest

from agent.isolation.network import namespaces
from tests.kit.cluster import Cluster
from tests.kit.local import Ended
from tests.kit.mpi.image import IMAGE, PROGRAM, import_mpich
from tests.kit.mpi.jobs import MPICH
from tests.kit.mpi.programs import build

pytestmark = pytest.mark.needs("mpiexec.hydra", "mpicc.mpich", "ldd")


def test_ranks_run_in_containers_of_an_image(dockerd, tmp_path):
    """On the network of their hosts: here, that of the dockerd.  All that they say is heard, and
    how one of them ends."""
    import_mpich(dockerd.client, build(tmp_path, MPICH.compiler))

    def play() -> Ended:
        with Cluster(tmp_path, first_offer_timeout="2s") as cluster:
            pairs = zip(dockerd.flags[::2], dockerd.flags[1::2], strict=True)
            flags = {name.removeprefix("--").replace("-", "_"): value for name, value in pairs}
            cluster.start_agents("a", "b", resources="cpus:2;mem:512", **flags)
            job = ("-n", "2", "--placement", "one-per-agent", "--image", IMAGE)
            return cluster.cli("mpi", "run", *job, PROGRAM, "1:post:5")

    with dockerd.network() as network:
        ended = namespaces.inside(network, play)
    assert (ended.code, "rank 1 on b has ended with exit code 5" in ended.err) == (5, True)
    assert sorted(ended.out.splitlines()) == [b"[0] rank 0 of 2: 1", b"[1] rank 1 of 2: 1"]
