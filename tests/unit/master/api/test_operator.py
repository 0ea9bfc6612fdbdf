"""What operators and the command line ask: each call once, and each way to ask wrongly."""

import math
from typing import Any

import grpc
import pytest

from master.api.agents import AgentChannels, UsageRelay
from master.api.files import LogRelay
from master.api.operator import HANDLERS, OperatorService, Tenure
from master.api.shell import Shell
from mesos_py import rpc
from mesos_py.errors import Conflict, InvalidValue, NotFound, Unavailable
from mesos_py.resources import Resources
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import operator_pb2 as op
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from mesos_py.version import VERSION
from tests.kit.core import World

Call = op.Call


class Aborted(Exception):
    def __init__(self, code, details):
        super().__init__(f"{code.name}: {details}")
        self.code = code
        self.details = details


class Context:
    """A call's context, as far as errors go through it."""

    async def abort(self, code, details="", trailing_metadata=()):
        raise Aborted(code, details)


def context() -> Any:
    return Context()


class Scene:
    def __init__(self):
        self.world = World()
        self.shell = Shell(self.world.core, self.world.clock)
        self.channels = AgentChannels()
        self.usage = UsageRelay(self.channels)
        self.service = OperatorService(
            self.shell, LogRelay(self.channels), self.usage, {"port": "5050"}, Tenure(4.0, 5.0, 3)
        )

    async def ask(self, kind, **fields):
        return await self.service.Execute(Call(type=kind, **fields), context())

    async def refused(self, kind, **fields):
        with pytest.raises(Aborted) as caught:
            await self.ask(kind, **fields)
        return caught.value.code, caught.value.details


@pytest.fixture
async def scene():
    made = Scene()
    yield made
    await made.channels.close()
    made.shell.stop()
    made.world.check()


def named(framework=None, task=None):
    return {
        "framework_id": pb.FrameworkID(value=framework.id) if framework else None,
        "task_id": pb.TaskID(value=task) if task else None,
    }


# ---- Reading ---------------------------------------------------------------------------


# Calls that cannot be carried out without saying whom they are about.
ABOUT_SOMEBODY = {
    Call.TEARDOWN,
    Call.KILL_TASK,
    Call.DRAIN_AGENT,
    Call.DEACTIVATE_AGENT,
    Call.REACTIVATE_AGENT,
    Call.MARK_AGENT_GONE,
    Call.START_MAINTENANCE,
    Call.STOP_MAINTENANCE,
    Call.SET_QUOTA,
    Call.REMOVE_QUOTA,
    Call.RESERVE_RESOURCES,
    Call.UNRESERVE_RESOURCES,
    Call.CREATE_VOLUMES,
    Call.DESTROY_VOLUMES,
    Call.GROW_VOLUME,
    Call.SHRINK_VOLUME,
}


# Calls of Mesos that have names, so that they can be refused by name.
NOT_THERE = {
    Call.UNKNOWN,
    *(Call.LIST_FILES, Call.READ_FILE),
    # A stream, and over HTTP only.
    Call.SUBSCRIBE,
}


def test_every_call_has_a_handler():
    assert set(Call.Type.values()) - set(HANDLERS) == NOT_THERE


@pytest.mark.parametrize("kind", sorted(set(Call.Type.values()) - NOT_THERE))
async def test_an_answer_says_what_it_answers(scene, kind):
    if kind in ABOUT_SOMEBODY:
        code, _ = await scene.refused(kind)
        assert code in (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT)
        return
    response = await scene.ask(kind)
    name = Call.Type.Name(kind)
    assert op.Response.Type.Name(response.type) in (name, "DONE")


@pytest.mark.parametrize("kind", [Call.UNKNOWN, 77, -1])
async def test_a_call_that_nobody_knows_is_an_invalid_argument(scene, kind):
    code, details = await scene.refused(kind)
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert details == f"type: {kind}: is not supported by this master"


async def test_health_flags_version_and_master(scene):
    assert (await scene.ask(Call.GET_HEALTH)).get_health.healthy
    (flag,) = (await scene.ask(Call.GET_FLAGS)).get_flags.flags
    assert (flag.name, flag.value) == ("port", "5050")
    version = (await scene.ask(Call.GET_VERSION)).get_version.version_info
    assert version.version == VERSION
    assert version.protocol_version == rpc.PROTOCOL_VERSION
    master = (await scene.ask(Call.GET_MASTER)).get_master
    assert (master.master_info.id, master.start_time, master.elected_time) == ("m", 4.0, 5.0)
    assert (master.epoch, master.leading) == (3, True)


