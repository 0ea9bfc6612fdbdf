"""Ending all docker containers of an agent that is not running."""

from __future__ import annotations

import asyncio
import functools
import os
from pathlib import Path

from agent.containers.docker.asking import Removing, answered
from agent.containers.docker.cgroups import remove_parent
from agent.containers.docker.engine import Engine
from agent.containers.docker.settings import DockerSettings, cgroup_parent


def known_agents(work_dir: str) -> set[str]:
    """The ids that agents have had in this work directory, by their sandboxes."""
    try:
        return set(os.listdir(Path(work_dir, "agents")))  # noqa: PTH208
    except OSError:
        return set()


async def clean_up(settings: DockerSettings, work_dir: str, agent_id: str) -> int:
    """Returns when none is left, with how many there were.  Raises Unavailable if dockerd
    does not answer."""
    engine = Engine(settings)
    removing = Removing(engine)
    ended = 0
    try:
        await engine.connect()
        for each in await asyncio.to_thread(known_agents, work_dir) | {agent_id} - {""}:
            find = functools.partial(engine.labelled, agent_id=each)
            for docker_id, _ in await answered(find):
                await removing.remove(docker_id)
                ended += 1
            driver = engine.dockerd.cgroup_driver
            remove_parent(cgroup_parent(settings.cgroup_root, each, driver))
    finally:
        await engine.close()
    return ended
