"""Tasks in docker containers, and a launcher for them without an agent around it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Final

from agent.containers.docker.launcher import DockerLauncher
from agent.containers.docker.settings import DockerSettings
from agent.containers.users import User
from agent.core.effects import ContainerSpec
from agent.core.records import Exit
from agent.core.recovery import SavedContainer
from agent.isolation.base import Limitation
from mesos_py.metrics import Metrics
from mesos_py.resources import Resources
from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import command
from tests.kit.dockerd import IMAGE, PrivateDockerd

Docker = pb.ContainerInfo.DockerInfo
AGENT_ID: Final = "A1"
LIMIT_S: Final = 90.0


def container_info(
    network: Docker.Network.ValueType = Docker.NONE, image: str = IMAGE, **docker: Any
) -> pb.ContainerInfo:
    info = Docker(image=image, network=network, **docker)
    return pb.ContainerInfo(type=pb.ContainerInfo.DOCKER, docker=info)


def docker_task(
    task_id: str, value: str = "true", *, container: pb.ContainerInfo | None = None, **more: Any
) -> pb.TaskInfo:
    """A command task for a shell in a container without a network, with 1 cpu and 64 MB."""
    resources = more.pop("resources", Resources.of(cpus=1, mem=64))
    task = command(task_id, value, container=container or container_info(), **more)
    del task.resources[:]
    task.resources.extend(resources.to_proto())
    return task


def container_spec(
    value: str = "true", *, container_id: str = "c1", agent_id: str = AGENT_ID, **more: Any
) -> ContainerSpec:
    task = docker_task(container_id, value, **more)
    return ContainerSpec(
        container_id=container_id,
        framework_id="F1",
        executor_id=container_id,
        agent_id=agent_id,
        user="",
        executable="/bin/sh",
        argv=["sh", "-c", value],
        environment={"PATH": "/bin", "MESOS_SANDBOX": "/elsewhere"},
        command_environment={},
        sandbox=("agents", agent_id, "runs", container_id),
        command=task.command,
        holders=[task],
        container=task.container,
    )


def saved_container(container_id: str, pid: int | None) -> SavedContainer:
    """As an agent that is started again remembers it."""
    return SavedContainer(
        container_id=container_id,
        framework_id="F1",
        executor_id=container_id,
        sandbox=("agents", AGENT_ID, "runs", container_id),
        pid=pid,
        start_ticks=0,
        resources=Resources.of(cpus=1, mem=64),
        info=container_info(),
    )


class Heard:
    """What a launcher tells, as a list: ("started", id), ("ended", id, Exit) ..."""

    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []
        self.addresses: dict[str, tuple[str, ...]] = {}
        # What an agent does once it has written down an end.
        self.forget: Callable[[str], None] = lambda _: None

    def container_addressed(self, container_id: str, addresses: tuple[str, ...]) -> None:
        self.addresses[container_id] = addresses

    def container_started(self, container_id: str, pid: int, start_ticks: int) -> None:
        self.events.append(("started", container_id))

    def container_failed(self, container_id: str, message: str) -> None:
        self.events.append(("failed", container_id, message))
        self.forget(container_id)

    def container_ended(self, container_id: str, exit: Exit) -> None:
        self.events.append(("ended", container_id, exit))
        self.forget(container_id)

    def container_limited(self, container_id: str, limitation: Limitation) -> None:
        self.events.append(("limited", container_id, limitation))

    def containers_told(self) -> None:
        pass

    def of(self, what: str, container_id: str = "c1") -> tuple[Any, ...] | None:
        return next((each for each in self.events if each[:2] == (what, container_id)), None)

    async def until(self, what: str, container_id: str = "c1") -> tuple[Any, ...]:
        async with asyncio.timeout(LIMIT_S):
            while (found := self.of(what, container_id)) is None:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        return found


class FetchedByHand:
    """A fetcher that is done when a test says so, with what it says."""

    def __init__(self) -> None:
        self.begun: dict[str, asyncio.Future[None]] = {}

    async def run(self, spec: ContainerSpec, find_user: Callable[[str], User]) -> None:
        find_user(spec.user)
        made = self.begun[spec.container_id] = asyncio.get_running_loop().create_future()
        await made


class Rig:
    """A launcher on a private dockerd."""

    def __init__(self, dockerd: PrivateDockerd, work_dir: Path, **settings: Any) -> None:
        self.work_dir = work_dir
        work_dir.mkdir(exist_ok=True)
        self.heard = Heard()
        self.fetcher = FetchedByHand()
        self.crashed = False
        self.metrics = Metrics()
        given: dict[str, Any] = {
            "socket": dockerd.socket,
            "timeout_s": 20.0,
            "cgroup_root": f"{dockerd.group}/agents",
            **settings,
        }
        self.launcher = DockerLauncher(
            DockerSettings(**given),
            str(work_dir),
            f"unix:{work_dir}/executors.sock",
            self.heard,
            self.fetcher,
            self.metrics,
        )
        self.heard.forget = self.launcher.forget

    @property
    def orphans(self) -> float:
        return self.metrics.snapshot()["docker_orphans"]

    def output(self, container_id: str = "c1", name: str = "stdout") -> str:
        path = self.work_dir / "agents" / AGENT_ID / "runs" / container_id / name
        return path.read_text() if path.exists() else ""

    async def crash(self) -> None:
        """As after kill -9: nothing is ended, nothing is told any more."""
        tasks = list(self.launcher._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for container in self.launcher._containers.values():
            if container.copying is not None:
                await container.copying.cancel()
        await self.launcher._engine.close()
        self.launcher._files.shutdown()
        self.crashed = True

    async def close_unless_crashed(self) -> None:
        if not self.crashed:
            await self.launcher.close()


@contextlib.asynccontextmanager
async def rig(dockerd: PrivateDockerd, work_dir: Path, **settings: Any) -> AsyncIterator[Rig]:
    """A launcher that has started; at the end it is closed."""
    made = Rig(dockerd, work_dir, **settings)
    try:
        await made.launcher.start()
        yield made
    finally:
        await made.launcher.close()
