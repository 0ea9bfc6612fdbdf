"""Words of operators about agents: answered once they are stored, refused in words."""

import asyncio

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

from master.api.agents import AgentChannels, UsageRelay
from master.api.files import LogRelay
from master.api.operator import OperatorService, Tenure
from master.api.shell import Shell
from master.core.cluster import Options
from mesos_py.v1 import operator_pb2 as op
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import World
from tests.unit.master.api.test_operator import Aborted, context

Call = op.Call


class Scene:
    """A master whose registry answers when the test says so, and one agent."""

    def __init__(self):
        self.world = World(Options(durable=True))
        self.agent = self.world.agent("web1")
        self.shell = Shell(self.world.core, self.world.clock)
        self.channels = AgentChannels()
        relay = LogRelay(self.channels)
        self.service = OperatorService(
            self.shell, relay, UsageRelay(self.channels), {"port": "5050"}, Tenure(4.0, 5.0, 3)
        )

    def agent_id(self):
        return pb.AgentID(value=self.agent.id)

    async def ask(self, kind, **fields):
        """The answer, given when the registry has everything."""
        asked = asyncio.create_task(self.service.Execute(Call(type=kind, **fields), context()))
        await asyncio.sleep(0)
        self.world.stored()
        return await asked

    async def shown(self):
        answer = await self.ask(Call.GET_AGENTS)
        return {each.agent_info.hostname: each for each in answer.get_agents.agents}


@pytest.fixture
async def scene():
    made = Scene()
    yield made
    await made.channels.close()
    made.shell.stop()
    made.world.check()


@pytest.mark.parametrize("seconds", [2**63 - 1, 315_576_000_000, 9_223_372_037, -(2**63)])
async def test_a_grace_longer_than_can_be_written_is_refused_in_words(scene, seconds):
    drain = Call.DrainAgent(agent_id=scene.agent_id())
    drain.max_grace_period.seconds = seconds
    with pytest.raises(Aborted) as refused:
        await scene.ask(Call.DRAIN_AGENT, drain_agent=drain)
    assert refused.value.code is grpc.StatusCode.INVALID_ARGUMENT
    assert scene.world.cluster.agents[scene.agent.id].drain is None


async def test_a_drain_is_answered_once_it_is_stored(scene):
    drain = Call.DrainAgent(
        agent_id=scene.agent_id(), max_grace_period=Duration(seconds=2, nanos=5), mark_gone=True
    )
    call = Call(type=Call.DRAIN_AGENT, drain_agent=drain)
    asked = asyncio.create_task(scene.service.Execute(call, context()))
    await asyncio.sleep(0)
    assert not asked.done()
    scene.world.stored()
    assert (await asked).type == op.Response.DONE
    config = scene.world.cluster.agents[scene.agent.id].drain.config
    assert config.max_grace_period.nanoseconds == 2_000_000_005
    assert config.mark_gone
    shown = (await scene.shown())["web1"]
    assert (shown.state, shown.active, shown.deactivated) == ("connected", False, True)
    assert shown.drain_info.config == config


async def test_deactivated_and_reactivated(scene):
    deactivate = Call.DeactivateAgent(agent_id=scene.agent_id())
    await scene.ask(Call.DEACTIVATE_AGENT, deactivate_agent=deactivate)
    shown = (await scene.shown())["web1"]
    assert (shown.active, shown.deactivated) == (False, True)
    reactivate = Call.ReactivateAgent(agent_id=scene.agent_id())
    await scene.ask(Call.REACTIVATE_AGENT, reactivate_agent=reactivate)
    shown = (await scene.shown())["web1"]
    assert (shown.active, shown.deactivated) == (True, False)


async def test_an_agent_that_is_gone_is_still_shown(scene):
    gone = Call.MarkAgentGone(agent_id=scene.agent_id())
    await scene.ask(Call.MARK_AGENT_GONE, mark_agent_gone=gone)
    assert (await scene.shown())["web1"].state == "gone"


async def test_an_agent_that_is_expected_is_shown(scene):
    scene.world = scene.world.successor()
    scene.shell.core = scene.world.core
    shown = (await scene.shown())["web1"]
    assert (shown.state, shown.active) == ("expected", False)


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        (Call.DRAIN_AGENT, "drain_agent"),
        (Call.DEACTIVATE_AGENT, "deactivate_agent"),
        (Call.REACTIVATE_AGENT, "reactivate_agent"),
        (Call.MARK_AGENT_GONE, "mark_agent_gone"),
    ],
)
async def test_an_agent_that_nobody_knows_is_named(scene, kind, field):
    call = Call(type=kind)
    getattr(call, field).agent_id.value = "nobody"
    with pytest.raises(Aborted) as caught:
        await scene.service.Execute(call, context())
    assert caught.value.code == grpc.StatusCode.NOT_FOUND
    assert "agent 'nobody': unknown" in caught.value.details


async def test_who_has_gone_meanwhile_does_not_disturb(scene):
    deactivate = Call.DeactivateAgent(agent_id=scene.agent_id())
    call = Call(type=Call.DEACTIVATE_AGENT, deactivate_agent=deactivate)
    asked = asyncio.create_task(scene.service.Execute(call, context()))
    await asyncio.sleep(0)
    asked.cancel()
    await asyncio.wait([asked])
    scene.world.stored()
    assert scene.world.cluster.agents[scene.agent.id].deactivated
