"""From a container's description to one that runs, or to why there is none."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final, Protocol

from agent.containers import sandbox
from agent.containers.docker import translate
from agent.containers.docker.asking import Pauses, answered
from agent.containers.docker.engine import Declined, Engine, Silent
from agent.containers.docker.limits import limits_of
from agent.containers.docker.pulling import ensure_image
from agent.containers.docker.records import Container, NotStarted
from agent.containers.docker.request import CreateRequest
from agent.containers.docker.settings import DockerSettings
from agent.containers.launcher import STOPPED
from agent.containers.users import User, Users
from agent.core.effects import ContainerSpec
from agent.volumes.store import VolumeStore
from mesos_py import logs
from mesos_py.executor.environment import ENDPOINT
from mesos_py.v1 import types_pb2 as pb

log = logs.get("agent.docker")

# A start that was not answered may be under way still: so long it is waited for.
START_UNSURE_S: Final = 60.0


class Fetching(Protocol):
    """Who fetches the URIs of a command into its sandbox (agent.fetcher)."""

    async def run(self, spec: ContainerSpec, find_user: Callable[[str], User]) -> None:
        """Raises why it failed."""
        ...


class Starting:
    """What all launches have in common."""

    def __init__(
        self,
        engine: Engine,
        settings: DockerSettings,
        work_dir: str,
        endpoint: str,
        fetcher: Fetching,
    ) -> None:
        self._engine = engine
        self._settings = settings
        self._work_dir = work_dir
        self._endpoint = endpoint
        self._users = Users()
        self._volumes = VolumeStore(work_dir)
        self._fetcher = fetcher
        self.socket_dir = Path(work_dir, "docker", "socket")

    async def prepare(self, container: Container, spec: ContainerSpec) -> CreateRequest:
        """Up to what can be created.  Raises NotStarted, MesosPyError, OSError, EngineError."""
        if spec.command.uris:
            await unless_asked(container, self._fetcher.run(spec, self._users.find))
        # What was fetched may be in the way of what volumes name: looked at afterwards.
        user = await asyncio.to_thread(self._make_sandbox, spec)
        groups = tuple(user.switch[2]) if user.switch is not None else ()
        place = translate.Place(self._work_dir, user.uid, user.gid, groups, str(self.socket_dir))
        request = translate.create_request(spec, place, self._settings, self._engine.dockerd)
        force = spec.container is not None and spec.container.docker.force_pull_image
        await unless_asked(
            container, ensure_image(self._engine, self._settings, request.image, force=force)
        )
        # They may have changed while the image was on its way.
        container.applied = limits_of(container.resources, self._settings)
        request.host.update(container.applied.arguments())
        return request

    async def create(self, container: Container, request: CreateRequest) -> str:
        """Its docker id.  If dockerd was silent, or has it already: whether that is ours.

        Raises NotStarted, EngineError; the container may then exist under its name.
        """
        async for _ in _attempts(container):
            try:
                docker_id = await self._engine.create(request)
            except Silent as silent:
                log.warning("creation not answered", container=container.container_id, error=silent)
                _stop_if_asked(container)
                continue
            except Declined as declined:
                found = None
                if declined.conflict:
                    found = await answered(lambda: self._engine.inspect(request.name))
                ours = request.config["labels"].items()
                if found is None or not found.is_new or not ours <= found.labels.items():
                    raise
                docker_id = found.docker_id
            container.stuck = False
            return docker_id
        raise AssertionError

    async def start(self, container: Container) -> None:
        """Raises NotStarted, EngineError."""
        _stop_if_asked(container)
        docker_id = container.docker_id
        try:
            await self._engine.start(docker_id)
            return
        except Silent as silent:
            log.warning("start not answered", container=container.container_id, error=silent)
        # It is not started a second time: it may have run, and ended.
        until_s = time.monotonic() + START_UNSURE_S
        async for _ in _attempts(container):
            found = await answered(lambda: self._engine.inspect(docker_id))
            if found is None or not found.is_new:
                break
            _stop_if_asked(container)
            if time.monotonic() > until_s:
                raise NotStarted("dockerd does not answer whether it starts the container")
        container.stuck = False

    def link_socket(self) -> None:
        """In a thread: the agent's socket in a directory of its own, which containers can
        be given.  A socket that is mounted itself would be the old one after the agent's
        restart.  Raises OSError."""
        original = Path(self._endpoint.removeprefix("unix:"))
        link = self.socket_dir / original.name
        if link.exists() and link.samefile(original):
            return
        temporary = link.with_name(f".{link.name}")
        temporary.unlink(missing_ok=True)
        temporary.hardlink_to(original)
        temporary.replace(link)

    def _make_sandbox(self, spec: ContainerSpec) -> User:
        """In a thread: the sandbox, what volumes name in it, and who owns it."""
        user = self._users.find(spec.user)
        directories = translate.sandbox_directories(spec.container or pb.ContainerInfo())
        with sandbox.opened(self._work_dir) as root:
            with sandbox.closing(sandbox.create(root, spec.sandbox, user.uid, user.gid)) as here:
                for name in (sandbox.STDOUT, sandbox.STDERR):
                    os.close(sandbox.open_output(here, name, user.uid, user.gid))
                for parts in directories:
                    os.close(sandbox.make_directory(here, parts, user.uid, user.gid))
        for use in spec.volumes:
            self._volumes.give(use.key, user.uid, user.gid)
        if ENDPOINT in spec.environment:
            self.link_socket()
        return user


async def unless_asked(container: Container, work: Coroutine[Any, Any, object]) -> None:
    """Do the work, or stop it when the container is to end: raises NotStarted."""
    doing = asyncio.ensure_future(work)
    asked = asyncio.ensure_future(container.asked.wait())
    try:
        await asyncio.wait((doing, asked), return_when=asyncio.FIRST_COMPLETED)
        _stop_if_asked(container)
        doing.result()
    finally:
        asked.cancel()
        doing.cancel()


def _stop_if_asked(container: Container) -> None:
    if container.signal is not None:
        raise NotStarted(STOPPED)


def _attempts(container: Container) -> Pauses:
    """From the second on the container counts as stuck."""

    def failed() -> None:
        container.stuck = True

    return Pauses(failed=failed)
