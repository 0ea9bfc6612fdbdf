"""MPICH, by hydra's manual launcher: mpiexec prints what to run on each host, and waits."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar, Final

from frameworks.mpi.backends.base import Backend, Launch, Proxy
from frameworks.mpi.core.streams import Marks

_PRINTED: Final = re.compile(rb"HYDRA_LAUNCH: (.*?--proxy-id (\d+).*?)\s*")


class Mpich(Backend):
    """hydra 3 and 4; also what other implementations have made of it."""

    name: ClassVar[str] = "mpich"
    programs: ClassVar[Sequence[str]] = ("mpiexec.hydra", "mpiexec.mpich")
    package: ClassVar[str] = "mpich"
    last_printed: ClassVar[bytes | None] = b"HYDRA_LAUNCH_END"
    orphaned: ClassVar[Collection[int]] = (7,)

    def argv(self, launch: Launch) -> list[str]:
        hosts = ",".join(f"{host.name}:{host.slots}" for host in launch.hosts)
        before, after = _mark(launch)
        # Ranks get what the agents' tasks have as environment, not what is set here.
        return [
            self.program(),
            *("-launcher", "manual", "-rmk", "user", "-genvnone", "-wdir", "/"),
            *("-localhost", launch.address, "-hosts", hosts),
            *("-prepend-pattern", f"{before.decode()}%r{after.decode()}"),
            *("-n", str(launch.ranks), *launch.rank),
        ]

    def environment(self) -> Mapping[str, str]:
        return {}

    def marks(self, launch: Launch, stream: str) -> Marks:
        return Marks(*_mark(launch))

    def printed(self, line: bytes) -> Proxy | None:
        found = _PRINTED.fullmatch(line)
        return Proxy(int(found[2]), found[1].decode()) if found else None


def _mark(launch: Launch) -> tuple[bytes, bytes]:
    return b"\x01" + launch.word + b":", b"\x02"
