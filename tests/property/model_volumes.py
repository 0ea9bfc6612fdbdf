"""As `model_reserving`, with persistent volumes: frameworks and an operator make them, change
their size, use and destroy them, while streams are cut and daemons die.

What is in a volume is a number that it has from its beginning: it is the same one as long as
the volume is there, whoever has died meanwhile.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence

from agent.core.effects import Effect, SendMaster
from agent.core.volume_uses import VolumeKey, keys_of
from mesos_py import reserved
from mesos_py.conversions import conversion_of
from mesos_py.errors import Conflict, MesosPyError
from mesos_py.persistent import Volume
from mesos_py.reserved import is_volume, volume_of
from mesos_py.resources import EMPTY, Resources
from mesos_py.v1 import types_pb2 as pb
from mesos_py.v1.agent_pb2 import Call
from tests.kit.agent_core import AgentWorld
from tests.kit.reserving import by, create, destroy, grow, launch, reserve, shrink
from tests.property.model_reserving import Model, Party, Scheduler

DISK = Resources.of(disk=100)


class Contents:
    """What is in the volumes of an agent: they outlive it."""

    _numbers = itertools.count()

    def __init__(self) -> None:
        self.there: dict[VolumeKey, int] = {}

    def create(self, volumes: Sequence[VolumeKey]) -> None:
        for key in volumes:
            if key in self.there:
                raise Conflict(f"{key} is there")
        self.there.update((key, next(self._numbers)) for key in volumes)

    def destroy(self, volumes: Sequence[VolumeKey], generation: int) -> None:
        for key in volumes:
            del self.there[key]


class VolumesModel(Model):
    """See the module's docstring."""

    def __init__(self, dice: random.Random) -> None:
        self.contents: list[Contents] = []
        super().__init__(dice)

    def agent(self) -> AgentWorld:
        self.contents.append(Contents())
        return AgentWorld(registered=False, directories=self.contents[-1])

    def more_moves(self) -> list[Callable[[], None]]:
        return [self.operate]

    def check(self) -> None:
        super().check()
        for party, contents in zip(self.parties, self.contents, strict=True):
            state = party.agent.core.state
            assert contents.there.keys() == keys_of(state.total)
            for executor in state.executors.values():
                for task in executor.tasks.values():
                    asked = Resources.from_proto("it", task.info.resources)
                    assert keys_of(asked) <= contents.there.keys()

    # ---- Frameworks --------------------------------------------------------------------

    def operation(
        self, scheduler: Scheduler, offer: pb.Offer, left: Resources
    ) -> tuple[pb.Offer.Operation, Resources]:
        if self.dice.random() < 0.3:
            return super().operation(scheduler, offer, left)
        self._numbers += 1
        if self.dice.random() < 0.4 and any(map(is_volume, left.scalars)):
            return self.use(offer, left)
        operation_id = self.dice.choice(["", f"op{self._numbers}"])
        kind, made = self.change(left, scheduler.info.role, operation_id)
        if operation_id:
            scheduler.sent.append(operation_id)
        try:
            left = conversion_of(made, left).apply(left)
            self.seen[kind] += 1
        except MesosPyError:
            self.seen["impossible"] += 1
        return made, left

    def change(
        self, there: Resources, role: str, operation_id: str = ""
    ) -> tuple[str, pb.Offer.Operation]:
        """An operation on volumes among them, and its name."""
        disks = [key for key in sorted(there.scalars) if key.startswith("disk(")]
        if not disks:
            mine = DISK.renamed(lambda name: reserved.key_of(name, by(role, role)))
            return "reserve", reserve(mine, operation_id)
        made = [key for key in disks if is_volume(key)]
        key = self.dice.choice(made if made and self.dice.random() < 0.6 else disks)
        if not is_volume(key):
            owner = reserved.role_of(key)
            volume = Volume(f"v{self.dice.randint(1, 4)}", "data", role)
            name = reserved.key_of("disk", by(owner, owner), volume)
            return "create", create(Resources({name: 10_000}), operation_id)
        named = Resources({key: there.scalars[key]}).renamed(self.elsewhere)
        if self.dice.random() < 0.1:
            named = Resources({next(iter(named.scalars)): 10_000})
        more = Resources({reserved.disk_of(key): self.dice.choice((5_000, 5_000, 500_000))})
        kind = self.dice.choice(("destroy", "grow", "shrink"))
        if kind == "destroy":
            return kind, destroy(named, operation_id)
        if kind == "grow":
            return kind, grow(named, more, operation_id)
        return kind, shrink(named, 5, operation_id)

    def elsewhere(self, key: str) -> str:
        """The same volume, to be seen in some place."""
        volume = volume_of(key)
        assert volume is not None
        path = self.dice.choice((volume.container_path, "elsewhere"))
        stack = reserved.stack_of(key)
        return reserved.key_of("disk", stack, volume._replace(container_path=path))

    def use(self, offer: pb.Offer, left: Resources) -> tuple[pb.Offer.Operation, Resources]:
        """A task on a volume."""
        key = self.dice.choice(sorted(filter(is_volume, left.scalars)))
        whole = Resources({key: left.scalars[key]})
        task = self.world.task(f"t{self._numbers}", offer.agent_id.value)
        task.ClearField("resources")
        task.resources.extend(whole.renamed(self.elsewhere).to_proto())
        self.seen["use"] += 1
        return launch(task), left - whole

    # ---- Operators ---------------------------------------------------------------------

    def operate(self) -> None:
        """An operator does something to a volume, or tries to."""
        party: Party = self.dice.choice(self.parties)
        agent_id = party.agent.core.state.agent_id
        there = self.world.cluster.ledger.total(agent_id)
        if there is EMPTY:
            return
        _, operation = self.change(there, self.dice.choice(("ads", "web")))
        try:
            self.world.core.operate(agent_id, operation, self.world.clock.now())
            self.seen["operator"] += 1
        except MesosPyError:
            self.seen["operator in vain"] += 1


