"""Commands beside a container's own processes: `docker exec`, for checks."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from agent.containers.docker.engine import Engine, EngineError, Silent

# What is kept of the output: its end.
_MAX_OUTPUT: Final = 4096
# An answer that comes before the process has quite ended is asked for again.
_TRIES: Final = 20
_AGAIN_S: Final = 0.05


class Ran(NamedTuple):
    """`code` None: it is not known how it ended."""

    code: int | None
    output: str


class Execs:
    """Runs commands in containers.  Each costs a connection and no thread while it runs."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def run(self, docker_id: str, argv: list[str], environment: Mapping[str, str]) -> Ran:
        """As the container's user, in its environment with `environment` over it, in its
        working directory.  Cancelled, it kills the command.  Raises EngineError."""
        exec_id = await self._engine.create_exec(docker_id, argv, environment)
        output = b""
        try:
            async with contextlib.aclosing(self._engine.start_exec(exec_id)) as chunks:
                async for chunk in chunks:
                    output = (output + chunk)[-_MAX_OUTPUT:]
        except (asyncio.CancelledError, Silent):
            # Whatever it does: it is not to outlive its question.
            await asyncio.shield(asyncio.ensure_future(self._kill(docker_id, exec_id)))
            raise
        code: int | None = None
        for _ in range(_TRIES):
            code, _pid = await self._engine.inspect_exec(exec_id)
            if code is not None:
                break
            await asyncio.sleep(_AGAIN_S)
        return Ran(code, output.decode("utf-8", "replace"))

    async def _kill(self, docker_id: str, exec_id: str) -> None:
        """Until it has ended: dockerd learns of its pid a moment after it has begun."""
        for _ in range(_TRIES):
            with contextlib.suppress(EngineError):
                code, pid = await self._engine.inspect_exec(exec_id)
                if code is not None:
                    return
                if pid:
                    await asyncio.to_thread(_kill, pid, docker_id)
            await asyncio.sleep(_AGAIN_S)


def _kill(pid: int, docker_id: str) -> None:
    """dockerd knows no way to end it; so by its pid on the machine, if it is the container's."""
    with contextlib.suppress(OSError):
        pidfd = os.pidfd_open(pid)
        try:
            if docker_id in Path(f"/proc/{pid}/cgroup").read_text():
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        finally:
            os.close(pidfd)
