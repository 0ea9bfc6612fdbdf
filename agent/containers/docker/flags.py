"""What `mesos-py agent` can be told about docker containers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agent.containers.docker.settings import PULL_POLICIES
from mesos_py import config
from mesos_py.config import at_least, flag


@dataclass(frozen=True)
class DockerFlags:
    """A part of AgentFlags."""

    containerizers: tuple[str, ...] = flag(
        ("posix",),
        kind=config.text_list,
        help="Who runs containers: posix (the agent itself), and docker for docker images",
    )
    docker_socket: Path = flag(
        Path("/var/run/docker.sock"),
        kind=config.path,
        help="Unix socket of the dockerd that runs docker containers",
    )
    docker_timeout_s: float = flag(
        60.0,
        kind=config.duration_s,
        check=at_least(0.1),
        help="A call that dockerd has not answered by then counts as failed, and is repeated",
    )
    docker_pull_policy: str = flag(
        "missing",
        kind=config.choice(*PULL_POLICIES),
        help="When to pull images of which the task does not say that they must be pulled",
    )
    docker_pull_timeout_s: float = flag(
        600.0,
        kind=config.duration_s,
        check=at_least(0.1),
        help="A docker image that is not here by then fails its task",
    )
    docker_config: Path | None = flag(
        None,
        kind=config.path,
        help="Directory with docker's config.json: credentials for registries "
        "(default: as the docker command)",
    )
    docker_privileged: bool = flag(
        False,
        kind=config.boolean,
        help="Allow privileged docker containers, and options that lead out of one",
    )
    docker_cgroup_root: str = flag(
        "",
        kind=config.text,
        help="Name of the cgroup below which the agent keeps its docker containers "
        "(default: dockerd's own choice; mesos_py_docker with --isolation cgroups)",
    )
