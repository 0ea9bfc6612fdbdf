"""What `mesos-py torque status` shows: the wrapper leaves it in a file."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil

from mesos_py import MesosPyError
from mesos_py.files import write_atomically


@dataclass(frozen=True, slots=True)
class NodeView:
    """idle_s: without a job for so long; None: it has one, or has not come yet."""

    name: str
    host: str
    agent_id: str
    phase: str
    cpus: int
    mem_mb: int
    idle_s: float | None


@dataclass(slots=True)
class View:
    """
    running, waiting, held: jobs.
    never: of jobs that cannot run, why.
    waits_for: what those lack that could.
    problem: with the batch server.
    pid, since_s: of the wrapper that has written this, and its start by the calendar.
    """

    nodes: list[NodeView] = field(default_factory=list)
    running: int = 0
    waiting: int = 0
    held: int = 0
    never: dict[str, str] = field(default_factory=dict)
    waits_for: str = ""
    problem: str = ""
    pid: int = 0
    since_s: float = 0.0

    @property
    def is_served(self) -> bool:
        """Whether its wrapper still runs; anybody may ask."""
        try:
            process = psutil.Process(self.pid)
            return (
                process.create_time() == self.since_s and process.status() != psutil.STATUS_ZOMBIE
            )
        except psutil.Error:
            return False

    def write(self, path: Path) -> None:
        """As this process's.  Raises OSError."""
        self.pid = os.getpid()
        self.since_s = psutil.Process().create_time()
        write_atomically(path, json.dumps(asdict(self), indent=1) + "\n")


def read(path: Path) -> View:
    """Raises MesosPyError if there is none."""
    try:
        content = json.loads(path.read_text())
        content["nodes"] = [NodeView(**each) for each in content["nodes"]]
        return View(**content)
    except FileNotFoundError:
        raise MesosPyError(f"nothing was brought up in {path.parent}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise MesosPyError(f"{path} is damaged: {error!r}") from error


__all__ = ["NodeView", "View", "read"]
