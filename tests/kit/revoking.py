"""A scene for taking back: one framework holds an agent, somebody waits for it."""

from master.core import explain
from mesos_py.states import TASK_KILLED, TASK_RUNNING
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.kit.scripted import ScriptedWorld

Call = sched.Call
Event = sched.Event
PREEMPTED = pb.TaskStatus.REASON_CONTAINER_PREEMPTED
INSTANCE = {"instance": "one"}


class Scene:
    """A framework with four tasks of a cpu each on one agent, and somebody who waits."""

    def __init__(self, options=None):
        self.world = ScriptedWorld(options)
        self.agent = self.world.agent()
        self.framework = self.world.framework(failover_timeout=1000.0)
        self.other = self.world.framework("somebody")
        offer = self.world.grant(self.framework, self.agent)
        tasks = [self.world.task(f"t{n}", text="cpus:1;mem:100") for n in range(1, 5)]
        self.framework.launch(offer, *tasks)
        for task in tasks:
            self.agent.report(task.task_id.value, TASK_RUNNING, self.framework)
        self.framework.take()
        self.agent.take()

    @property
    def counters(self):
        return self.world.cluster.counters

    def take_back(self, text="cpus:2", *task_ids):
        return self.world.take_back(self.framework, self.agent, text, *task_ids or ("t1", "t2"))

    def asked(self):
        return [
            offer
            for event in self.framework.take()
            if event.type == Event.INVERSE_OFFERS
            for offer in event.inverse_offers.inverse_offers
        ]

    def end(self, task_id, state=TASK_KILLED):
        self.agent.report(task_id, state, self.framework)
        self.world.settle()

    def kills(self):
        orders = self.agent.take(agent_pb2.Event.KILL_TASK)
        return [order.kill_task for order in orders]

    def killed(self):
        return [order.task_id.value for order in self.kills()]

    def ends(self):
        return [(each.revocation.task_ids, each.freed) for each in self.world.script.ends()]

    def accept(self, offer):
        call = Call.AcceptInverseOffers(inverse_offer_ids=[offer.id])
        self.framework.call(type=Call.ACCEPT_INVERSE_OFFERS, accept_inverse_offers=call)

    def decline(self, offer):
        call = Call.DeclineInverseOffers(inverse_offer_ids=[offer.id])
        self.framework.call(type=Call.DECLINE_INVERSE_OFFERS, decline_inverse_offers=call)

    def explained(self):
        record = self.world.cluster.frameworks[self.framework.id]
        return "\n".join(explain.findings(self.world.cluster, record, self.world.clock.now()))
