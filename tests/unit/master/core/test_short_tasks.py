"""Room that is kept for short tasks: offered, launched on, and known again after a failover."""

from dataclasses import replace

import pytest

from master.allocator.base import AllocatorOptions, Event, Grant, Refusal
from master.allocator.drf import DrfAllocator
from master.api import convert
from master.core.offers import make_offers
from mesos_py.resources import Resources
from mesos_py.states import TASK_ERROR, TASK_RUNNING
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import World

CPUS = 4000


class Keeping(DrfAllocator):
    """Grants of agents on the hosts that are named are for short tasks."""

    def __init__(self, **seconds):
        super().__init__(AllocatorOptions())
        self.seconds = seconds
        self.heard: list[Event] = []

    def tell(self, event):
        self.heard.append(event)
        super().tell(event)

    def allocate(self, view, now_s):
        grants = super().allocate(view, now_s)
        hosts = [self._agents[grant.agent_id].host.hostname for grant in grants]
        return [
            replace(grant, max_task_s=self.seconds.get(host))
            for grant, host in zip(grants, hosts, strict=True)
        ]


class Scene:
    def __init__(self, **seconds):
        self.allocator = Keeping(**seconds)
        self.world = World(allocator=self.allocator)
        self.agent = self.world.agent("h1")
        self.framework = self.world.framework(failover_timeout=1e6)

    @property
    def c(self):
        return self.world.cluster

    def long_cpus(self):
        """What is charged on the agent, but for short tasks."""
        return self.c.ledger.held_for_long(self.agent.id).get("cpus", 0)

    def launched(self):
        """What the agent was told to run."""
        runs = self.agent.take(agent_pb2.Event.RUN_TASKS)
        return [info for run in runs for info in run.run_tasks.tasks]

    def errors(self):
        return [(u.task_id.value, u.state, u.message) for u in self.framework.updates()]


@pytest.fixture
def scene():
    made = Scene(h1=60.0)
    yield made
    made.world.check()


def limit_s(info):
    return info.max_completion_time.nanoseconds / 1e9


def with_limit(task, seconds):
    task.max_completion_time.nanoseconds = int(seconds * 1e9)
    return task


def test_the_offer_says_how_long_tasks_may_run_and_is_not_charged_as_long(scene):
    (offer,) = scene.framework.offers()
    assert offer.max_task_duration.nanoseconds == 60 * 10**9
    assert scene.long_cpus() == 0
    assert scene.c.ledger.held(scene.framework.id, "*")["cpus"] == CPUS


def test_other_offers_say_nothing_of_that():
    scene = Scene(other=60.0)
    (offer,) = scene.framework.offers()
    assert not offer.HasField("max_task_duration")
    assert scene.long_cpus() == CPUS
    # It is the master who says whether a task is short.
    task = scene.world.task("t1")
    task.short = True
    scene.framework.launch(offer, task)
    (info,) = scene.launched()
    assert (info.HasField("short"), info.HasField("max_completion_time")) == (False, False)
    assert scene.long_cpus() == 1000
    scene.world.check()


def test_tasks_there_are_short_and_end_in_time(scene):
    (offer,) = scene.framework.offers()
    tasks = [
        scene.world.task("t1"),
        with_limit(scene.world.task("t2"), 5),
        with_limit(scene.world.task("t3"), 3600),
    ]
    scene.framework.launch(offer, *tasks)
    assert [(info.short, limit_s(info)) for info in scene.launched()] == [
        (True, 60.0),
        (True, 5.0),
        (True, 60.0),
    ]
    record = scene.c.frameworks[scene.framework.id].tasks["t1"]
    assert record.short
    assert convert.task_message(record).short
    assert scene.long_cpus() == 0
    assert scene.c.ledger.held(scene.framework.id, "*")["cpus"] >= 3000
    uuid = scene.agent.report("t1", pb.TASK_FINISHED, scene.framework)
    scene.framework.acknowledge(scene.agent, "t1", uuid)
    assert "t1" not in scene.c.frameworks[scene.framework.id].tasks


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf"), 1e10])
def test_a_time_that_is_none_makes_no_offer(seconds):
    scene = Scene(h1=seconds)
    scene.world.core.tick(scene.world.clock.advance(0.02))
    assert scene.framework.take() == []
    assert scene.c.counters["dropped/grant-stale"] == 1
    scene.world.check()


# ---- Offers of both kinds --------------------------------------------------------------


def test_offers_of_both_kinds_cannot_be_used_together(scene):
    made = two_offers(scene, None, 60.0)
    scene.framework.accept(made, [launch_of(scene, made[0], "t1")])
    assert scene.errors() == [
        (
            "t1",
            pb.TASK_LOST,
            f"offer_ids: {made[1].id.value!r}: some of the offers are kept for short tasks, "
            "others are not",
        )
    ]