async def test_metrics_count_what_there_is_and_what_happened(scene):
    scene.world.agent()
    framework = scene.world.framework(failover_timeout=60.0)
    framework.start("t1")
    framework.call(type=77)
    scene.shell.guarded("step", lambda: 1 / 0)
    found = (await scene.ask(Call.GET_METRICS)).get_metrics.metrics
    metrics = {metric.name: metric.value for metric in found}
    assert metrics["master/agents"] == metrics["master/agents_connected"] == 1
    assert metrics["master/frameworks"] == metrics["master/tasks"] == 1
    assert metrics["master/tasks_launched"] == 1
    assert metrics["master/dropped/call-unknown"] == 1
    assert metrics["master/step_failures"] == 1


async def test_the_state_is_all_of_it(scene):
    agent = scene.world.agent()
    framework = scene.world.framework(failover_timeout=60.0)
    (offer,) = framework.offers()
    task = scene.world.custom_task("t1", own="")
    framework.launch(offer, task)
    ended = scene.world.framework("ended")
    ended.call(type=sched.Call.TEARDOWN)
    state = (await scene.ask(Call.GET_STATE)).get_state
    assert [each.agent_info.id.value for each in state.get_agents.agents] == [agent.id]
    shown = state.get_frameworks
    assert [each.framework_info.name for each in shown.frameworks] == ["f"]
    assert [each.framework_info.name for each in shown.completed_frameworks] == ["ended"]
    assert [each.task_id.value for each in state.get_tasks.tasks] == ["t1"]
    (executor,) = state.get_executors.executors
    assert executor.executor_info.executor_id.value == "e1"


async def test_tasks_live_unreachable_and_ended(scene):
    agent, other = scene.world.agent(), scene.world.agent()
    framework = scene.world.framework(failover_timeout=1e6)
    for offer in framework.offers():
        name = "here" if offer.agent_id.value == agent.id else "away"
        framework.launch(offer, scene.world.task(name), scene.world.task("big", cpus=100))
    other.disconnect()
    scene.world.advance(75)
    tasks = (await scene.ask(Call.GET_TASKS)).get_tasks
    assert [t.task_id.value for t in tasks.tasks] == ["here"]
    assert [t.task_id.value for t in tasks.unreachable_tasks] == ["away"]
    assert [t.task_id.value for t in tasks.completed_tasks] == ["big", "big"]
    wanted = Call.GetTasks(**named(framework, "away"))
    tasks = (await scene.ask(Call.GET_TASKS, get_tasks=wanted)).get_tasks
    assert (len(tasks.tasks), len(tasks.unreachable_tasks)) == (0, 1)


async def test_tasks_of_a_framework_that_nobody_knows(scene):
    wanted = Call.GetTasks(framework_id=pb.FrameworkID(value="nobody"))
    code, details = await scene.refused(Call.GET_TASKS, get_tasks=wanted)
    assert code == grpc.StatusCode.NOT_FOUND
    assert "'nobody'" in details


async def test_roles_and_weights(scene):
    scene.world.framework(role="web")
    weights = Call.UpdateWeights(
        weight_infos=[pb.WeightInfo(role="web", weight=2), pb.WeightInfo(role="db", weight=0.5)]
    )
    response = await scene.ask(Call.UPDATE_WEIGHTS, update_weights=weights)
    assert response.type == op.Response.DONE
    roles = (await scene.ask(Call.GET_ROLES)).get_roles.roles
    assert [(role.name, role.weight) for role in roles] == [("db", 0.5), ("web", 2.0)]
    shown = (await scene.ask(Call.GET_WEIGHTS)).get_weights.weight_infos
    assert [(info.role, info.weight) for info in shown] == [("db", 0.5), ("web", 2.0)]


@pytest.mark.parametrize(
    "wrong",
    [
        pb.WeightInfo(role="db", weight=0),
        pb.WeightInfo(role="db", weight=-1),
        pb.WeightInfo(role="db", weight=math.nan),
        pb.WeightInfo(role="db", weight=math.inf),
        pb.WeightInfo(role="a b", weight=1),
        pb.WeightInfo(weight=1),
    ],
)
async def test_one_wrong_weight_and_none_is_set(scene, wrong):
    infos = [pb.WeightInfo(role="web", weight=2), wrong]
    weights = Call.UpdateWeights(weight_infos=infos)
    code, _ = await scene.refused(Call.UPDATE_WEIGHTS, update_weights=weights)
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert scene.world.cluster.weights == {}


# ---- Changing ----------------------------------------------------------------------------


async def test_a_teardown_ends_the_framework_once(scene):
    framework = scene.world.framework()
    wanted = Call.Teardown(framework_id=framework.info.id)
    assert (await scene.ask(Call.TEARDOWN, teardown=wanted)).type == op.Response.DONE
    code, details = await scene.refused(Call.TEARDOWN, teardown=wanted)
    assert code == grpc.StatusCode.NOT_FOUND
    assert "has ended already" in details


