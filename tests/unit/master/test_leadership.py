"""Standing, leading, standing again: with an election and a registry in the test's hands."""

import asyncio
import math
from dataclasses import dataclass, field

import pytest

from master.api.agents import AgentChannels
from master.api.front import Leading
from master.flags import MasterFlags
from master.leadership import Leadership
from master.registry.memory import MemoryStorage, Shelf
from master.term import Mandate, Term
from mesos_py.election.base import Contender, Standing
from mesos_py.errors import InvalidValue, NotLeader, Superseded, Unavailable
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import operator_pb2 as op
from mesos_py.v1 import registry_pb2 as reg
from mesos_py.v1 import types_pb2 as pb


class Election(Contender):
    """One candidacy: `win` and `say` are the election's word."""

    def __init__(self):
        self.info = None
        self.stands = asyncio.Event()
        self.won = asyncio.Event()
        self.words: asyncio.Queue[Standing] = asyncio.Queue()
        self.resigned = asyncio.Event()
        self.until_s = math.inf

    async def elected(self, info):
        self.info = info
        self.stands.set()
        await self.won.wait()

    def certain_until_s(self):
        return self.until_s

    async def watch(self):
        while (standing := await self.words.get()) is not None:
            yield standing
            if standing is Standing.LOST:
                return

    async def resign(self):
        self.resigned.set()

    def say(self, standing):
        self.words.put_nowait(standing)


class Failing(MemoryStorage):
    """Fails as it is told."""

    def __init__(self, shelf, errors):
        super().__init__(shelf)
        self.errors = errors
        self.closed = False

    async def claim(self, at_least=0):
        if "claim" in self.errors:
            raise self.errors.pop("claim")
        return await super().claim(at_least)

    async def write(self, operations):
        if "write" in self.errors:
            raise self.errors.pop("write")
        await super().write(operations)

    async def close(self):
        self.closed = True


@dataclass
class Scene:
    """A master that stands; its candidacies in order."""

    leading: Leading = field(default_factory=Leading)
    shelf: Shelf = field(default_factory=Shelf)
    errors: dict = field(default_factory=dict)
    elections: list = field(default_factory=list)
    storages: list = field(default_factory=list)
    terms: list = field(default_factory=list)

    def __post_init__(self):
        self.flags = MasterFlags()
        self.channels = AgentChannels()
        self.leadership = Leadership(
            self.leading,
            lambda master_id: pb.MasterInfo(id=master_id, hostname="m", port=1),
            self._contender,
            self._storage,
            self._term,
        )
        self.running = asyncio.create_task(self.leadership.run())

    def _contender(self):
        self.elections.append(Election())
        return self.elections[-1]

    def _storage(self):
        self.storages.append(Failing(self.shelf, self.errors))
        return self.storages[-1]

    def _term(self, mandate: Mandate):
        self.terms.append(Term(self.flags, mandate, self.channels, 0.0, durable=True))
        return self.terms[-1]

    async def candidacy(self, number):
        """The `number`-th time that it stands."""
        await until(lambda: len(self.elections) > number)
        election = self.elections[number]
        async with asyncio.timeout(5):
            await election.stands.wait()
        return election

    async def lead(self, number=0):
        """Win that election; the leadership serves."""
        election = await self.candidacy(number)
        election.won.set()
        await until(lambda: self.leading.streams is not None)
        return election


async def until(done):
    async with asyncio.timeout(5):
        while not done():  # noqa: ASYNC110
            await asyncio.sleep(0)


@pytest.fixture
async def scene():
    made = Scene()
    yield made
    await made.leadership.stop()
    if not made.running.done():
        async with asyncio.timeout(5):
            await made.running
    assert all(storage.closed for storage in made.storages)
    assert all(election.resigned.is_set() for election in made.elections)
    await made.channels.close()


async def test_nobody_is_served_before_the_election_is_won_and_the_registry_claimed(scene):
    election = await scene.candidacy(0)
    with pytest.raises(NotLeader):
        scene.leading.streams_now()
    assert (scene.shelf.epoch, scene.leadership.epoch) == (0, 0)
    election.won.set()
    await until(lambda: scene.leading.streams is not None)
    assert (scene.shelf.epoch, scene.leadership.epoch) == (1, 1)
    assert scene.leadership.has_led.is_set()
    assert scene.terms[0].shell.core.cluster.info == election.info


async def test_in_doubt_it_neither_acts_nor_steps_down(scene):
    election = await scene.lead()
    term = scene.terms[0]
    election.say(Standing.LEADING)
    election.say(Standing.DOUBTFUL)
    await until(lambda: not term.certainty.certain())
    assert scene.leading.streams is term.streams
    election.say(Standing.LEADING)
    await until(term.certainty.certain)
    assert scene.leadership.doubts == 1


async def test_certainty_ends_by_itself_when_no_word_comes(scene):
    election = await scene.lead()
    assert scene.terms[0].certainty.certain()
    election.until_s = -math.inf
    assert not scene.terms[0].certainty.certain()