class CalmModel(VolumesModel):
    """Nothing is lost, so that agents do all that their master takes for done."""

    def cut(self, party: Party | None = None) -> None:
        assert party is None, self.world.outbox.closed

    def kill_agent(self) -> None:
        """Not here."""

    kill_master = heal = kill_agent


class Unwilling(Contents):
    """Where often a directory cannot be had."""

    def __init__(self, dice: random.Random) -> None:
        super().__init__()
        self.dice = dice

    def create(self, volumes: Sequence[VolumeKey]) -> None:
        self.hinder()
        super().create(volumes)

    def destroy(self, volumes: Sequence[VolumeKey], generation: int) -> None:
        self.hinder()
        super().destroy(volumes, generation)

    def hinder(self) -> None:
        if self.dice.random() < 0.4:
            raise Conflict("it is busy")


class UnwillingModel(VolumesModel):
    """Agents cannot do what their master takes for done, and more orders rest on that."""

    def agent(self) -> AgentWorld:
        self.contents.append(Unwilling(self.dice))
        return AgentWorld(registered=False, directories=self.contents[-1])

    def cut(self, party: Party | None = None) -> None:
        """Rarely but for what was not done: else little of that would come about."""
        if party is not None or self.dice.random() < 0.2:
            super().cut(party)

    def answer(self) -> None:
        """Often a volume is to be had anew, to be seen in another place, and used at once."""
        scheduler = self.dice.choice(self.schedulers)
        offer = next(iter(scheduler.open.values()), None)
        there = Resources.from_proto("offer", offer.resources) if offer is not None else EMPTY
        made = sorted(filter(is_volume, there.scalars))
        if offer is None or not made or self.dice.random() < 0.4:
            super().answer()
            return
        del scheduler.open[offer.id.value]
        key = self.dice.choice(made)
        new = Resources({key: there.scalars[key]}).renamed(self.elsewhere)
        task, _ = self.use(offer, new)
        operations = [destroy(Resources({key: there.scalars[key]})), create(new), task]
        scheduler.accept([offer], operations, refuse_s=0.0)
        self.seen["anew"] += 1

    def kill_agent(self) -> None:
        if self.dice.random() < 0.2:
            super().kill_agent()

    def say(self, party: Party, effects: list[Effect]) -> None:
        super().say(party, effects)
        if not party.number:
            # As an agent of an earlier version, which runs tasks on what is there all the same.
            party.agent.core.state.doubtful.clear()
        self.seen["not done"] += sum(
            isinstance(effect, SendMaster)
            and effect.call.type == Call.UPDATE_OPERATION
            and effect.call.update_operation.operation.latest_status.state == pb.OPERATION_DROPPED
            for effect in effects
        )
