"""Who runs containers, by name: the agent itself always, dockerd if the operator says so."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from agent.containers.docker.settings import docker_settings
from agent.core.recovery import SavedContainer
from agent.core.state import Settings
from mesos_py.errors import InvalidValue
from mesos_py.metrics import Metrics
from mesos_py.v1 import types_pb2 as pb

if TYPE_CHECKING:
    from agent.containers.docker.launcher import DockerLauncher
    from agent.containers.docker.starting import Fetching
    from agent.containers.events import ContainerEvents

POSIX: Final = "posix"
DOCKER: Final = "docker"
KNOWN: Final = (POSIX, DOCKER)
FLAG: Final = "containerizers"
_TYPE: Final = pb.ContainerInfo.DOCKER


def check(names: tuple[str, ...]) -> None:
    """Raises InvalidValue for a name that is not known, or cannot be had."""
    given = ",".join(names)
    for name in names:
        if name not in KNOWN:
            raise InvalidValue(FLAG, name, f"is not known; known are: {', '.join(KNOWN)}")
    if len(set(names)) != len(names):
        raise InvalidValue(FLAG, given, "names one twice")
    if POSIX not in names:
        raise InvalidValue(FLAG, given, "must have posix, which runs all that is not docker's")
    if DOCKER in names and importlib.util.find_spec("docker") is None:
        raise InvalidValue(FLAG, DOCKER, "needs the docker SDK: pip install 'mesos-py[docker]'")


def split(
    saved: Sequence[SavedContainer], names: tuple[str, ...]
) -> tuple[list[SavedContainer], list[SavedContainer]]:
    """Those of dockerd's, and the others.  Raises InvalidValue if nobody could take up
    the former."""
    docker = [each for each in saved if each.info is not None and each.info.type == _TYPE]
    others = [each for each in saved if each not in docker]
    if docker and DOCKER not in names:
        text = "must have docker: docker containers of an earlier run may still be there"
        raise InvalidValue(FLAG, ",".join(names), text)
    return docker, others


def provided(names: tuple[str, ...]) -> frozenset[str]:
    """What tasks may ask for because of them, as `Settings.provided` has it."""
    return frozenset({DOCKER} & {*names})


def docker_launcher(
    flags: Mapping[str, Any],
    settings: Settings,
    events: ContainerEvents,
    fetcher: Fetching,
    metrics: Metrics,
) -> DockerLauncher | None:
    """None: the operator does not want it.  The SDK is loaded only here."""
    if DOCKER not in flags[FLAG]:
        return None
    from agent.containers.docker.launcher import DockerLauncher

    return DockerLauncher(
        docker_settings(flags),
        settings.work_dir,
        settings.executor_endpoint,
        events,
        fetcher,
        metrics,
    )
