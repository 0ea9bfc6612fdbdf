"""`mesos-py agent --recover cleanup` or `forget`: end what an earlier run has left, and forget it.

It also works where a checkpoint cannot be read any more: the warden knows its tasks.  What is
reserved is not the run's but somebody's: only `forget` forgets it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent.checkpoint.store import Checkpoint, CheckpointUnwritable, forget_all
from agent.checks.command import end_leftovers
from agent.containers import adrift, containerizers
from agent.containers.docker.settings import docker_settings
from agent.containers.processes import become_subreaper
from agent.containers.warden_client import WardenClient, attach, forget_word
from agent.core.agent import AgentCore
from agent.core.journal import Kind
from agent.core.recovery import agent_record
from agent.core.state import Settings
from agent.isolation import base as isolation
from mesos_py import logs
from mesos_py.clock import SystemClock
from mesos_py.errors import InvalidValue
from mesos_py.files import DirectoryLock
from mesos_py.resources import Resources
from mesos_py.v1 import types_pb2 as pb

log = logs.get("agent.cleanup")

SIGKILL = 9


async def clean_up(
    work_dir: Path, isolators: tuple[str, ...], flags: Mapping[str, Any], *, keep_reserved: bool
) -> None:
    """Returns when nothing of the agent runs and its checkpoint is gone; sandboxes stay, and
    with `keep_reserved` what was reserved while it ran.

    Raises Conflict if an agent is
    running there, InvalidValue if the directory cannot be used, Unavailable if dockerd
    does not answer; with `keep_reserved` also InvalidValue, when all has ended, if nobody
    can say any more what is reserved.
    """
    lock = DirectoryLock(work_dir)
    try:
        become_subreaper()
        ended = await _end_warden(work_dir)
        agent_id, left = _read(work_dir)
        left |= adrift.of_work_dir(str(work_dir))
        ended += await _end_adrift(left)
        if agent_id:
            facts = isolation.AgentFacts(agent_id, str(work_dir), Resources(), flags)
            for factory in isolation.resolve(isolators):
                isolator = factory(facts)
                await asyncio.to_thread(isolator.recover, ())
                await asyncio.to_thread(isolator.close)
        if containerizers.DOCKER in flags.get(containerizers.FLAG, ()):
            from agent.containers.docker import cleanup

            ended += await cleanup.clean_up(docker_settings(flags), str(work_dir), agent_id)
        forget_word(str(work_dir))
        _forget(work_dir, keep_reserved)
        log.info("cleaned up", agent=agent_id, containers_ended=ended)
    finally:
        lock.release()


def _forget(work_dir: Path, keep_reserved: bool) -> None:
    if not keep_reserved:
        forget_all(work_dir)
        return
    try:
        Checkpoint(work_dir).end()
    except (InvalidValue, CheckpointUnwritable) as error:
        reason = error.reason if isinstance(error, InvalidValue) else str(error)
        text = f"what is reserved cannot be kept: {reason} (`--recover forget` would forget it)"
        raise InvalidValue("checkpoint", str(work_dir), text) from None


class _Nobody:
    def warden_said(self, messages: list[list[Any]]) -> None: ...

    def warden_lost(self) -> None: ...


async def _end_warden(work_dir: Path) -> int:
    attached = await asyncio.to_thread(attach, str(work_dir))
    if attached is None:
        return 0
    warden = WardenClient(_Nobody())
    await warden.take_over(attached)
    await warden.close()
    return sum(1 for message in attached.messages if message[0] == "have")


def _read(work_dir: Path) -> tuple[str, dict[str, adrift.Found]]:
    """The agent's id, and those of its containers that still run; as far as it is readable."""
    try:
        checkpoint = Checkpoint(work_dir)
        try:
            # What is reserved concerns nothing that runs, whether it can be read or not.
            records = [each for each in checkpoint.read() if each.kind is not Kind.RESERVED]
        finally:
            checkpoint.close()
        own = agent_record(records)
        settings = Settings(str(work_dir), executor_endpoint="")
        core = AgentCore(settings, pb.AgentInfo(), _NoIds())
        core.restore(records, SystemClock().now())
    except InvalidValue as error:
        log.warning("checkpoint cannot be read", error=error)
        return "", {}
    left: dict[str, adrift.Found] = {}
    saved = core.saved_containers()
    end_leftovers({each.container_id for each in saved})
    for each in saved:
        found = adrift.find(each.container_id, each.pid, each.start_ticks)
        if found is not None:
            left[each.container_id] = found
    return own.info.id.value if own is not None else "", left


class _NoIds:
    """Nothing is reported, so nothing needs a name."""

    def container_id(self) -> str:
        return ""

    def uuid(self) -> bytes:
        return b""


async def _end_adrift(left: dict[str, adrift.Found]) -> int:
    empty = asyncio.Event()
    remaining = set(left)

    def ended(container_id: str) -> None:
        remaining.discard(container_id)
        if not remaining:
            empty.set()

    watched = adrift.Adrift(ended)
    for container_id, found in left.items():
        watched.add(container_id, found)
        watched.signal(container_id, SIGKILL)
    if remaining:
        await empty.wait()
    return len(left)
