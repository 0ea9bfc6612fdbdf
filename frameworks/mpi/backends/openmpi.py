"""Open MPI 4, by its launch agent: mpirun runs it in place of ssh, for each host.

Hosts have names that mean nothing to a resolver: what mpirun takes for this machine it
would not start through the agent.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar, Final

from frameworks.mpi.backends.base import Backend, Launch, Proxy
from frameworks.mpi.core.streams import Marks

_HOST: Final = "mesos-py-"
# Its own interface is nobody else's.
_OWN_INTERFACE: Final = re.compile(r'--?mca oob_tcp_if_include (?:"[^"]*"|\S+)')
_STATE: Final = re.compile(rb"\[[^\]]*\] \[\[\d+,\d+\],\d+\] ACTIVATE .*\n?")
_FAILED: Final = re.compile(
    rb"ACTIVATE PROC \[\[\d+,1\],(\d+)\] STATE "
    rb"(?:ABORTED BY SIGNAL|EXITED WITH NON-ZERO STATUS|CALLED ABORT)"
)
_ENTERED: Final = re.compile(rb"ACTIVATE PROC \[\[\d+,1\],(\d+)\] STATE SYNC REGISTERED")


class OpenMpi(Backend):
    """Its mpirun, with orted as proxies."""

    name: ClassVar[str] = "openmpi"
    programs: ClassVar[Sequence[str]] = ("mpirun.openmpi", "mpirun")
    package: ClassVar[str] = "openmpi-bin"
    last_printed: ClassVar[bytes | None] = None
    orphaned: ClassVar[Collection[int]] = (1,)
    # OPAL_ERR_SILENT: what it could not set up it has written to its sandbox.
    unbegun: ClassVar[Collection[int]] = (213,)
    tells_who_entered: ClassVar[bool] = True

    def argv(self, launch: Launch) -> list[str]:
        hosts = ",".join(f"{_HOST}{n}:{host.slots}" for n, host in enumerate(launch.hosts))
        return [
            self.program(),
            *("--mca", "plm", "rsh", "--mca", "plm_rsh_agent", " ".join(launch.agent)),
            *("--mca", "plm_rsh_no_tree_spawn", "1", "--leave-session-attached"),
            *("--mca", "oob_tcp_if_include", f"{launch.address}/32"),
            # That a rank has come to MPI_Init is said nowhere else.
            *("--mca", "state_base_verbose", "1"),
            # Cores are shared with others, of whom mpirun knows nothing.
            *("--bind-to", "none", "--map-by", "slot", "--wdir", "/", "--tag-output"),
            *("--host", hosts, "-np", str(launch.ranks), *launch.rank),
        ]

    def environment(self) -> Mapping[str, str]:
        return {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

    def marks(self, launch: Launch, stream: str) -> Marks:
        return Marks(b"[1,", f"]<{stream}>:".encode())

    def asked(self, host: str, words: Sequence[str]) -> Proxy | None:
        number = host.removeprefix(_HOST)
        if not number.isdigit():
            return None
        command = _OWN_INTERFACE.sub("", " ".join(words))
        # What it keeps in files goes with the sandbox, however it ends.
        return Proxy(int(number), f'TMPDIR="$PWD" {command.strip()}')

    def entered(self, line: bytes) -> int | None:
        found = _ENTERED.search(line) if self.is_state(line) else None
        return int(found[1]) if found else None

    def failed(self, line: bytes) -> int | None:
        found = _FAILED.search(line) if self.is_state(line) else None
        return int(found[1]) if found else None

    def is_state(self, line: bytes) -> bool:
        return _STATE.fullmatch(line) is not None
