"""The proof itself: each kind of disagreement among the records is found."""

import pytest

from master.core.invariants import check
from master.core.ledger import Holder
from mesos_py.errors import InternalError
from mesos_py.resources import Resources
from mesos_py.states import TASK_FINISHED
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import World


class Scene:
    """A world in good order with one of everything."""

    def __init__(self):
        self.world = World()
        self.cluster = self.world.cluster
        self.agent = self.world.agent()
        self.away = self.world.agent()
        self.framework = self.world.framework(failover_timeout=60.0)
        (first, second) = self.framework.offers()
        here = first if first.agent_id.value == self.agent.id else second
        task = self.world.custom_task("t1", own="cpus:0.1")
        self.framework.launch(here, task)
        ended = self.world.framework("ended")
        self.away.disconnect()
        self.world.advance(75)
        self.agent.pong()
        ended.call(type=sched.Call.REVIVE)
        for offer in ended.offers():
            ended.launch(offer, self.world.task("t9"))
        self.record = self.cluster.frameworks[self.framework.id]
        self.ended = ended

    def teardown(self):
        self.ended.call(type=sched.Call.TEARDOWN)
        (key,) = self.cluster.lingering
        return key


@pytest.fixture
def scene():
    made = Scene()
    check(made.cluster)
    return made


def agents_offer_is_lost(scene):
    scene.world.settle()
    agent = scene.cluster.agents[scene.agent.id]
    agent.offers.clear()


def frameworks_offer_is_lost(scene):
    scene.world.settle()
    for framework in scene.cluster.frameworks.values():
        framework.offers.clear()


def offer_too_many_at_an_agent(scene):
    scene.cluster.agents[scene.agent.id].offers.add("o99")


def offer_too_many_at_a_framework(scene):
    scene.record.offers.add("o99")


def offer_of_somebody_away(scene):
    scene.world.settle()
    (offer,) = scene.cluster.offers.values()
    scene.cluster.frameworks[offer.framework_id].link = None


def link_of_another_framework(scene):
    scene.cluster.framework_of_link[99] = scene.framework.id


def link_of_another_agent(scene):
    scene.cluster.agent_of_link[99] = scene.agent.id


def framework_whose_link_is_anothers(scene):
    del scene.cluster.framework_of_link[scene.framework.link]


def agent_whose_link_is_anothers(scene):
    del scene.cluster.agent_of_link[scene.agent.link]


def row_of_an_unreachable_agent(scene):
    scene.cluster.ledger.put_agent(scene.away.id, Resources.of(cpus=1), {})


def task_without_agent(scene):
    scene.record.tasks["t1"].agent_id = "nowhere"


def ended_task_that_is_charged(scene):
    scene.record.tasks["t1"].state = TASK_FINISHED


def living_task_that_is_not_charged(scene):
    scene.cluster.ledger.release(scene.agent.id, scene.record.tasks["t1"].holder)


def task_with_another_amount(scene):
    scene.record.tasks["t1"].resources = Resources.of(cpus=0.5)


def task_that_its_agent_does_not_know(scene):
    scene.cluster.agents[scene.agent.id].tasks.discard((scene.framework.id, "t1"))


def task_that_only_its_agent_knows(scene):
    scene.cluster.agents[scene.agent.id].tasks.add((scene.framework.id, "t7"))


def task_that_is_unreachable_and_not(scene):
    scene.record.unreachable_tasks["t1"] = scene.record.tasks["t1"]


def unreachable_task_of_no_agent(scene):
    scene.cluster.unreachable_on["A7"] = {(scene.framework.id, "t7")}


def executor_that_only_its_agent_knows(scene):
    scene.cluster.agents[scene.agent.id].executors.add((scene.framework.id, "e7"))


def charge_without_task(scene):
    holder = Holder(scene.framework.id, "*", "task", "t7")
    scene.cluster.ledger.claim(scene.agent.id, [(holder, Resources.of(mem=1))])


def charge_without_executor(scene):
    holder = Holder(scene.framework.id, "*", "executor", "e7")
    scene.cluster.ledger.claim(scene.agent.id, [(holder, Resources.of(mem=1))])


def charge_without_framework(scene):
    holder = Holder("nobody", "*", "task", "t7")
    scene.cluster.ledger.claim(scene.agent.id, [(holder, Resources.of(mem=1))])


def lingering_under_another_name(scene):
    key = scene.teardown()
    scene.cluster.lingering[key[0], "nobody", *key[2:]] = scene.cluster.lingering[key]


def lingering_and_not_charged(scene):
    key = scene.teardown()
    scene.cluster.ledger.release(key[0], scene.cluster.lingering[key])


def account_that_does_not_add_up(scene):
    scene.cluster.ledger._cluster["cpus"] += 1


DAMAGES = [
    agents_offer_is_lost,
    frameworks_offer_is_lost,
    offer_too_many_at_an_agent,
    offer_too_many_at_a_framework,
    offer_of_somebody_away,
    link_of_another_framework,
    link_of_another_agent,
    framework_whose_link_is_anothers,
    agent_whose_link_is_anothers,
    row_of_an_unreachable_agent,
    task_without_agent,
    ended_task_that_is_charged,
    living_task_that_is_not_charged,
    task_with_another_amount,
    task_that_its_agent_does_not_know,
    task_that_only_its_agent_knows,
    task_that_is_unreachable_and_not,
    unreachable_task_of_no_agent,
    executor_that_only_its_agent_knows,
    charge_without_task,
    charge_without_executor,
    charge_without_framework,
    lingering_under_another_name,
    lingering_and_not_charged,
    account_that_does_not_add_up,
]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_disagreement_is_found(scene, damage):
    damage(scene)
    with pytest.raises(InternalError):
        check(scene.cluster)


def test_what_lingers_in_good_order_is_no_disagreement(scene):
    scene.teardown()
    check(scene.cluster)
    assert scene.cluster.completed_frameworks[scene.ended.id].completed_tasks[-1].state == (
        pb.TASK_KILLED
    )
