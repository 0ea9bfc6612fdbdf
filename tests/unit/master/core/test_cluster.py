"""The steps that every topic shares, where no other test comes to them."""

from master.core import cluster
from master.core.ledger import Holder
from mesos_py.errors import InvalidValue, NotFound
from mesos_py.resources import EMPTY
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import FakeAgent, World


def test_nothing_is_sent_to_who_is_away():
    world = World()
    agent, framework = world.agent(), world.framework(failover_timeout=60.0)
    c = world.cluster
    assert c.to_agent(c.agents[agent.id], agent_pb2.Event())
    assert c.to_framework(c.frameworks[framework.id], sched.Event())
    agent.disconnect()
    framework.disconnect()
    assert not c.to_agent(c.agents[agent.id], agent_pb2.Event())
    assert not c.to_framework(c.frameworks[framework.id], sched.Event())


def test_the_same_refusal_is_counted_and_the_number_of_kinds_is_limited():
    world = World()
    record = world.cluster.frameworks[world.framework().id]
    for number in range(cluster.MAX_TALLIES + 1):
        for _ in range(2):
            now = world.clock.advance(1)
            world.cluster.tally(record, "code", "x" * 1000, now, f"agent{number}")
    assert len(record.refusals) == cluster.MAX_TALLIES
    assert ("code", "agent0") not in record.refusals
    tally = record.refusals["code", "agent1"]
    assert (tally.count, tally.agent_id, len(tally.message)) == (2, "agent1", 500)


def test_a_holder_settles_once():
    world = World()
    agent, framework = world.agent(), world.framework()
    framework.start("t1")
    framework.call(type=sched.Call.TEARDOWN)
    c, now = world.cluster, world.clock.now()
    assert c.lingers(agent.id, framework.id, "task", "t1")
    assert c.settle(agent.id, framework.id, "task", "t1", now)
    assert not c.settle(agent.id, framework.id, "task", "t1", now)
    assert not c.lingers(agent.id, framework.id, "task", "t1")
    assert c.ledger.allocated(agent.id) == EMPTY
    world.check()


def test_only_what_is_in_the_history_is_recalled():
    world = World()
    agent, framework = world.agent(), world.framework()
    record = world.cluster.frameworks[framework.id]
    framework.start("t1")
    uuid = agent.report("t1", pb.TASK_FINISHED, framework)
    framework.acknowledge(agent, "t1", uuid)
    assert world.cluster.recall(record, "elsewhere", "t1") is None
    assert world.cluster.recall(record, agent.id, "t2") is None
    task = world.cluster.recall(record, agent.id, "t1")
    assert task is not None
    assert not record.completed_tasks
    ended_s = task.ended_wall_s
    world.cluster.complete(record, task, world.clock.advance(5))
    assert task.ended_wall_s == ended_s
    task.ended_wall_s = None
    world.cluster.complete(record, task, world.clock.advance(5))
    assert task.ended_wall_s == world.clock.wall_s


def test_new_ids_are_none_that_somebody_brought():
    world = World()
    world.framework(id=pb.FrameworkID(value="m-0000"))
    world.framework(id=pb.FrameworkID(value="m-0001")).call(type=sched.Call.TEARDOWN)
    assert world.cluster.new_framework_id() == "m-0002"
    agent = FakeAgent(world, "web1", "cpus:1", {})
    agent.info.id.value = "m-S0"
    agent.register()
    assert world.cluster.new_agent_id() == "m-S1"


def test_a_refusal_goes_back_in_short_form():
    world = World()
    framework = world.framework()
    error = InvalidValue("x" * 10_000, "y" * 10_000, "z" * 10_000)
    record = world.cluster.frameworks[framework.id]
    world.cluster.refuse_call(record, sched.Call.KILL, error, world.clock.now())
    (refusal,) = framework.refusals()
    assert [len(text) for text in (refusal.field, refusal.value, refusal.message)] == [500] * 3
    unknown = NotFound("agent", "S1")
    world.cluster.refuse_call(record, sched.Call.MESSAGE, unknown, world.clock.now())
    (refusal,) = framework.refusals()
    assert (refusal.field, refusal.value) == ("agent", "S1")


def test_what_held_nothing_frees_nothing():
    world = World()
    agent = world.agent()
    world.settle()
    world.cluster.release(agent.id, Holder("f", "*", "task", "t"), world.clock.now())
    assert world.cluster.allocation.wanted_since_s is None


def test_a_task_whose_agent_is_gone_is_history():
    world = World()
    agent, framework = world.agent(), world.framework(failover_timeout=60.0)
    framework.start("t1")
    agent.call(type=agent_pb2.Call.UNREGISTER)
    record = world.cluster.frameworks[framework.id]
    assert [task.task_id for task in record.completed_tasks] == ["t1"]


def test_only_so_many_ended_offers_are_remembered(monkeypatch):
    monkeypatch.setattr(cluster, "MAX_ENDED_OFFERS", 2)
    world = World()
    for number in range(3):
        world.cluster.remember_offer(f"o{number}", "why")
    assert list(world.cluster.ended_offers) == ["o1", "o2"]
