"""Asks masters and agents what they think, from a host of their network.

`python -m tests.kit.chaos.probe MASTER` prints a View as JSON.  It is a process of its
own because a connection belongs to the network of the thread that made it, and gRPC
makes its connections in threads that one cannot choose.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

import click
import grpc

from mesos_py import rpc
from mesos_py.operator import OperatorClient
from mesos_py.resources import Resources
from mesos_py.v1 import agent_operator_pb2 as agent_op
from mesos_py.v1 import operator_pb2 as op
from mesos_py.v1 import types_pb2 as pb
from mesos_py.v1.agent_operator_pb2_grpc import AgentOperatorServiceStub
from tests.kit.chaos.checker import AgentView, View
from tests.kit.chaos.hosts import Host
from tests.kit.chaos.workload import ROOT
from tests.kit.chaos.writer import ROLE

_LIMIT_S: Final = 60.0
_MASTER_S: Final = 10.0
_AGENT_S: Final = 5.0


def ask(host: Host, master: str) -> View | None:
    """What is known of the cluster at this host; None if nobody could be asked."""
    argv = [sys.executable, "-m", "tests.kit.chaos.probe", master]
    try:
        ended = host.inside(
            lambda: subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=_LIMIT_S)
        )
    except subprocess.TimeoutExpired:
        return None
    if ended.returncode != 0:
        return None
    found = json.loads(ended.stdout)
    agents = tuple(
        AgentView(**{**each, "containers": tuple(each["containers"])}) for each in found["agents"]
    )
    return View(agents, tuple(found["tasks"]), found["step_failures"], found["stored"])


def look(master: str) -> View:
    """Raises MesosPyError and grpc.RpcError if somebody does not answer."""
    with OperatorClient(master, timeout_s=_MASTER_S) as client:
        tasks = client.execute(op.Call(type=op.Call.GET_TASKS)).get_tasks
        living = [*tasks.tasks, *tasks.unreachable_tasks]
        metrics = client.execute(op.Call(type=op.Call.GET_METRICS)).get_metrics.metrics
        weights = client.execute(op.Call(type=op.Call.GET_WEIGHTS)).get_weights.weight_infos
        numbers = {metric.name: metric.value for metric in metrics}
        return View(
            tuple(_agent(each) for each in client.agents()),
            tuple(task.task_id.value for task in living),
            numbers["master/step_failures"],
            next((round(each.weight) for each in weights if each.role == ROLE), None),
        )


def _agent(row: op.Response.GetAgents.Agent) -> AgentView:
    info = row.agent_info
    return AgentView(
        name=info.hostname,
        state=row.state,
        total=_text(row.total_resources),
        allocated=_text(row.allocated_resources),
        offered=_text(row.offered_resources),
        running_tasks=row.running_tasks,
        containers=_containers(f"{info.ip}:{info.port}") if row.state == "connected" else (),
    )


def _containers(address: str) -> tuple[str, ...]:
    with grpc.insecure_channel(address, options=rpc.channel_options()) as channel:
        call = agent_op.Call(type=agent_op.Call.GET_CONTAINERS)
        answer = AgentOperatorServiceStub(channel).Execute(call, timeout=_AGENT_S)
        return tuple(each.container_id.value for each in answer.get_containers.containers)


def _text(resources: Sequence[pb.Resource]) -> str:
    return str(Resources.from_proto("resources", resources)) if resources else ""


def main(argv: Sequence[str]) -> None:
    click.echo(json.dumps(asdict(look(argv[0]))))


if __name__ == "__main__":
    main(sys.argv[1:])
