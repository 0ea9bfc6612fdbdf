"""What the wrapper needs of a batch system."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from frameworks.torque.core.records import Job, Node, Size
from mesos_py import MesosPyError

# The batch system's own commands answer in milliseconds, or not at all.
COMMAND_LIMIT_S: Final = 30.0
_SHOWN: Final = 500


class BatchError(MesosPyError):
    """A command of the batch system has failed."""

    code = "batch_error"


@dataclass(frozen=True, slots=True)
class Daemon:
    """How a node's daemon is started on an agent.  port: what it listens at; None: nothing
    that could be in anybody's way."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    port: int | None


class Backend(Protocol):
    """One batch server and its nodes.  All but `start` and `stop` raise BatchError when the
    server does not answer, and may be called again and again with the same result."""

    one_per_agent: bool
    # Whether nodes can be had that get only jobs which end in time.
    keeps_time: bool
    # Memory of a node's task that jobs cannot have.
    overhead_mb: int

    def start(self) -> None:
        """Have the server run, with the state it had; nothing if it does.  Raises
        MesosPyError."""

    def alive(self) -> bool:
        """Whether its processes are there."""

    def stop(self) -> None:
        """End the server.  What is queued comes back with the next `start`."""

    def user_environment(self) -> dict[str, str]:
        """What users need for its commands to find the server."""

    def jobs(self) -> list[Job]:
        """All that have not ended, in the order in which they are served."""

    def nodes(self) -> list[Node]:
        """All of ours that it knows."""

    def daemon(self, name: str, size: Size, address: str) -> Daemon:
        """How to start a node with this name.  address: as `place` gave it."""

    def place(self, number: int, hostname: str) -> str:
        """Where the node with this number is to be reached; empty: whatever its machine has.
        hostname: of the agent."""

    def register(self, name: str, size: Size, address: str, life_s: float | None) -> None:
        """Before its daemon is started.  life_s: it is to get only jobs that end before."""

    def drain(self, name: str, why: str) -> None:
        """No new jobs for it."""

    def resume(self, name: str) -> None:
        """New jobs for it again."""

    def lose(self, name: str, why: str) -> None:
        """Its daemon is gone, and it is to be forgotten; jobs on it are put back or closed, as
        each one was submitted.  Nothing if it is not known.  May have to be called again."""

    def tell(self, job_id: str, why: str) -> None:
        """Note at a job that it cannot run; empty: it can.  Nothing if it has ended."""


def run(
    argv: Sequence[str], environment: Mapping[str, str], limit_s: float = COMMAND_LIMIT_S
) -> str:
    """What a command has written.  Raises BatchError with its words when it fails, takes too
    long or is not there."""
    try:
        done = subprocess.run(
            argv,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=limit_s,
            check=False,
        )
    except OSError as error:
        raise BatchError(f"{argv[0]}: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise BatchError(f"{argv[0]} has not answered in {limit_s:.0f} s") from error
    if done.returncode:
        words = " ".join((done.stderr or done.stdout).split())[:_SHOWN]
        raise BatchError(f"{' '.join(argv)[:_SHOWN]}: {words or f'exit code {done.returncode}'}")
    return done.stdout


__all__ = ["Backend", "BatchError", "Daemon", "run"]