def kill(framework=None, task="t1", grace_ns=None):
    wanted = Call.KillTask(**named(framework, task))
    if grace_ns is not None:
        wanted.kill_policy.grace_period.nanoseconds = grace_ns
    return wanted


async def test_a_kill_by_the_tasks_id_alone(scene):
    agent, framework = scene.world.agent(), scene.world.framework()
    framework.start("t1")
    agent.take()
    response = await scene.ask(Call.KILL_TASK, kill_task=kill(grace_ns=7))
    assert response.type == op.Response.DONE
    (event,) = agent.take(agent_pb2.Event.KILL_TASK)
    assert event.kill_task.kill_policy.grace_period.nanoseconds == 7
    await scene.ask(Call.KILL_TASK, kill_task=kill(framework))
    (event,) = agent.take(agent_pb2.Event.KILL_TASK)
    assert not event.kill_task.HasField("kill_policy")


async def test_a_kill_of_a_task_on_an_unreachable_agent_waits_for_it(scene):
    agent, framework = scene.world.agent(), scene.world.framework(failover_timeout=1e6)
    framework.start("t1")
    agent.disconnect()
    scene.world.advance(75)
    await scene.ask(Call.KILL_TASK, kill_task=kill())
    running = agent.task("t1", framework, pb.TASK_RUNNING)
    events = agent.register(tasks=[running], frameworks=[framework.info])
    assert agent_pb2.Event.KILL_TASK in [event.type for event in events]


@pytest.mark.parametrize(
    ("task", "grace_ns", "code"),
    [
        ("", None, grpc.StatusCode.INVALID_ARGUMENT),
        ("nonsense", None, grpc.StatusCode.NOT_FOUND),
        ("t1", -1, grpc.StatusCode.INVALID_ARGUMENT),
    ],
)
async def test_a_kill_that_cannot_be(scene, task, grace_ns, code):
    agent, framework = scene.world.agent(), scene.world.framework()
    framework.start("t1")
    agent.take()
    found, _ = await scene.refused(Call.KILL_TASK, kill_task=kill(None, task, grace_ns))
    assert found == code
    assert agent.take(agent_pb2.Event.KILL_TASK) == []


async def test_a_kill_of_what_has_ended_is_a_conflict(scene):
    scene.world.agent()
    framework = scene.world.framework()
    framework.start("t1", text="cpus:100")
    code, details = await scene.refused(Call.KILL_TASK, kill_task=kill())
    assert code == grpc.StatusCode.ABORTED
    assert details == "task 't1' has ended already: ERROR"


# ---- Finding -------------------------------------------------------------------------------


async def test_the_live_task_is_found_before_ended_ones_of_its_id(scene):
    agent, framework = scene.world.agent(), scene.world.framework(failover_timeout=60.0)
    for _ in range(2):
        (offer,) = framework.offers()
        framework.launch(offer, scene.world.task("t1", cpus=100))
    framework.start("t1")
    assert scene.service.find_task("", "t1").state == pb.TASK_STAGING
    uuid = agent.report("t1", pb.TASK_FINISHED, framework)
    framework.acknowledge(agent, "t1", uuid)
    assert scene.service.find_task(framework.id, "t1").state == pb.TASK_FINISHED


async def test_a_task_of_an_ended_framework_is_found(scene):
    scene.world.agent()
    framework = scene.world.framework()
    framework.start("t1")
    framework.call(type=sched.Call.TEARDOWN)
    assert scene.service.find_task("", "t1").state == pb.TASK_KILLED
    assert scene.service.find_task(framework.id, "t1").state == pb.TASK_KILLED


async def test_one_id_in_two_frameworks_needs_a_name(scene):
    world = scene.world
    ends = []
    for name in ("first", "second"):
        world.agent(resources="cpus:1;mem:32")
        framework = world.framework(name, failover_timeout=60.0)
        framework.start("t1", text="cpus:1;mem:32")
        ends.append(framework)
    with pytest.raises(Conflict, match="several frameworks have it") as caught:
        scene.service.find_task("", "t1")
    assert all(framework.id in str(caught.value) for framework in ends)
    assert scene.service.find_task(ends[0].id, "t1").framework_id == ends[0].id


async def test_tasks_that_are_not_there(scene):
    framework = scene.world.framework()
    with pytest.raises(InvalidValue, match="must not be empty"):
        scene.service.find_task("", "")
    with pytest.raises(NotFound, match="task 'x'"):
        scene.service.find_task(framework.id, "x")
    with pytest.raises(NotFound, match="framework 'nobody'"):
        scene.service.find_task("nobody", "x")


# ---- Explaining ------------------------------------------------------------------------------


async def explained(scene, framework=None, task=None):
    response = await scene.ask(Call.EXPLAIN, explain=Call.Explain(**named(framework, task)))
    return response.explain.frameworks


