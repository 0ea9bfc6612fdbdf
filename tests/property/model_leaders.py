"""A cluster whose masters die: each successor has the registry, and what is told to it.

The registry confirms writes late, and of those that were not confirmed when a master
died any first part may have been stored.  Beside all that must hold for one master:
what somebody was told is what a successor finds.
"""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from typing import Any, Final

from master.core import departures
from mesos_py.clock import Now
from mesos_py.errors import NotFound
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import registry_pb2 as reg
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.property.model_offers import OfferRules
from tests.property.model_run import Run
from tests.property.model_scheduler import Broken

# Of a thousand steps so many are of these kinds.
_STORE, _CHANGE, _MARK_GONE = 15, 12, 1
_REMOVED: Final = (
    pb.TaskStatus.REASON_AGENT_REMOVED,
    pb.TaskStatus.REASON_AGENT_REMOVED_BY_OPERATOR,
)


class LeaderRun(Run):
    """See the module's docstring."""

    durable = True

    def __init__(self, seed: int) -> None:
        self._known: set[str] = set()
        # Frameworks that some master has removed, and what agents were marked gone.
        self._removed: set[str] = set()
        self._gone: set[str] = set()
        self.counters: Counter[str] = Counter()
        super().__init__(seed)

    # ---- Steps -----------------------------------------------------------------

    def act(self, rng: random.Random) -> None:
        chance = rng.randrange(1000)
        if chance < _STORE:
            self.world.stored(rng.randint(1, 3))
            self._called = True
        elif chance < _STORE + _CHANGE:
            self._change_leader(rng)
        elif chance < _STORE + _CHANGE + _MARK_GONE:
            self._mark_gone(rng)
        else:
            super().act(rng)

    def _change_leader(self, rng: random.Random) -> None:
        """The master dies.  What was said to it and not heard is lost, and of what it has
        said the last."""
        for stream in list(self.net.streams.values()):
            self.net.break_off(stream, rng)
            stream.up.clear()
        self.net.successors = True
        waiting = len(self.net.writes)
        stored = rng.randint(0, waiting)
        self.note("a new leader, %s of %s writes arrived", stored, waiting)
        self.counters.update(self.cluster.counters)
        self.counters["leaders"] += 1
        self.counters["writes arrived unconfirmed"] += stored
        self.counters["writes lost"] += waiting - stored
        world = self.world.successor(stored, outbox=self.net)
        self.net.writes.clear()
        self.world, self.core, self.cluster = world, world.core, world.cluster
        self.rules = OfferRules(self.cluster)
        self._known = set()
        self._called = True

    def _mark_gone(self, rng: random.Random) -> None:
        """The operator says that an agent can never come back."""
        known = [agent for agent in self.cluster.agents.values() if agent.unreachable is None]
        if not known:
            return
        agent_id, now = rng.choice(known).agent_id, self.world.clock.now()
        self.note("%s is marked gone", agent_id)
        self._called = True
        self.liars.add(agent_id)  # its tasks are lost although they may run on

        def stored(then: Now) -> None:
            self._gone.add(agent_id)

        with contextlib.suppress(NotFound):  # it is being removed
            departures.mark_gone(self.cluster, agent_id, stored, now)

    # ---- What must hold ----------------------------------------------------------

    def check(self) -> None:
        super().check()
        now = set(self.cluster.frameworks)
        self._removed |= self._known - now
        self._known = now
        for agent_id in self._gone:
            agent = self.cluster.agents.get(agent_id)
            if agent is not None:
                raise Broken(f"{agent_id} was marked gone and is there: {agent}")
        self._check_single()

    def _check_single(self) -> None:
        """Nothing runs twice."""
        places: dict[tuple[str, str], str] = {}
        unsure = {each.id for each in self.all_schedulers if each.reuses or each.faulty}
        for agent in self.agents:
            for key, task in agent.tasks.items():
                if task.alive and key[0] not in unsure and key in places:
                    raise Broken(f"{key} runs on {places[key]} and on {agent.name}")
                if task.alive:
                    places[key] = agent.name

    def may_have_ended(self, framework_id: str) -> bool:
        return framework_id in self._removed

    def _sent(self, link: int, event: Any) -> None:
        super()._sent(link, event)
        if isinstance(event, agent_pb2.Event):
            if event.type == agent_pb2.Event.REGISTERED:
                record = self._record(event.registered.agent_id.value)
                if record is None or record.HasField("unreachable_time"):
                    raise Broken(f"told before it was stored: {event}")
        elif event.type == sched.Event.UPDATE:
            status = event.update.status
            if status.reason in _REMOVED:
                record = self._record(status.agent_id.value)
                marked = record is None or any(
                    record.HasField(name) for name in ("unreachable_time", "gone_time")
                )
                if not marked:
                    raise Broken(f"told before it was stored: {event}")

    def _record(self, agent_id: str) -> reg.Agent | None:
        """What a successor would certainly find."""
        value = self.world.records.get(f"agent/{agent_id}")
        return reg.Agent.FromString(value) if value is not None else None

    # ---- The end -------------------------------------------------------------------

    def deliver_all(self) -> None:
        super().deliver_all()
        while self.net.writes:
            self.world.stored()
            self._called = True
            super().deliver_all()
