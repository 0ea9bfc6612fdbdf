"""The floor: a bare grpc.aio server that receives and sends recorded messages.

No queue, no second task, no decision: each stream reads and writes in the order of
its script, over and over.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import grpc.aio

from bench.master_cpu.recording import Script, load
from bench.processes import LOOPBACK
from mesos_py import rpc
from mesos_py.files import write_atomically
from mesos_py.v1 import agent_pb2_grpc, scheduler_pb2_grpc

# The metadata key that tells which stream of the recording a call is.
STREAM = "stream"


class Echo:
    """Both services, without a master."""

    def __init__(self, scripts: Sequence[Script]) -> None:
        self._scripts = scripts

    async def _repeat(self, _: Any, context: grpc.aio.ServicerContext[Any, Any]) -> None:
        number = int(dict(context.invocation_metadata() or ())[STREAM])
        entries = self._scripts[number].entries
        await context.send_initial_metadata(())
        while True:
            for inward, message in entries:
                if inward:
                    if await context.read() is grpc.aio.EOF:
                        return
                else:
                    await context.write(message)

    Subscribe = Connect = _repeat


async def serve(scripts: Sequence[Script], port_file: Path) -> None:
    server = rpc.new_server()
    port = rpc.bind(server, LOOPBACK, 0)
    echo: Any = Echo(scripts)
    scheduler_pb2_grpc.add_SchedulerServiceServicer_to_server(echo, server)
    agent_pb2_grpc.add_AgentServiceServicer_to_server(echo, server)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await server.start()
    write_atomically(port_file, f"{port}\n")
    await ended.wait()
    await server.stop(0.5)


@click.command()
@click.option("--recording", type=click.Path(path_type=Path), required=True)
@click.option("--port-file", type=click.Path(path_type=Path), required=True)
def main(recording: Path, port_file: Path) -> None:
    asyncio.run(serve(load(recording), port_file))


if __name__ == "__main__":
    main()
