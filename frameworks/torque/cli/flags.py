"""What `mesos-py torque up` can be told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from frameworks.torque.options import TorqueOptions
from mesos_py import config, logs
from mesos_py.config import at_least, flag
from mesos_py.errors import InvalidValue

ENV_PREFIX: Final = "MESOS_PY_TORQUE_"


@dataclass(frozen=True)
class UpFlags:
    """What `mesos-py torque up` can be told."""

    state_dir: Path = flag(
        config.REQUIRED,
        kind=config.path,
        help="Where the batch server keeps its queue and its files; of this one alone",
    )
    master: str = flag(
        "127.0.0.1:5050",
        kind=config.text,
        check=config.not_empty,
        secret=True,
        help="Where the master is: HOST:PORT, several, separated by commas, or where masters"
        " elect their leader: zk://[user:pass@]h1:p1,h2:p2/path",
    )
    backend: str = flag(
        "slurm",
        kind=config.choice("slurm", "torque"),
        help="The batch system: Slurm behind its PBS commands, or Torque",
    )
    min_nodes: int = flag(
        0, kind=config.integer, check=at_least(0), help="Keep so many, jobs or no"
    )
    max_nodes: int = flag(
        100, kind=config.integer, check=at_least(1), help="Never have more nodes than so many"
    )
    idle_s: float = flag(
        60.0,
        kind=config.duration_s,
        check=at_least(0),
        help="Give a node back that has had no job for so long",
    )
    start_s: float = flag(
        60.0,
        kind=config.duration_s,
        check=at_least(1),
        help="Give a node up that has not come so long after its start",
    )
    job_mem_mb: int = flag(
        256,
        kind=config.integer,
        check=at_least(1),
        help="MB for each cpu of a job that asks for none",
    )
    beyond_guarantee: bool = flag(
        False,
        kind=config.boolean,
        help="Take more than the guaranteed share; what is above it may be taken back",
    )
    role: str = flag("*", kind=config.text, check=config.not_empty, help="Role to run under")
    name: str = flag(
        "torque", kind=config.text, check=config.not_empty, help="Name of the framework"
    )
    user: str = flag("", kind=config.text, help="Who nodes run as; empty: who runs this")
    ip: str = flag(
        "127.0.0.1",
        kind=config.text,
        check=config.not_empty,
        help="This machine's address, as nodes reach it; a loopback address: all is on one machine",
    )
    port: int = flag(0, kind=config.port_number, help="Of the batch server; 0 picks one, once")
    node_port: int = flag(0, kind=config.port_number, help="Of all its nodes; 0 picks one, once")
    munge_socket: Path | None = flag(
        None,
        kind=config.path,
        help="Of the munged that runs on all machines with one key (needed with --ip)",
    )
    poll_s: float = flag(
        1.0, kind=config.duration_s, check=at_least(0.1), help="How often to look at the queue"
    )
    failover_s: float = flag(
        7 * 24 * 3600.0,
        kind=config.duration_s,
        check=at_least(0),
        help="How long the cluster keeps nodes while no wrapper is there",
    )
    log_level: str = flag("info", kind=config.choice(*logs.LEVELS), help="Least level to log")
    log_format: str = flag("text", kind=config.choice(*logs.FORMATS), help="How to log")


def options_of(flags: UpFlags) -> TorqueOptions:
    """Raises InvalidValue naming the flag."""
    try:
        return TorqueOptions(
            master=flags.master,
            state_dir=flags.state_dir.absolute(),
            backend=flags.backend,  # type: ignore[arg-type]
            name=flags.name,
            role=flags.role,
            user=flags.user,
            min_nodes=flags.min_nodes,
            max_nodes=flags.max_nodes,
            idle_s=flags.idle_s,
            start_s=flags.start_s,
            ip=flags.ip,
            port=flags.port,
            node_port=flags.node_port,
            munge_socket=flags.munge_socket,
            job_mem_mb=flags.job_mem_mb,
            beyond_guarantee=flags.beyond_guarantee,
            poll_s=flags.poll_s,
            failover_s=flags.failover_s,
        )
    except InvalidValue as error:
        raise InvalidValue(
            f"--{error.field.replace('_', '-')}", error.value, error.reason
        ) from None


__all__ = ["ENV_PREFIX", "UpFlags", "options_of"]