def test_of_several_short_offers_the_shortest_time_counts(scene):
    made = two_offers(scene, 60.0, 30.0)
    scene.framework.accept(made, [launch_of(scene, made[0], "t1", text="cpus:4;mem:32")])
    (info,) = scene.launched()
    assert limit_s(info) == 30.0
    assert scene.long_cpus() == 0


def two_offers(scene, *seconds):
    """The agent in two offers, each with its time."""
    half = Resources.parse("cpus:2;mem:2048")
    grants = [Grant(scene.framework.id, "*", scene.agent.id, half, each) for each in seconds]
    make_offers(scene.c, grants, scene.world.clock.now())
    return [offer for event in scene.framework.take() for offer in event.offers.offers]


def launch_of(scene, offer, task_id, text="cpus:1;mem:32"):
    task = scene.world.task(task_id, text=text)
    task.agent_id.CopyFrom(offer.agent_id)
    launch = pb.Offer.Operation.Launch(task_infos=[task])
    return pb.Offer.Operation(type=pb.Offer.Operation.LAUNCH, launch=launch)


# ---- Custom executors ------------------------------------------------------------------


def test_an_executor_with_resources_of_its_own_is_not_started_there(scene):
    (offer,) = scene.framework.offers()
    scene.framework.launch(offer, scene.world.custom_task("t1", own="cpus:0.5;mem:64"))
    assert scene.errors() == [
        (
            "t1",
            TASK_ERROR,
            "executor.resources: 'cpus:0.5;mem:64': an executor cannot be started on what is "
            "kept for tasks of at most 60 s",
        )
    ]
    assert scene.c.ledger.allocated(scene.agent.id).scalars == {}


def test_an_executor_that_needs_nothing_for_itself_is(scene):
    (offer,) = scene.framework.offers()
    scene.framework.launch(offer, scene.world.custom_task("t1", own=""))
    (info,) = scene.launched()
    assert (info.short, limit_s(info)) == (True, 60.0)


def test_tasks_go_there_to_an_executor_that_runs_on_other_room():
    scene = Scene()
    (offer,) = scene.framework.offers()
    scene.framework.launch(offer, scene.world.custom_task("t1"))
    scene.launched()
    charged = scene.long_cpus()
    scene.allocator.seconds["h1"] = 60.0
    (offer,) = scene.framework.offers()
    scene.framework.launch(offer, scene.world.custom_task("t2"))
    (info,) = scene.launched()
    assert info.short
    assert scene.long_cpus() == charged
    scene.world.check()


# ---- After a failover ------------------------------------------------------------------


def registered_with(short, known=None):
    """A new master, and an agent that comes to it with one task."""
    scene = Scene() if known is None else known
    scene.agent.register(
        tasks=[scene.agent.task("t1", scene.framework, TASK_RUNNING, short=short)],
        frameworks=[scene.framework.info],
    )
    return scene


@pytest.mark.parametrize(("short", "long_cpus"), [(True, 0), (False, 1000)])
def test_a_new_master_hears_from_the_agent_which_tasks_are_short(short, long_cpus):
    scene = registered_with(short)
    (task,) = scene.c.frameworks[scene.framework.id].tasks.values()
    assert task.short is short
    held = dict(scene.c.ledger.allocations(scene.agent.id))
    assert list(held) == [task.holder]
    assert sum(r.scalars["cpus"] for h, r in held.items() if not h.short) == long_cpus
    scene.agent.report("t1", pb.TASK_FINISHED, scene.framework)
    scene.world.check()
    assert scene.c.ledger.allocated(scene.agent.id).scalars == {}


def test_what_the_master_knows_comes_before_what_the_agent_says(scene):
    (offer,) = scene.framework.offers()
    scene.framework.launch(offer, scene.world.task("t1"))
    registered_with(short=False, known=scene)
    (task,) = scene.c.frameworks[scene.framework.id].tasks.values()
    assert task.short
    assert scene.long_cpus() == 0


def test_a_task_whose_framework_has_ended_stays_short_until_it_is_gone(scene):
    (offer,) = scene.framework.offers()
    scene.framework.launch(offer, scene.world.task("t1"))
    scene.framework.call(type=sched.Call.TEARDOWN)
    registered_with(short=False, known=scene)
    assert scene.long_cpus() == 0


def test_a_task_that_was_unreachable_comes_back_short(scene):
    (offer,) = scene.framework.offers()
    scene.framework.launch(offer, scene.world.task("t1"))
    scene.agent.disconnect()
    scene.world.advance(80)
    registered_with(short=True, known=scene)
    (task,) = scene.c.frameworks[scene.framework.id].tasks.values()
    assert task.short
    assert [holder.short for holder in scene.c.ledger.allocations(scene.agent.id)] == [True]


def test_what_is_declined_is_declined_for_short_tasks_only(scene):
    told: list[Event] = []
    scene.allocator.heard = told
    (offer,) = two_offers(scene, 60.0)
    scene.framework.decline(offer, refuse_s=5.0)
    (refusal,) = [event for event in told if isinstance(event, Refusal)]
    assert refusal.max_task_s == 60.0
