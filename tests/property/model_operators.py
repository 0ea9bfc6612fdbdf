"""A cluster whose masters die and whose operators take machines out of service, and say
what roles may have.

Beside all that must hold without them: what is said counts once it is stored, nothing is
offered of what is out of service, where the master says "drained" nothing runs, and what
roles may have is what the registry has, and can hold together.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from master.allocator.base import AllocatorOptions
from master.allocator.drf import DrfAllocator
from master.core import departures, draining, inverse_offers, maintenance, policies
from master.core.feasibility import problems
from master.core.machines import MODE
from mesos_py.clock import Now
from mesos_py.errors import MesosPyError
from mesos_py.policy import DEFAULT_POLICY, RolePolicy
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import maintenance_pb2 as mt
from mesos_py.v1 import registry_pb2 as reg
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.kit.operators import window
from tests.property.model_agent import AgentModel
from tests.property.model_leaders import LeaderRun
from tests.property.model_options import ROLES
from tests.property.model_run import Run
from tests.property.model_scheduler import Broken

Event = agent_pb2.Event
# Of a thousand steps so many are of these kinds; masters live longer than in other runs,
# so that words about agents with tasks have time to come to their ends.
_OPERATE, _STORE, _CHANGE = 20, 40, 3
_ROLES: Final = [*ROLES, *(f"{role}/below" for role in ROLES if role != "*"), "nobody's"]
_SCALARS: Final = ("cpus", "mem")


class OperatorRun(LeaderRun):
    """See the module's docstring."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        if seed % 3 == 0:
            # Nothing has been said to it yet.
            options = AllocatorOptions(short_share=0.25, short_max_s=20.0)
            self.cluster.allocator = DrfAllocator(options)

    def act(self, rng: random.Random) -> None:
        chance = rng.randrange(1000)
        if chance < _OPERATE:
            self._called = True
            rng.choices(_WORDS, weights=_OFTEN)[0](self, rng)
        elif chance < _OPERATE + _STORE:
            self.world.stored(rng.randint(1, 3))
            self._called = True
        elif chance < _OPERATE + _STORE + _CHANGE:
            self._change_leader(rng)
        else:
            Run.act(self, rng)

    def _say(self, text: str, word: Callable[..., None], *given: Any) -> None:
        try:
            word(self.cluster, *given, self._then, self.world.clock.now())
        except MesosPyError as error:
            self.note("refused: %s: %s", text, error.message)
            self.counters[f"refused: {text}"] += 1
        else:
            self.note("%s %s", text, given)
            self.counters[text] += 1

    def _then(self, now: Now) -> None:
        self.counters["words that counted"] += 1

    # ---- Words -------------------------------------------------------------------

    def _agent_id(self, rng: random.Random) -> str:
        known = [*self.cluster.agents, *self.cluster.expected, *self.cluster.gone, "nobody"]
        return rng.choice(known)

    def _drain(self, rng: random.Random) -> None:
        config = pb.DrainConfig(mark_gone=rng.random() < 0.2)
        busy = [each.agent_id for each in self.cluster.agents.values() if each.tasks]
        agent_id = rng.choice(busy) if busy else self._agent_id(rng)
        if config.mark_gone:
            self.liars.add(agent_id)
        self._say("drain", draining.drain, agent_id, config)

    def _deactivate(self, rng: random.Random) -> None:
        self._say("deactivate", draining.deactivate, self._agent_id(rng))

    def _reactivate(self, rng: random.Random) -> None:
        out = [each for each in self.cluster.agents.values() if each.deactivated]
        agent_id = rng.choice(out).agent_id if out else self._agent_id(rng)
        self._say("reactivate", draining.reactivate, agent_id)

    def _mark_gone(self, rng: random.Random) -> None:
        agent_id = self._agent_id(rng)
        self.liars.add(agent_id)  # its tasks are lost although they may run on
        self._called = True
        self._say("mark gone", departures.mark_gone, agent_id)

    def _schedule(self, rng: random.Random) -> None:
        names = [agent.info.hostname for agent in self.agents]
        down = [each.id.hostname for each in self.cluster.planned if each.mode == MODE.DOWN]
        chosen = sorted({*rng.sample(names, rng.randint(0, len(names))), *down})
        start_s = rng.choice((1.0, 2.0))
        made = mt.Schedule(windows=[window(each, start_s=start_s) for each in chosen])
        self._say("schedule", maintenance.update_schedule, made)

    def _start(self, rng: random.Random) -> None:
        found = [each.id for each in self.cluster.planned if each.mode != MODE.DOWN]
        if not found:
            return
        chosen = rng.choice(found)
        for agent in self.agents:
            if agent.info.hostname == chosen.hostname:
                self.liars.add(agent.id)  # its tasks are lost while they end
        self._say("start", maintenance.start, [chosen])

    def _stop(self, rng: random.Random) -> None:
        found = [each.id for each in self.cluster.planned if each.mode == MODE.DOWN]
        if found:
            self._say("stop", maintenance.stop, [rng.choice(found)])

    def _roles(self, rng: random.Random) -> None:
        """One to three roles at once, some of it or all."""
        changes = [
            policies.Change(role, random_policy(rng), random_fields(rng))
            for role in rng.sample(_ROLES, rng.randint(1, 3))
        ]
        force = rng.random() < 0.3
        c, before = self.cluster, dict(self.cluster.decided_policies)
        expected: dict[str, RolePolicy] = {}

        def counts(now: Now) -> None:
            self._then(now)
            for role, policy in expected.items():
                if c.policy(role) != policy:
                    raise Broken(f"{role}: {policy} is said to be in effect: {c.policy(role)}")

        try:
            policies.update(c, changes, force, counts, self.world.clock.now())
        except MesosPyError as error:
            self.note("refused: roles: %s", error.message)
            self.counters["refused: roles"] += 1
            if c.decided_policies != before:
                raise Broken(f"refused, and it has changed something: {error.message}") from error
            return
        self.note("roles %s", [(each.role, each.policy, each.fields) for each in changes])
        self.counters["roles"] += 1
        expected.update(
            (each.role, c.decided_policies.get(each.role, DEFAULT_POLICY)) for each in changes
        )

    def _answer(self, rng: random.Random) -> None:
        """A framework answers what it was asked, or what it was not."""
        frameworks = [each for each in self.cluster.frameworks.values() if each.connected]
        offers = [*self.cluster.inverse.offers, "nothing"]
        if not frameworks:
            return
        framework, offer_id = rng.choice(frameworks), pb.OfferID(value=rng.choice(offers))
        filters, now = pb.Filters(refuse_seconds=rng.choice((0.0, 3.0))), self.world.clock.now()
        if rng.random() < 0.5:
            said = sched.Call.AcceptInverseOffers(inverse_offer_ids=[offer_id], filters=filters)
            inverse_offers.accept(self.cluster, framework, said, now)
        else:
            refused = sched.Call.DeclineInverseOffers(inverse_offer_ids=[offer_id], filters=filters)
            inverse_offers.decline(self.cluster, framework, refused, now)

    # ---- What must hold ------------------------------------------------------------

    def check(self) -> None:
        super().check()
        c = self.cluster
        honest = {each.id: each for each in self.agents if each.id and not each.faulty}
        for agent in c.agents.values():
            model = honest.get(agent.agent_id)
            drained = agent.drain is not None and agent.drain.state == pb.DRAINED
            if drained and model is not None and not model.doubtful and agent.connected:
                _check_empty(model)
            if agent.unavailability != c.machines.unavailability_of(agent.info):
                raise Broken(f"{agent.agent_id} has another absence than its machine")
            # Taken away and back before either was stored: it stays, see maintenance.py.
            if c.machines.is_down(agent.info) and c.planned.is_down(agent.info):
                raise Broken(f"{agent.agent_id} is there, and its machine is down")
        for offer in c.inverse.offers.values():
            if c.agents[offer.agent_id].unavailability is None:
                raise Broken(f"{offer} is about a machine that stays")
        self._check_policies()

        self._check_short()

    def _check_short(self) -> None:
        """Whoever leads knows which tasks are on room for short ones."""
        unsure = {each.id for each in self.all_schedulers if each.reuses or each.faulty}
        for model in self.agents:
            for (framework_id, task_id), copy in model.tasks.items():
                framework = self.cluster.frameworks.get(framework_id)
                task = framework.tasks.get(task_id) if framework is not None else None
                if task is None or task.agent_id != model.id:
                    continue
                if framework_id in unsure or model.faulty or model.doubtful:
                    continue
                self.counters["tasks on room for short ones"] += task.short
                if task.short != copy.info.short:
                    raise Broken(f"{task} is {task.short}, its agent was told {copy.info.short}")

    def _check_policies(self) -> None:
        c, found = self.cluster, recorded(self.world.records)
        if c.policies != found:
            raise Broken(f"in effect is {c.policies}, a successor would find {found}")
        endless = dict.fromkeys(_SCALARS, 10**15)
        for problem in problems(c.decided_policies, endless, {}):
            raise Broken(f"cannot hold together: {problem}")

    def _sent(self, link: int, event: Any) -> None:
        super()._sent(link, event)
        if not isinstance(event, agent_pb2.Event):
            return
        agent_id = self.cluster.agent_of_link.get(link)
        if agent_id is None:
            return
        record, early = self._record(agent_id), False
        if event.type == Event.DRAIN and event.drain.HasField("config"):
            early = record is None or record.drain_info.config != event.drain.config
        elif event.type == Event.SHUTDOWN:
            # Without a record its machine is down.
            early = record is not None and not record.HasField("gone_time")
        if early:
            raise Broken(f"told before it was stored: {event}")

    # ---- The end ---------------------------------------------------------------------

    def settle(self) -> None:
        """The machines are back, and who was drained is taken back when that is done."""
        self.deliver_all()
        found = [each.id for each in self.cluster.planned if each.mode == MODE.DOWN]
        if found:
            self._say("stop", maintenance.stop, found)
        self._say("schedule", maintenance.update_schedule, mt.Schedule())
        self.deliver_all()
        super().settle()
        for agent in list(self.cluster.agents.values()):
            if agent.draining and draining.is_empty(self.cluster, agent):
                raise Broken(f"{agent.agent_id} is empty, and drains for ever")


