"""Images: there already, or pulled within a time of their own."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping
from typing import Any, Final

from agent.containers.docker.engine import Declined, Engine, Silent
from agent.containers.docker.settings import DockerSettings
from mesos_py import logs
from mesos_py.errors import Refused, Unavailable

log = logs.get("agent.docker")

SAY_EVERY_S: Final = 10.0
AGAIN_S: Final = 1.0
_DONE: Final = ("Pull complete", "Already exists")
_MB: Final = 2**20


class Progress:
    """What dockerd says of a pull, summed up."""

    def __init__(self) -> None:
        self._layers: dict[str, str] = {}
        self._bytes: dict[str, int] = {}

    def take(self, line: Mapping[str, Any]) -> None:
        layer, status = str(line.get("id", "")), str(line.get("status", ""))
        if not layer or status.startswith("Pulling from"):
            return
        self._layers[layer] = status
        detail = line.get("progressDetail")
        if status == "Downloading" and isinstance(detail, Mapping):
            self._bytes[layer] = int(detail.get("current") or 0)

    def __str__(self) -> str:
        done = sum(status in _DONE for status in self._layers.values())
        fetched_mb = sum(self._bytes.values()) / _MB
        return f"{done} of {len(self._layers)} layers done, {fetched_mb:.1f} MB downloaded"


async def ensure_image(
    engine: Engine, settings: DockerSettings, image: str, *, force: bool
) -> None:
    """Have the image here.  Raises Refused or Unavailable naming it and the cause."""
    policy = "always" if force else settings.pull_policy
    progress = Progress()
    try:
        async with asyncio.timeout(settings.pull_timeout_s):
            while True:
                try:
                    if policy != "always" and await engine.has_image(image):
                        return
                    if policy == "never":
                        raise Refused(
                            f"image {image!r} is not on this agent, which pulls none", image=image
                        )
                    await _pull(engine, image, progress)
                    return
                except Silent as silent:
                    log.warning("pull interrupted", image=image, error=silent)
                    await asyncio.sleep(AGAIN_S)
    except Declined as declined:
        raise Unavailable(f"cannot pull image {image!r}: {declined}", image=image) from None
    except TimeoutError:
        raise Unavailable(
            f"cannot pull image {image!r}: not done within {settings.pull_timeout_s:g} s "
            f"({progress})",
            image=image,
        ) from None


async def _pull(engine: Engine, image: str, progress: Progress) -> None:
    said_s = time.monotonic()
    log.info("pulling", image=image)
    async with contextlib.aclosing(engine.pull(image)) as lines:
        async for line in lines:
            progress.take(line)
            if time.monotonic() - said_s > SAY_EVERY_S:
                said_s = time.monotonic()
                log.info("pulling", image=image, progress=str(progress))
    log.info("pulled", image=image, progress=str(progress))
