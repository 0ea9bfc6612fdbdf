"""How a tracker decides: what its operator may choose."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from mesos_py.errors import InvalidValue
from mesos_py.resources import Resources

Order = Literal["fair", "fifo", "priority"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Of one tracker, for all its jobs.

    worker_needs: what a worker itself takes, beside its tasks: `cpus` and `mem`.
    worker_prefix: what the ids of its workers begin with.
    extension: what the name of a part file ends with, by the properties of its job (".gz").
    max_workers: at most so many agents are used at a time.
    idle_s: a worker without tasks, and without outputs that are needed, is released then.
    refuse_s: what could not be used is not offered again for so long, at most.
    exclude_s: how long an agent is not used after too many failures.
    agent_failures: so many failures by blame "place", of all jobs within `exclude_s`, exclude
        an agent for all of them.
    preempt_s: so long maps of a job wait, while none of them runs and reduces of the same job
        wait for them, before a reduce is ended to make room.
    hold_after_s, hold_s: a job of which nothing could be started for so long has an agent kept
        for it, on which there may be room, for so long at most.
    stop_s: so long a job that is being stopped waits for the ends of its attempts.
    silence_s: a worker with attempts of which nothing is heard for so long is given up.  Longer
        than the master's patience with an agent, which may only be cut off.
    speculate_s: how often attempts are looked at for those that need a twin.
    twin_share: of a job's running attempts (of one kind), twins are at most this share, and
        one is always allowed.
    twin_after_s: no attempt gets a twin before it has run for so long.
    """

    worker_needs: Resources
    extension: Callable[[Mapping[str, str]], str]
    worker_prefix: str = "worker"
    order: Order = "fair"
    max_workers: int | None = None
    idle_s: float = 60.0
    refuse_s: float = 5.0
    exclude_s: float = 600.0
    agent_failures: int = 5
    preempt_s: float = 5.0
    hold_after_s: float = 30.0
    hold_s: float = 120.0
    stop_s: float = 15.0
    silence_s: float = 300.0
    speculate_s: float = 1.0
    twin_share: float = 0.1
    twin_after_s: float = 5.0

    def __post_init__(self) -> None:
        """Raises InvalidValue."""
        if self.order not in ("fair", "fifo", "priority"):
            raise InvalidValue("order", self.order, "must be fair, fifo or priority")
        if self.max_workers is not None and self.max_workers < 1:
            raise InvalidValue("max_workers", self.max_workers, "must be 1 or more")
