"""The agent's flags for sandboxes: what is fetched into them, kept and served."""

from __future__ import annotations

from dataclasses import dataclass

from agent.fetcher import fetcher
from agent.sandboxes import collector, keeper, rotation
from agent.sandboxes.logfile import MAX_PARTS
from mesos_py import config
from mesos_py.config import at_least, between, flag


@dataclass(frozen=True)
class SandboxFlags:
    """Inherited by `AgentFlags`."""

    fetcher_cache_size_bytes: int = flag(
        2 << 30,
        kind=config.size_bytes,
        help="Room for fetched files that tasks share; 0: they share none",
    )
    fetcher_stall_timeout_s: float = flag(
        60.0,
        kind=config.duration_s,
        check=at_least(0.01),
        help="A fetch of which nothing comes for so long fails",
    )
    fetcher_timeout_s: float = flag(
        1800.0,
        kind=config.duration_s,
        check=at_least(0.01),
        help="The URIs of a task that are not all fetched and unpacked by then fail it",
    )
    fetcher_max_size_bytes: int = flag(
        10 << 30,
        kind=config.size_bytes,
        check=at_least(1),
        help="The most that may be fetched and unpacked for one task",
    )
    frameworks_home: str | None = flag(
        None,
        kind=config.text,
        help="Directory in which URIs that are relative paths are looked for",
    )
    gc_delay_s: float = flag(
        604_800.0,
        kind=config.duration_s,
        check=at_least(0),
        help="Sandboxes of ended tasks are kept so long, less if the disk fills",
    )
    gc_disk_headroom: float = flag(
        0.1,
        kind=config.number,
        check=between(0, 1),
        help="Share of the disk that is to stay free: the age of sandboxes goes to 0 there",
    )
    disk_watch_interval_s: float = flag(
        60.0,
        kind=config.duration_s,
        check=at_least(0.01),
        help="How often to look at the disk and for sandboxes to remove",
    )
    max_log_size_bytes: int = flag(
        100 << 20,
        kind=config.size_bytes,
        help="stdout and stderr of a running task that are larger are rotated; 0: never",
    )
    max_log_files: int = flag(
        3,
        kind=config.integer,
        check=between(1, MAX_PARTS),
        help="How many rotated parts of a log are kept beside it",
    )

    def sandbox_limits(self) -> keeper.Limits:
        return keeper.Limits(
            collector=collector.Limits(
                gc_delay_s=self.gc_delay_s,
                headroom=self.gc_disk_headroom,
                interval_s=self.disk_watch_interval_s,
            ),
            rotation=rotation.Limits(
                max_bytes=self.max_log_size_bytes, max_parts=self.max_log_files
            ),
        )

    def fetcher_limits(self) -> fetcher.Limits:
        return fetcher.Limits(
            cache_bytes=self.fetcher_cache_size_bytes,
            stall_timeout_s=self.fetcher_stall_timeout_s,
            timeout_s=self.fetcher_timeout_s,
            max_bytes=self.fetcher_max_size_bytes,
            frameworks_home=self.frameworks_home,
        )
