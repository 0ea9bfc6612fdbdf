"""What the runner asks of an implementation of MPI.

A launcher (mpiexec) runs beside the runner.  It wants one helper of its own, a proxy, on
each host; the proxies connect back to it, start the ranks and carry what they read and write.
A backend knows how the launcher is told the hosts, how it says what to run on them, and how it
marks the ranks' output.  Ranks are placed in order: the first host has the first ranks.
"""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from frameworks.mpi.core.streams import Marks
from mesos_py import MesosPyError


@dataclass(frozen=True)
class Host:
    """A host as the launcher knows it; `name` is unique among them."""

    name: str
    slots: int


@dataclass(frozen=True)
class Launch:
    """What is to be launched.

    address: the launcher's own, which all hosts can reach.  rank: the command of each rank.
    word: a secret that nothing but this launch knows.  agent: the command that a launcher may
    run to have something run on a host (see `Backend.last_printed`).
    """

    hosts: Sequence[Host]
    address: str
    rank: Sequence[str]
    word: bytes
    agent: Sequence[str]

    @property
    def ranks(self) -> int:
        return sum(host.slots for host in self.hosts)


@dataclass(frozen=True)
class Proxy:
    """What the launcher wants to be run on one of its hosts, a shell's command line."""

    host: int
    command: str


class Backend(ABC):
    """One implementation of MPI."""

    # What it is called by users.
    name: ClassVar[str]
    # Its launcher, by its most certain name first.
    programs: ClassVar[Sequence[str]]
    # The Debian package of the launcher.
    package: ClassVar[str]
    # The line after which it has printed all that is to be run; None: it does not print that
    # but runs `Launch.agent HOST COMMAND...` for each host.
    last_printed: ClassVar[bytes | None]
    # The exit codes of its proxies when they have lost the launcher.
    orphaned: ClassVar[Collection[int]]
    # Those of proxies that could not begin, and have started no rank.
    unbegun: ClassVar[Collection[int]] = ()
    # Whether it says which ranks have come to MPI_Init (`entered`).
    tells_who_entered: ClassVar[bool] = False

    def program(self) -> str:
        """The launcher's path.  Raises MesosPyError, naming the package, if it is not here."""
        for name in self.programs:
            path = shutil.which(name)
            if path is not None:
                return path
        raise MesosPyError(
            f"{self.programs[0]} is not installed here: it starts {self.name} jobs "
            f"(Debian's package {self.package})"
        )

    @abstractmethod
    def argv(self, launch: Launch) -> list[str]:
        """The launcher's command line."""

    @abstractmethod
    def environment(self) -> Mapping[str, str]:
        """What the launcher needs in its environment besides."""

    @abstractmethod
    def marks(self, launch: Launch, stream: str) -> Marks:
        """How pieces of ranks are marked in its "stdout" and "stderr"."""

    def printed(self, line: bytes) -> Proxy | None:
        """What a line of its stdout wants to be run, if it is about that."""
        return None

    def asked(self, host: str, words: Sequence[str]) -> Proxy | None:
        """What it wants that has run `Launch.agent` with these; None: no host of ours."""
        return None

    def is_state(self, line: bytes) -> bool:
        """Whether a line of its own stderr is for us, and not for people."""
        return False

    def entered(self, line: bytes) -> int | None:
        """The rank that such a line says to have come to MPI_Init."""
        return None

    def failed(self, line: bytes) -> int | None:
        """The rank that such a line says to have failed."""
        return None
