"""What `mesos-py mapreduce tracker` can be told."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from frameworks.mapreduce.tracker.options import TrackerOptions
from mesos_py import Resources, config, logs
from mesos_py.config import at_least, flag
from mesos_py.errors import InvalidValue

ENV_PREFIX: Final = "MESOS_PY_MAPREDUCE_TRACKER_"


def _resources(text: str) -> None:
    needs = Resources.parse(text)
    if not needs.scalar("cpus") or not needs.scalar("mem"):
        raise ValueError("must have cpus and mem")


@dataclass(frozen=True)
class TrackerFlags:
    """What `mesos-py mapreduce tracker` can be told."""

    master: str = flag(
        config.REQUIRED,
        kind=config.text,
        check=config.not_empty,
        secret=True,
        help="Where the master is: HOST:PORT, several, separated by commas, or where masters"
        " elect their leader: zk://[user:pass@]h1:p1,h2:p2/path",
    )
    state: str = flag(
        config.REQUIRED,
        kind=config.text,
        check=config.not_empty,
        help="URL or path of a directory that agents and clients reach: jobs, what they ship,"
        " and what lets another tracker take over",
    )
    ip: str = flag(
        "127.0.0.1",
        kind=config.text,
        check=config.not_empty,
        help="Address to listen on for clients; there is no authentication",
    )
    port: int = flag(0, kind=config.port_number, help="Where to listen; 0 picks a port")
    port_file: Path | None = flag(
        None, kind=config.path, help="Write the port to this file once it is known"
    )
    order: str = flag(
        "fair",
        kind=config.choice("fair", "fifo", "priority"),
        help="Of jobs among each other: fair shares (weighted by priority), first come first"
        " served, or strictly by priority",
    )
    name: str = flag(
        "mapreduce", kind=config.text, check=config.not_empty, help="Name of the framework"
    )
    role: str = flag("*", kind=config.text, check=config.not_empty, help="Role to run under")
    user: str = flag("", kind=config.text, help="Who tasks run as; empty: who runs the tracker")
    standby: bool = flag(
        False,
        kind=config.boolean,
        help="One of several trackers with the same state, of which one is active",
    )
    worker_resources: str = flag(
        "mem:128",
        kind=config.text,
        check=_resources,
        help="What a worker takes on its agent beside its tasks",
    )
    max_workers: int | None = flag(
        None, kind=config.integer, check=at_least(1), help="Use at most so many agents at a time"
    )
    idle_s: float = flag(
        60.0,
        kind=config.duration_s,
        check=at_least(0),
        help="A worker without tasks is kept so long for others",
    )
    rack_attribute: str = flag(
        "rack", kind=config.text, help="The attribute of agents that names their rack"
    )
    worker_python: str = flag(
        "",
        kind=config.text,
        help="Python on agents that has mesos-py[mapreduce]; empty: the path of the tracker's own",
    )
    failover_s: float = flag(
        24 * 3600.0,
        kind=config.duration_s,
        check=at_least(0),
        help="So long the cluster keeps tasks when no tracker is there",
    )
    log_level: str = flag(
        "info", kind=config.choice(*logs.LEVELS), help="How much to log, to stderr"
    )
    log_format: str = flag(
        "text", kind=config.choice(*logs.FORMATS), help="How lines of the log look"
    )


def options_of(flags: TrackerFlags) -> TrackerOptions:
    """Raises InvalidValue naming the flag."""
    try:
        return TrackerOptions(
            master=flags.master,
            state=flags.state,
            name=flags.name,
            role=flags.role,
            user=flags.user,
            order=flags.order,  # type: ignore[arg-type]
            standby=flags.standby,
            worker_needs=Resources.parse(flags.worker_resources),
            max_workers=flags.max_workers,
            idle_s=flags.idle_s,
            rack_attribute=flags.rack_attribute,
            failover_s=flags.failover_s,
            worker_python=flags.worker_python or sys.executable,
        )
    except InvalidValue as error:
        raise InvalidValue(
            f"--{error.field.replace('_', '-')}", error.value, error.reason
        ) from None
