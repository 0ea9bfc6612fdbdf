"""What a run of an MPI job is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from frameworks.common.gang import Ask
from frameworks.mpi.backends.base import Backend
from mesos_py import CommandInfo, ContainerInfo


@dataclass(frozen=True)
class Settings:
    """One job.

    ask: the ranks, as slots.  program: what each rank runs.  env: for ranks, and their proxies.
    files: of this machine, sent along to the sandboxes.  directory: where ranks run on their
    hosts ("": the sandbox).  address: the launcher's, which hosts can reach ("": the one from
    which agents are reached).  beyond: take also what others may be owed.  hold_s: offers that
    are not enough are kept so long, up to twice that.
    """

    master: str
    name: str
    backend: Backend
    ask: Ask
    program: Sequence[str]
    role: str = "*"
    user: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    uris: Sequence[CommandInfo.URI] = ()
    files: Sequence[Path] = ()
    container: ContainerInfo | None = None
    directory: str = ""
    address: str = ""
    beyond: bool = False
    timeout_s: float | None = None
    start_timeout_s: float = 30.0
    hold_s: float = 0.7
    prefix: bool = True
    quiet: bool = False