async def test_every_framework_is_explained(scene):
    scene.world.agent()
    framework = scene.world.framework("one")
    scene.world.framework("two")
    framework.call(type=sched.Call.SUPPRESS, suppress=sched.Call.Suppress(roles=["nonsense"]))
    one, two = await explained(scene)
    assert (one.name, two.name) == ("one", "two")
    assert not one.HasField("last_offer_time")
    (refusal,) = one.refusals
    assert (refusal.code, refusal.count) == ("invalid-value", 1)
    scene.world.settle()
    one, two = await explained(scene)
    assert [each.offers_sent for each in (one, two)] in ([1, 0], [0, 1])
    assert one.HasField("last_offer_time") != two.HasField("last_offer_time")


async def test_a_framework_that_has_ended_is_said_to_have(scene):
    framework = scene.world.framework()
    framework.call(type=sched.Call.TEARDOWN)
    (entry,) = await explained(scene, framework)
    assert list(entry.findings) == ["the framework has ended"]
    assert len(await explained(scene)) == 0


async def test_a_task_that_runs_or_ran_is_explained(scene):
    scene.world.agent("web1")
    framework = scene.world.framework()
    framework.start("t1")
    (entry,) = await explained(scene, task="t1")
    assert list(entry.findings) == ["task 't1' is STAGING on web1"]
    (entry,) = await explained(scene, framework, "t1")
    assert entry.framework_id.value == framework.id


async def test_a_need_that_waits_is_explained_by_its_name(scene):
    scene.world.agent(resources="cpus:2;mem:100")
    framework = scene.world.framework()
    need = pb.Request(name="big", resources=Resources.parse("cpus:100").to_proto())
    framework.call(type=sched.Call.REQUEST, request=sched.Call.Request(requests=[need]))
    for owner in (None, framework):
        (entry,) = await explained(scene, owner, "big")
        assert entry.findings[0] == "'big' needs 100 cpus, largest agent has 2"
        assert entry.requests[0].name == "big"


@pytest.mark.parametrize("known", [True, False])
async def test_what_is_not_there_cannot_be_explained(scene, known):
    framework = scene.world.framework()
    wanted = Call.Explain(task_id=pb.TaskID(value="x"))
    if known:
        wanted.framework_id.value = framework.id
    code, _ = await scene.refused(Call.EXPLAIN, explain=wanted)
    assert code == grpc.StatusCode.NOT_FOUND
    wanted = Call.Explain(framework_id=pb.FrameworkID(value="nobody"))
    code, _ = await scene.refused(Call.EXPLAIN, explain=wanted)
    assert code == grpc.StatusCode.NOT_FOUND


# ---- When something is broken --------------------------------------------------------------------


async def test_a_fault_of_ours_is_an_internal_error_and_the_master_stays_up(scene):
    agent = scene.world.agent()
    scene.world.cluster.agents[agent.id].total = None
    code, _ = await scene.refused(Call.GET_AGENTS)
    assert code == grpc.StatusCode.INTERNAL
    scene.world.cluster.agents[agent.id].total = scene.world.cluster.ledger.free(agent.id)
    assert (await scene.ask(Call.GET_AGENTS)).get_agents.agents


# ---- Logs ----------------------------------------------------------------------------------------


async def chunks(scene, task, framework_id=""):
    request = agent_pb2.ReadLogRequest(
        framework_id=pb.FrameworkID(value=framework_id), task_id=pb.TaskID(value=task)
    )
    return [chunk async for chunk in scene.service.ReadLog(request, context())]


class Relay(LogRelay):
    """Stands for the way to the agent."""

    def __init__(self, found):
        self.found = found

    async def read(self, cluster, task, request):
        if isinstance(self.found, Exception):
            raise self.found
        for data in self.found:
            yield agent_pb2.LogChunk(data=data)


async def test_a_log_comes_from_the_tasks_agent(scene):
    scene.world.agent()
    framework = scene.world.framework()
    framework.start("t1")
    scene.service = OperatorService(
        scene.shell, Relay([b"a", b"b"]), scene.usage, {}, Tenure(0, 0, 1)
    )
    assert [chunk.data for chunk in await chunks(scene, "t1")] == [b"a", b"b"]


async def test_a_log_of_nothing_or_of_an_agent_that_is_away(scene):
    with pytest.raises(Aborted) as caught:
        await chunks(scene, "nonsense")
    assert caught.value.code == grpc.StatusCode.NOT_FOUND
    scene.world.agent()
    framework = scene.world.framework()
    framework.start("t1")
    scene.service = OperatorService(
        scene.shell, Relay(Unavailable("agent is away")), scene.usage, {}, Tenure(0, 0, 1)
    )
    with pytest.raises(Aborted) as caught:
        await chunks(scene, "t1")
    assert caught.value.code == grpc.StatusCode.UNAVAILABLE
