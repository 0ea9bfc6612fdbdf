"""What `mesos-py agent` can be told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent.api.http.flags import HttpFlags
from agent.containers.docker.flags import DockerFlags
from agent.isolation.network.addresses import check_range
from agent.sandboxes.flags import SandboxFlags
from mesos_py import config, logs
from mesos_py.config import at_least, between, flag

ENV_PREFIX: Final = "MESOS_PY_AGENT_"


@dataclass(frozen=True)
class AgentFlags(DockerFlags, SandboxFlags, HttpFlags):
    """What `mesos-py agent` can be told."""

    master: str = flag(
        config.REQUIRED,
        kind=config.text,
        check=config.not_empty,
        secret=True,
        help="Where the master is: HOST:PORT, several, separated by commas, or where masters"
        " elect their leader: zk://[user:pass@]h1:p1,h2:p2/path",
    )
    work_dir: Path = flag(
        config.REQUIRED,
        kind=config.path,
        help="Directory of this agent, which no second one may use; sandboxes are in it",
    )
    ip: str = flag(
        "127.0.0.1",
        kind=config.text,
        check=config.not_empty,
        help="Address to listen on; the master must be able to reach it",
    )
    port: int = flag(
        5061,
        kind=config.port_number,
        help="Port for masters (gRPC); 0 picks one",
    )
    advertise_ip: str | None = flag(
        None,
        kind=config.text,
        help="Address that the master is told (default: ip); behind address translation, or"
        " when ip is 0.0.0.0",
    )
    advertise_port: int | None = flag(
        None, kind=config.port_number, help="Port that the master is told (default: port)"
    )
    hostname: str | None = flag(
        None, kind=config.text, help="Name that others are shown (default: this machine's)"
    )
    port_file: Path | None = flag(
        None, kind=config.path, help="File that gets the port in it once the agent is registered"
    )
    resources: str = flag(
        "",
        kind=config.text,
        help="What to offer, as cpus:4;cpus(role):2;ports:[31000-31099], or JSON; the rest is"
        " detected",
    )
    attributes: str = flag(
        "", kind=config.text, help="What else to tell frameworks, as rack:r1;zones:{a,b}"
    )
    isolation: tuple[str, ...] = flag(
        ("posix",), kind=config.text_list, help="Isolators that keep tasks to what they were given"
    )
    cgroups_root: str = flag(
        "mesos_py",
        kind=config.text,
        check=config.not_empty,
        help="cgroups: group that holds this agent's, beneath the top of each hierarchy; v2:"
        " beneath a group delegated to the agent, unless this starts with a slash",
    )
    cgroups_enable_cfs: bool = flag(
        False, kind=config.boolean, help="cgroups, docker: limit processor time hard, beside shares"
    )
    cgroups_limit_swap: bool = flag(
        False, kind=config.boolean, help="cgroups: no swap beyond the limit of memory"
    )
    cgroups_pids_limit: int = flag(
        0,
        kind=config.integer,
        check=at_least(0),
        help="cgroups, docker: processes and threads that one container may have; 0: no limit",
    )
    cgroups_io_max: str = flag(
        "",
        kind=config.text,
        help="cgroups: limits of each container's disk traffic, as '8:0 rbps=1048576 wiops=100;"
        " * wbps=2097152'; * is the disk of the work directory",
    )
    container_disk_watch_interval_s: float = flag(
        15.0,
        kind=config.duration_s,
        check=between(0.01, 86400),
        help="How often --isolation disk looks at what a container stores; ten times as often "
        "when that is near its quota",
    )
    network_range: str = flag(
        "10.213.0.0/16",
        kind=config.text,
        check=check_range,
        help="network: addresses for containers with a network of their own; each agent of one "
        "machine needs others",
    )
    enforce_container_disk_quota: bool = flag(
        False,
        kind=config.boolean,
        help="Kill containers that store more than the disk that they were given",
    )
    nested_containers: str = flag(
        "own-user",
        kind=config.choice("off", "own-user", "any-user"),
        help="What whoever reaches the agent's API may launch within containers of tasks: nothing,"
        " what runs as the container's own user, or what runs as any, root included",
    )
    executor_registration_timeout_s: float = flag(
        60.0,
        kind=config.duration_s,
        check=at_least(0.01),
        help="A custom executor that has not connected by then is killed",
    )
    executor_shutdown_grace_period_s: float = flag(
        5.0,
        kind=config.duration_s,
        check=at_least(0),
        help="Time from telling tasks and executors to end to killing them",
    )
    tasks_on_exit: str = flag(
        "keep",
        kind=config.choice("keep", "end"),
        help="What becomes of tasks when the agent gets SIGTERM, or dies: they run on, and the"
        " next start takes them up again, or they end.  SIGINT and SIGUSR1 always end them",
    )
    recover: str = flag(
        "reconnect",
        kind=config.choice("reconnect", "cleanup", "forget"),
        help="What to do with tasks of an earlier run: go on with them (reconnect), or end them"
        " all, forget that this agent was ever registered, and exit: keeping what is reserved"
        " here (cleanup), or forgetting that as well (forget)",
    )
    recovery_timeout_s: float = flag(
        900.0,
        kind=config.duration_s,
        check=at_least(0),
        help="Tasks end when no agent has come back for them within this time",
    )
    executor_reregistration_timeout_s: float = flag(
        10.0,
        kind=config.duration_s,
        check=at_least(0.01),
        help="An executor that has not come back by then to an agent that was started again"
        " is killed",
    )
    registration_backoff_s: float = flag(
        1.0,
        kind=config.duration_s,
        check=between(0.01, 3600),
        help="First pause between two attempts to register; it doubles",
    )
    max_completed_executors: int = flag(
        1000,
        kind=config.integer,
        check=at_least(0),
        help="How many ended tasks to remember; their sandboxes stay anyhow",
    )
    log_level: str = flag("info", kind=config.choice(*logs.LEVELS), help="What to log")
    log_format: str = flag("text", kind=config.choice(*logs.FORMATS), help="How to log")