def recorded(records: Mapping[str, bytes]) -> dict[str, RolePolicy]:
    """What the registry says of roles."""
    found: dict[str, RolePolicy] = {}
    for key, value in records.items():
        kind, _, role = key.partition("/")
        if kind == "role":
            found[role] = policies.read_role(role, reg.Role.FromString(value))
    for key, value in records.items():
        kind, _, role = key.partition("/")
        if kind == "weight":
            weight = reg.Weight.FromString(value).weight
            found[role] = replace(found.get(role, DEFAULT_POLICY), weight=weight)
    return found


def random_policy(rng: random.Random) -> pb.RolePolicy:
    """Often nothing, sometimes what cannot be, mostly what may or may not hold."""
    made = pb.RolePolicy()
    if rng.random() < 0.3:
        made.weight = rng.choice((0.5, 1.0, 2.0, 2.0, 0.0))
    if rng.random() < 0.2:
        made.priority = rng.randint(-2, 2)
    for amounts in (made.guarantees, made.limits, made.need_limits):
        for name in _SCALARS:
            if rng.random() < 0.15:
                amounts[name].value = rng.choice((0, 1, 2, 3, 1000))
    if rng.random() < 0.1:
        made.agents.extend(rng.sample(("host1", "host2", "nowhere"), rng.randint(1, 2)))
    return made


def random_fields(rng: random.Random) -> tuple[str, ...]:
    return tuple(name for name in policies.FIELDS if rng.random() < 0.4)


def _check_empty(model: AgentModel) -> None:
    alive = [key for key, task in model.tasks.items() if task.alive]
    if alive or model.executors:
        raise Broken(f"{model.id} is said to be drained, and has {alive} {[*model.executors]}")


_TABLE: Final[Sequence[tuple[int, Callable[[OperatorRun, random.Random], None]]]] = (
    (3, OperatorRun._drain),
    (2, OperatorRun._deactivate),
    (12, OperatorRun._reactivate),
    (1, OperatorRun._mark_gone),
    (4, OperatorRun._schedule),
    (2, OperatorRun._start),
    (3, OperatorRun._stop),
    (4, OperatorRun._answer),
    (10, OperatorRun._roles),
)
_WORDS: Final = [word for _, word in _TABLE]
_OFTEN: Final = [often for often, _ in _TABLE]
