"""What an operator may choose about docker containers, and what is known of dockerd."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

# By these labels a container is known again, after whatever restart.
LABELS: Final = "mesos_py."
LABEL_AGENT: Final = "mesos_py.agent_id"
LABEL_FRAMEWORK: Final = "mesos_py.framework_id"
LABEL_EXECUTOR: Final = "mesos_py.executor_id"
LABEL_CONTAINER: Final = "mesos_py.container_id"
LABEL_SANDBOX: Final = "mesos_py.sandbox"

# Where cgroups are used for other tasks: the group of all agents' docker containers.
CGROUP_ROOT: Final = "mesos_py_docker"
PULL_POLICIES: Final = ("missing", "always", "never")


@dataclass(frozen=True)
class DockerSettings:
    """Flags of the agent; their help says what each means."""

    socket: Path = Path("/var/run/docker.sock")
    timeout_s: float = 60.0
    pull_timeout_s: float = 600.0
    pull_policy: str = "missing"
    privileged: bool = False
    cpu_quota: bool = False
    # 0: as many as the machine allows.
    pids_limit: int = 0
    # Docker keeps its own copy of the output for `docker logs`, and so for an agent that
    # was away: three files of this size.
    log_size: str = "100m"
    # Name of the cgroup below which the agent's own is; "" leaves it to dockerd.
    cgroup_root: str = ""
    # Directory of a config.json with credentials for registries; None takes docker's own.
    config: Path | None = None


def docker_settings(flags: Mapping[str, Any]) -> DockerSettings:
    """From the agent's flags, by their names."""
    root = flags["docker_cgroup_root"]
    if not root and "cgroups" in flags["isolation"]:
        # Not the one of other tasks: the isolator takes all that is in it for its own.
        root = CGROUP_ROOT
    return DockerSettings(
        socket=flags["docker_socket"],
        timeout_s=flags["docker_timeout_s"],
        pull_timeout_s=flags["docker_pull_timeout_s"],
        pull_policy=flags["docker_pull_policy"],
        privileged=flags["docker_privileged"],
        cpu_quota=flags["cgroups_enable_cfs"],
        pids_limit=flags["cgroups_pids_limit"],
        cgroup_root=root,
        config=flags["docker_config"],
    )


@dataclass(frozen=True)
class Dockerd:
    """The daemon, as it describes itself."""

    version: str = ""
    # The oldest that has all that we use: of docker 20.10.
    api_version: str = "1.41"
    cgroup_driver: str = "cgroupfs"
    # Whether it can put an init process in front: it passes signals on to the task's whole
    # group, as the agent does for other tasks, and reaps what is left behind.
    has_init: bool = True


def container_name(container_id: str) -> str:
    """As Mesos calls it."""
    return f"mesos-{container_id}"


def cgroup_parent(root: str, agent_id: str, driver: str) -> str | None:
    """The group of all containers of one agent; None leaves it to dockerd.

    systemd wants a slice, and takes dashes in its name for levels: they are escaped.
    """
    if not root:
        return None
    if driver == "systemd":
        escaped = "-".join(part.replace("-", "\\x2d") for part in (root, agent_id))
        return f"{escaped}.slice"
    return f"/{root}/{agent_id}"
