"""MPI jobs of tests: with which MPI, how they are started, and of what processes they consist."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil

from tests.kit.cluster import Cluster
from tests.kit.local import LIMIT_S, MESOS_PY, Ended, environment
from tests.kit.waiting import gone, until


@dataclass(frozen=True)
class Mpi:
    """An implementation that is installed: what a program is built with, and what its parts
    are called."""

    name: str
    compiler: str
    launcher: str
    proxy: str
    # Of a rank, its number.
    rank: str


MPICH: Final = Mpi("mpich", "mpicc.mpich", "mpiexec.hydra", "hydra_pmi_proxy", "PMI_RANK")
OPENMPI: Final = Mpi("openmpi", "mpicc.openmpi", "mpirun.openmpi", "orted", "OMPI_COMM_WORLD_RANK")


# Debian's orted now and then crashes by itself (SIGSEGV, or as it sets itself up), about one in
# thirty of them: a test cannot tell that from a fault of ours.  So Open MPI jobs are begun once
# more for it, and those that are to die are of MPICH, unless MPI_OPENMPI=all.
CRASHED: Final = ("exited with status 139", "exited with status 213")
DEADLY: Final = [MPICH, OPENMPI] if os.environ.get("MPI_OPENMPI") == "all" else [MPICH]


def run(cluster: Cluster, mpi: Mpi, *args: str, **options: Any) -> subprocess.Popen[bytes]:
    """A job, started."""
    return subprocess.Popen(
        [*MESOS_PY, "mpi", "run", "--backend", mpi.name, *args],
        cwd=cluster.directory.parent,
        env=environment(cluster.address),
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
    )


def end(*jobs: subprocess.Popen[bytes]) -> list[Ended]:
    """How they end."""
    with ended_at_last(*jobs):
        said = [job.communicate(timeout=LIMIT_S) for job in jobs]
    return [Ended(job.returncode, *each) for job, each in zip(jobs, said, strict=True)]


def end_of(start: Callable[[], Ended]) -> Ended:
    """How a job ends whose proxies do not crash by themselves."""
    ended = start()
    for _ in range(3):
        if not any(each in ended.err for each in CRASHED):
            break
        ended = start()
    return ended


@contextmanager
def ended_at_last(*jobs: subprocess.Popen[bytes]) -> Iterator[None]:
    """Those that have not ended after the block would be in the way of all tests that follow."""
    try:
        yield
    finally:
        for job in jobs:
            if job.poll() is None:
                job.kill()
                job.communicate()


def parent_of(process: psutil.Process) -> psutil.Process:
    parent = process.parent()
    assert parent is not None
    return parent


class Parts:
    """A job of a rank on each of some agents, in the middle of its work; all its processes."""

    def __init__(
        self,
        cluster: Cluster,
        mpi: Mpi,
        program: str,
        directory: Path,
        hosts: int = 2,
        *,
        options: Sequence[str] = (),
    ) -> None:
        directory.mkdir(exist_ok=True)
        directory.chmod(0o777)
        placed = ("-n", str(hosts), "--placement", "one-per-agent", *options)
        self.wrapper = run(cluster, mpi, *placed, program, f"*:mid:{directory}")
        try:
            self._find(mpi, [directory / str(rank) for rank in range(hosts)])
        except BaseException as error:
            self.wrapper.kill()
            _, err = self.wrapper.communicate()
            raise AssertionError(f"not in the middle of its work: {err.decode()}") from error

    def _find(self, mpi: Mpi, files: Sequence[Path]) -> None:
        ended = self.wrapper.poll
        until(lambda: all(file.exists() for file in files) or ended() is not None, LIMIT_S)
        assert ended() is None
        self.ranks = [psutil.Process(int(file.read_text())) for file in files]
        self.keepers = [parent_of(rank) for rank in self.ranks]
        self.proxies = [parent_of(keeper) for keeper in self.keepers]
        (self.launcher,) = psutil.Process(self.wrapper.pid).children()
        names = {each.name() for each in self.proxies} | {self.launcher.name()}
        assert names == {mpi.proxy, mpi.launcher}
        self.pids = [each.pid for each in [*self.ranks, *self.keepers, *self.proxies]]
        self.pids.append(self.launcher.pid)

    def close(self) -> None:
        """One that has not ended would be in the way of all tests that follow."""
        self.wrapper.kill()
        self.wrapper.communicate()

    def end(self) -> tuple[int, str]:
        """Its exit code and stderr, once nothing of it is left."""
        _, err = self.wrapper.communicate(timeout=LIMIT_S)
        until(lambda: all(map(gone, self.pids)))
        return self.wrapper.returncode, err.decode()