async def test_a_lost_leadership_ends_whole_and_the_next_one_begins_with_nothing(scene):
    for number in range(3):
        election = await scene.lead(number)
        term = scene.terms[number]
        assert len(scene.terms) == number + 1
        assert scene.leadership.epoch == number + 1
        core = term.shell.core
        assert core.cluster.counters == {}
        core.cluster.drop("something")
        election.say(Standing.LOST)
        await until(lambda lost=term: lost.certainty.over.is_set())
        await until(election.resigned.is_set)
        assert scene.leading.streams is None
        assert isinstance(term.links.ended, NotLeader)
    ids = {election.info.id for election in scene.elections if election.info}
    assert len(ids) >= 3  # ids that one leadership made cannot be those of another


async def test_what_was_stored_is_there_in_the_next_leadership(scene):
    election = await scene.lead()
    core, done = scene.terms[0].shell.core, asyncio.Event()
    core.set_weights({"web": 3.0}, scene.terms[0].shell.now(), done.set)
    async with asyncio.timeout(5):
        await done.wait()
    assert scene.shelf.records == {"weight/web": reg.Weight(weight=3.0).SerializeToString()}
    election.say(Standing.LOST)
    await scene.lead(1)
    assert scene.terms[1].shell.core.cluster.weights == {"web": 3.0}


async def test_what_fails_after_one_write_does_not_keep_the_others_waiting(scene):
    await scene.lead()
    term, done = scene.terms[0], asyncio.Event()

    def fail(now):
        raise RuntimeError("a fault of the core")

    registry, now = term.shell.core.cluster.registry, term.shell.now()
    registry.write({"weight/a": reg.Weight(weight=1.0)}, fail, now)
    registry.write({"weight/b": reg.Weight(weight=1.0)}, lambda now: done.set(), now)
    async with asyncio.timeout(5):
        await done.wait()
    assert (term.shell.failures, registry.waits) == (1, False)


async def test_a_leadership_that_another_has_superseded_ends_and_tells_nobody_that_it_was_stored(
    scene,
):
    await scene.lead()
    await MemoryStorage(scene.shelf).claim()
    term, told = scene.terms[0], []
    term.shell.core.set_weights({"web": 3.0}, term.shell.now(), lambda: told.append(1))
    await until(term.certainty.over.is_set)
    assert (told, scene.shelf.records) == ([], {})


@pytest.mark.parametrize("error", [Unavailable("no answer"), Superseded(1, 2)])
async def test_a_registry_that_cannot_be_claimed_gives_the_leadership_to_others(scene, error):
    scene.errors["claim"] = error
    election = await scene.candidacy(0)
    election.won.set()
    await until(election.resigned.is_set)
    assert scene.terms == []


async def test_a_damaged_registry_ends_the_master_with_its_words(scene):
    scene.errors["claim"] = InvalidValue("registry", "x", "is damaged")
    election = await scene.candidacy(0)
    election.won.set()
    with pytest.raises(InvalidValue, match="is damaged"):
        await scene.running
    assert election.resigned.is_set()


async def test_a_registry_that_was_lost_lets_the_leadership_pass_what_agents_have_seen(scene):
    await scene.lead()
    term = scene.terms[0]
    term.links.newer_epoch(41)
    await until(lambda: term.epoch == 42)
    assert (scene.shelf.epoch, scene.leadership.epoch) == (42, 42)
    assert term.shell.core.cluster.epoch == 42
    assert term.streams.agents.tail == agent_pb2.Events(epoch=42).SerializeToString()
    assert term.operator.tenure.epoch == 42
    term.links.newer_epoch(41)
    await asyncio.sleep(0)
    assert scene.shelf.epoch == 42


async def test_a_later_leadership_that_an_agent_has_seen_ends_ours_when_it_is_true(scene):
    await scene.lead()
    await MemoryStorage(scene.shelf).claim()
    scene.terms[0].links.newer_epoch(2)
    await until(scene.terms[0].certainty.over.is_set)
    assert scene.shelf.epoch == 2


async def test_a_stop_while_it_stands_ends_the_candidacy(scene):
    election = await scene.candidacy(0)
    await scene.leadership.stop()
    async with asyncio.timeout(5):
        await scene.running
    assert (election.resigned.is_set(), scene.terms) == (True, [])


async def test_a_stop_while_it_leads_tells_the_peers_and_gives_the_leadership_back(scene):
    election = await scene.lead()
    term = scene.terms[0]
    await scene.leadership.stop()
    async with asyncio.timeout(5):
        await scene.running
    assert isinstance(term.links.ended, Unavailable)
    assert (term.certainty.over.is_set(), election.resigned.is_set()) == (True, True)


async def test_an_operator_who_waits_is_told_when_the_leadership_ends(scene):
    election = await scene.lead()
    term = scene.terms[0]
    term.links.on_store = lambda: None  # nothing is ever stored
    waiting = asyncio.create_task(term.operator.roles.update_weights(weights_call()))
    await asyncio.sleep(0)
    election.say(Standing.LOST)
    with pytest.raises(Unavailable, match="whether it was done is not known"):
        await waiting


def weights_call():
    call = op.Call(type=op.Call.UPDATE_WEIGHTS)
    call.update_weights.weight_infos.add(role="web", weight=2.0)
    return call
