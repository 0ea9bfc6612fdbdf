"""What the master asks of agents: in parallel, within a time, and who is missing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from master.api import agents as asking
from master.api.agents import AgentChannels, UsageRelay, address_of
from mesos_py import rpc
from mesos_py.errors import InvalidValue, NotFound
from mesos_py.v1 import operator_pb2 as op
from mesos_py.v1 import types_pb2 as pb
from mesos_py.v1.agent_operator_pb2 import Call, Response
from mesos_py.v1.agent_operator_pb2_grpc import (
    AgentOperatorServiceServicer,
    add_AgentOperatorServiceServicer_to_server,
)
from tests.kit.core import FakeAgent, FakeFramework, World

Container = Response.GetContainers.Container


class Answers(AgentOperatorServiceServicer):
    """An agent's server with these containers; `hangs` until it is cancelled."""

    def __init__(self) -> None:
        self.containers: list[Container] = []
        self.hangs = False
        self.server = rpc.new_server()
        add_AgentOperatorServiceServicer_to_server(self, self.server)

    async def Execute(self, request: Call, context: Any) -> Response:
        assert request.type == Call.GET_CONTAINERS
        if self.hangs:
            await asyncio.Event().wait()
        return Response(get_containers=Response.GetContainers(containers=self.containers))


class Scene:
    def __init__(self) -> None:
        self.world = World()
        self.channels = AgentChannels()
        self.relay = UsageRelay(self.channels)
        self.servers: list[Answers] = []

    async def agent(self, name: str, *containers: Container) -> tuple[FakeAgent, Answers]:
        answers = Answers()
        answers.containers = list(containers)
        port = rpc.bind(answers.server, "127.0.0.1", 0)
        await answers.server.start()
        self.servers.append(answers)
        agent = FakeAgent(self.world, name, "cpus:4;mem:4096", {})
        agent.info.port = port
        agent.register()
        return agent, answers

    async def usage(self, **call: Any) -> op.Response.GetUsage:
        return await self.relay.usage(self.world.core.cluster, op.Call.GetUsage(**call))


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    made = Scene()
    yield made
    await made.channels.close()
    for each in made.servers:
        await each.server.stop(None)
    # gRPC keeps a socket of its own as long as there is a server.
    made.servers.clear()
    made.world.check()


def container(container_id: str, framework: FakeFramework | None = None) -> Container:
    return Container(
        container_id=pb.ContainerID(value=container_id),
        framework_id=pb.FrameworkID(value=framework.id if framework is not None else "f"),
    )


def seen(answer: op.Response.GetUsage) -> dict[str, list[str]]:
    return {
        agent.hostname: [each.container_id.value for each in agent.containers]
        for agent in answer.agents
    }


async def test_all_agents_are_asked_and_their_answers_told_apart(scene):
    first, _ = await scene.agent("a", container("c1"), container("c2"))
    await scene.agent("b")
    answer = await scene.usage()
    assert seen(answer) == {"a": ["c1", "c2"], "b": []}
    assert answer.agents[0].agent_id.value == first.id
    assert answer.agents[0].total_resources
    assert not answer.missing


async def test_one_that_hangs_one_that_is_gone_and_one_that_is_away_are_missing(scene):
    await scene.agent("good", container("c1"))
    _, hanging = await scene.agent("hangs")
    hanging.hangs = True
    _, gone = await scene.agent("gone")
    await gone.server.stop(None)
    away, _ = await scene.agent("away")
    away.disconnect()
    answer = await scene.usage(timeout_seconds=0.5)
    assert seen(answer) == {"good": ["c1"]}
    reasons = {each.hostname: each.reason for each in answer.missing}
    assert reasons.keys() == {"hangs", "gone", "away"}
    assert "did not answer within 0.5 s" in reasons["hangs"]
    assert "cannot reach agent gone" in reasons["gone"]
    assert "is not connected" in reasons["away"]


async def test_one_agent_or_one_framework(scene):
    framework = scene.world.framework()
    mine, other = container("mine", framework), container("other")
    first, _ = await scene.agent("a", mine, other)
    second, idle = await scene.agent("b", other)
    assert seen(await scene.usage(agent_id=pb.AgentID(value=second.id))) == {"b": ["other"]}
    scene.world.settle()
    framework.start("t1")
    (task,) = scene.world.core.cluster.frameworks[framework.id].tasks.values()
    # Only where it has something: the other agent is not even asked.
    idle.hangs = task.agent_id == first.id
    scene.servers[0].hangs = not idle.hangs
    answer = await scene.usage(framework_id=pb.FrameworkID(value=framework.id))
    assert seen(answer) == ({"a": ["mine"]} if idle.hangs else {"b": []})


async def test_an_answer_has_room_for_so_many_containers(scene, monkeypatch):
    monkeypatch.setattr(asking, "MAX_CONTAINERS", 3)
    await scene.agent("a", *(container(f"c{n}") for n in range(5)))
    answer = await scene.usage()
    assert (len(seen(answer)["a"]), answer.left_out) == (3, 2)


async def test_channels_of_agents_that_are_gone_are_closed(scene):
    agent, _ = await scene.agent("a")
    await scene.usage()
    cluster = scene.world.core.cluster
    address = address_of(cluster.agents[agent.id])
    assert list(scene.channels._channels) == [address]
    await scene.channels.prune(())
    assert not scene.channels._channels


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), 31])
async def test_a_time_that_cannot_be_is_named(scene, seconds):
    with pytest.raises(InvalidValue, match=r"^get_usage\.timeout_seconds: "):
        await scene.usage(timeout_seconds=seconds)


async def test_an_agent_or_framework_that_is_not_there_is_named(scene):
    with pytest.raises(NotFound, match="agent 'x'"):
        await scene.usage(agent_id=pb.AgentID(value="x"))
    with pytest.raises(NotFound, match="framework 'x'"):
        await scene.usage(framework_id=pb.FrameworkID(value="x"))
