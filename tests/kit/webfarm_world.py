"""A farm in a world of its own: agents, a balancer and time that do as the test says."""

from __future__ import annotations

from dataclasses import dataclass, replace

from frameworks.common.pool import Phase
from frameworks.webfarm.core.balancer import Mode, Reading, Slot
from frameworks.webfarm.core.farm import Farm, FarmRules, Instance, Order
from frameworks.webfarm.core.rollout import Rollout
from mesos_py import Resources

EACH = Resources.of(cpus=1, mem=64)


@dataclass
class Running:
    """An instance as the world has it.  well: whether it would answer."""

    instance: Instance
    well: bool = True
    killed: bool = False


class World:
    """`step` is a round of the wrapper; orders are carried out at once unless `deaf`."""

    def __init__(self, agents=4, wanted=1, most=4, batch=1, site="one", slots=8, **rules):
        self.agents = [f"agent-{number}" for number in range(agents)]
        self.rules = FarmRules(most=most, batch=batch, each=EACH, **rules)
        self.farm = Farm(self.rules, Rollout.first(site), wanted)
        self.slots = [Slot(f"s{n + 1}", Mode.FREE, "127.0.0.1", 1) for n in range(slots)]
        self.running: dict[str, Running] = {}
        self.now_s = 1000.0
        self.deaf = False
        # What new instances are like, by the version of their site.
        self.ill: set[int] = set()
        self.orders: list[Order] = []
        self._count = 0

    # ---- The cluster -------------------------------------------------------------

    def offer_all(self):
        """Every agent, once."""
        for agent in sorted(self.agents, key=self.farm.is_used):
            if not self.farm.to_start(self.now_s):
                return
            if self.farm.refusal_s(agent, self.now_s) is not None:
                continue
            address = f"10.0.0.{self.agents.index(agent) + 1}"
            port = self.farm.port_of(address, range(31000, 31010))
            if port is not None:
                self._launch(agent, address, port)

    def _launch(self, agent, address, port):
        self._count += 1
        version = self.farm.rollout.version
        instance = Instance(f"t{self._count}", agent, agent, address, port, version)
        self.farm.begin(instance, self.now_s)
        self.running[instance.task_id] = Running(instance, well=version not in self.ill)
        self.farm.running(instance.task_id)

    def end(self, task_id, fault=True, why="it ended"):
        self.running.pop(task_id, None)
        return self.farm.ended(task_id, self.now_s, fault=fault, why=why)

    # ---- The balancer --------------------------------------------------------------

    def reading(self):
        return Reading("1", 0, 0, 0, tuple(self.slots))

    def _look(self):
        """Its health checks."""
        well = {each.instance.at for each in self.running.values() if each.well}
        self.slots = [
            replace(slot, well=slot.mode is not Mode.FREE and slot.at in well)
            for slot in self.slots
        ]

    def set(self, name, **changes):
        self.slots = [replace(s, **changes) if s.name == name else s for s in self.slots]

    def slot_of(self, task_id):
        at = self.running[task_id].instance.at
        return next(s for s in self.slots if s.at == at and s.mode is not Mode.FREE)

    # ---- Time ----------------------------------------------------------------------

    def step(self, seconds=0.5):
        """One round, offers before it; what was ordered."""
        self.now_s += seconds
        self.offer_all()
        self._look()
        orders = self.farm.round(self.now_s, self.reading())
        self.orders += orders
        if not self.deaf:
            self.carry_out(orders)
        return orders

    def steps(self, count):
        for _ in range(count):
            self.step()
        return self

    def carry_out(self, orders):
        for order in orders:
            match order.what:
                case "put":
                    at = order.instance
                    self.set(order.slot, mode=Mode.HELD, address=at.address, port=at.port)
                case "open":
                    self.set(order.slot, mode=Mode.OPEN)
                case "hold":
                    self.set(order.slot, mode=Mode.HELD)
                case "free":
                    self.set(order.slot, mode=Mode.FREE, sessions=0)
                case "kill":
                    self.end(order.instance.task_id, fault=False)

    # ---- What there is ---------------------------------------------------------------

    def ids(self, phase=Phase.SERVING):
        return {each.task_id for each in self.farm.instances if self.farm.phase(each) == phase}

    def open_and_well(self):
        return [slot for slot in self.slots if slot.mode is Mode.OPEN and slot.well]

    def check(self):
        """What must hold at every moment."""
        farm = self.farm
        assert len(farm.pool) <= self.rules.most + self.rules.batch
        pairs = [(each.agent_id, each.version) for each in farm.instances]
        assert len(pairs) == len(set(pairs)), "two of a version on an agent"
        assert len({each.at for each in farm.instances}) == len(pairs), "two at one place"
        used = [slot.at for slot in self.slots if slot.mode is not Mode.FREE]
        assert len(used) == len(set(used)), "one server in two slots"


__all__ = ["World"]
