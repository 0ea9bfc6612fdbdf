"""The floor: a bare grpc.aio server that takes the same peers back.

It reads what a peer registers with, sends the answer that a master would send, and
decides and remembers nothing.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click
import grpc.aio

from bench.processes import LOOPBACK
from mesos_py import rpc
from mesos_py.files import write_atomically
from mesos_py.v1 import agent_pb2, agent_pb2_grpc, scheduler_pb2, scheduler_pb2_grpc
from mesos_py.v1 import types_pb2 as pb

MASTER = pb.MasterInfo(
    id="5f0c2d4e-8a51-4c56-9d3e-2b7a90c1e4f6",
    ip=0x0100007F,
    port=5050,
    hostname="host-0",
    version="0.0.0",
    address=pb.Address(hostname="host-0", ip=LOOPBACK, port=5050),
)


class Bare:
    """Both services, without a master."""

    async def Connect(self, _: Any, context: grpc.aio.ServicerContext[Any, Any]) -> None:
        calls = await context.read()
        registered = agent_pb2.Event.Registered(
            agent_id=calls.calls[0].register.agent_info.id,
            ping_timeout_seconds=75,
            master_info=MASTER,
            protocol_version=rpc.PROTOCOL_VERSION,
        )
        event = agent_pb2.Event(type=agent_pb2.Event.REGISTERED, registered=registered)
        await context.write(agent_pb2.Events(events=[event], epoch=1))
        await _until_it_ends(context)

    async def Subscribe(self, _: Any, context: grpc.aio.ServicerContext[Any, Any]) -> None:
        calls = await context.read()
        subscribed = scheduler_pb2.Event.Subscribed(
            framework_id=calls.calls[0].framework_id,
            heartbeat_interval_seconds=15,
            master_info=MASTER,
            protocol_version=rpc.PROTOCOL_VERSION,
        )
        event = scheduler_pb2.Event(type=scheduler_pb2.Event.SUBSCRIBED, subscribed=subscribed)
        await context.write(scheduler_pb2.Events(events=[event]))
        await _until_it_ends(context)


async def _until_it_ends(context: grpc.aio.ServicerContext[Any, Any]) -> None:
    while await context.read() is not grpc.aio.EOF:
        pass


async def serve(port: int, port_file: Path) -> None:
    server = rpc.new_server()
    port = rpc.bind(server, LOOPBACK, port)
    bare: Any = Bare()
    scheduler_pb2_grpc.add_SchedulerServiceServicer_to_server(bare, server)
    agent_pb2_grpc.add_AgentServiceServicer_to_server(bare, server)
    await server.start()
    write_atomically(port_file, f"{port}\n")
    await server.wait_for_termination()


@click.command()
@click.option("--port", type=int, required=True)
@click.option("--port-file", type=click.Path(path_type=Path), required=True)
def main(port: int, port_file: Path) -> None:
    asyncio.run(serve(port, port_file))


if __name__ == "__main__":
    main()
