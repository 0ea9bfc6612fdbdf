"""The peers of the echo server: they send and await the recorded messages."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import click

from bench.master_cpu.echo import STREAM
from bench.master_cpu.recording import AGENT, Script, load
from bench.processes import cpu_seconds
from mesos_py import rpc
from mesos_py.v1 import agent_pb2_grpc, scheduler_pb2_grpc


async def play(call: Any, script: Script) -> None:
    for inward, message in script.entries:
        if inward:
            await call.write(message)
        else:
            await call.read()


async def replay(scripts: list[Script], server: str, server_pid: int) -> dict[str, float]:
    """Once to warm up, once measured."""
    async with AsyncExitStack() as channels:
        calls = []
        for number, script in enumerate(scripts):
            channel = await channels.enter_async_context(rpc.open_channel(server))
            if script.kind == AGENT:
                method: Any = agent_pb2_grpc.AgentServiceStub(channel).Connect
            else:
                method = scheduler_pb2_grpc.SchedulerServiceStub(channel).Subscribe
            calls.append(method(metadata=((STREAM, str(number)),)))
        await asyncio.gather(*(call.initial_metadata() for call in calls))
        found = {}
        for _ in range(2):
            began, cpu = time.monotonic(), cpu_seconds([server_pid])
            await asyncio.gather(*map(play, calls, scripts))
            seconds = time.monotonic() - began
            await asyncio.sleep(0.1)  # what was sent last is read by then
            found = {"cpu_s": cpu_seconds([server_pid]) - cpu, "seconds": seconds}
        for call in calls:
            call.cancel()
    return found


@click.command()
@click.option("--recording", type=click.Path(path_type=Path), required=True)
@click.option("--server", required=True)
@click.option("--server-pid", type=int, required=True)
@click.option("--out", type=click.Path(path_type=Path), required=True)
def main(recording: Path, server: str, server_pid: int, out: Path) -> None:
    scripts = load(recording)
    gc.freeze()
    gc.disable()
    out.write_text(json.dumps(asyncio.run(replay(scripts, server, server_pid))))


if __name__ == "__main__":
    main()
