"""What users can set of the scheduling; the names in SparkConf are in `conf.py`'s table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from mesos_py.errors import InvalidValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """How a pool of jobs shares with others, as Spark documents it (Job Scheduling).

    weight: its share of the slots beside those of others.  min_share: slots that it has before
    others have more than theirs.  fair: its stages share; otherwise the older job has
    precedence.
    """

    weight: float = 1.0
    min_share: int = 0
    fair: bool = False

    def __post_init__(self) -> None:
        """Raises InvalidValue."""
        if not 0 < self.weight < math.inf:
            raise InvalidValue("weight", self.weight, "must be above zero")
        if self.min_share < 0:
            raise InvalidValue("minShare", self.min_share, "must not be negative")

    def standing(self, held: int) -> float:
        """Its place with so many slots: who has the lowest number comes first.

        Below zero are those without their minimum, by the part of it that they have.
        """
        if held < self.min_share:
            return held / self.min_share - 1.0
        return held / self.weight


EVEN = Pool()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """max_failures: of one task, after which its jobs fail.  stage_attempts: how often a stage
    may find that what it reads is gone before it has come to its end.

    wait_executor_s, wait_host_s: for a free slot where the input is kept, then on its host.
    fair: pools share the slots; otherwise the older job has precedence.  pools: those that are
    not like all others, by name.
    exclude_failures: so many within `exclude_s`, of tasks that have succeeded elsewhere, and
    an executor gets nothing for as long; 0: never.
    twins: whether slow tasks are run twice.  At the earliest after `twin_after_s` and
    `twin_multiplier` times what the middle one took, and when the share `twin_quantile` of the
    stage is done; beside running tasks at most the share `twin_share` of them.
    idle_s, idle_keeping_s: an executor without and with kept partitions goes after so long
    without work, where the backend can get others.
    max_result_bytes: of all results of one job, those included that are still to be fetched;
    0: any.
    """

    max_failures: int = 4
    stage_attempts: int = 4
    wait_executor_s: float = 3.0
    wait_host_s: float = 3.0
    fair: bool = False
    pools: Mapping[str, Pool] = field(default_factory=dict)
    exclude_failures: int = 5
    exclude_s: float = 60.0
    twins: bool = False
    twin_after_s: float = 1.0
    twin_multiplier: float = 3.0
    twin_quantile: float = 0.9
    twin_share: float = 0.1
    twin_interval_s: float = 1.0
    idle_s: float = 60.0
    idle_keeping_s: float = math.inf
    max_result_bytes: int = 1 << 30

    def __post_init__(self) -> None:
        """Raises InvalidValue."""
        for name in ("max_failures", "stage_attempts"):
            if getattr(self, name) < 1:
                raise InvalidValue(name, getattr(self, name), "must be at least 1")
        for name in ("exclude_failures", "max_result_bytes"):
            if getattr(self, name) < 0:
                raise InvalidValue(name, getattr(self, name), "must not be negative")
        for name in ("twin_quantile", "twin_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise InvalidValue(name, getattr(self, name), "must be from 0 to 1")
        for name in (
            "wait_executor_s",
            "wait_host_s",
            "exclude_s",
            "twin_after_s",
            "twin_interval_s",
            "idle_s",
            "idle_keeping_s",
        ):
            if not getattr(self, name) >= 0:
                raise InvalidValue(name, getattr(self, name), "must be zero or more seconds")


__all__ = ["EVEN", "Pool", "Rules"]
