"""Gangs, whatever they are offered: all or nothing, never more than there is, and they end."""

import random
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frameworks.common.gang import Ask, Gang, Piece, Placement, never_fits, times
from frameworks.mpi.core.contest import Contest
from mesos_py import Resources

HOLD_S = 0.7
EACH = Resources.of(cpus=1, mem=100)

amounts = st.builds(
    lambda cpus, mem: Resources.of(None, cpus=cpus / 2, mem=mem * 50),
    st.integers(1, 12),
    st.integers(1, 24),
)
asks = st.builds(
    Ask,
    slots=st.integers(1, 6),
    each=st.sampled_from([Resources.of(cpus=1, mem=100), Resources.of(cpus=0.5, mem=150)]),
    per_agent=st.none() | st.integers(1, 3),
    placement=st.sampled_from(Placement),
)
# What an agent has more of, an offer that goes, or that all is given back.
steps = st.lists(
    st.tuples(st.sampled_from("abc"), amounts) | st.integers(0, 9) | st.just("back"), max_size=25
)


def sure(ask: Ask, gang: Gang, held: dict[str, Piece]) -> None:
    """What the gang says of what it holds is true."""
    shares = gang.complete()
    assert (shares is not None) == (gang.held >= ask.slots)
    if shares is None:
        return
    assert sum(share.slots for share in shares) == ask.slots
    used = Counter(offer_id for share in shares for offer_id in share.offer_ids)
    assert all(count == 1 for count in used.values())
    for share in shares:
        assert 1 <= share.slots <= ask.most
        pieces = [held[offer_id] for offer_id in share.offer_ids]
        assert {piece.agent_id for piece in pieces} == {share.agent_id}
        room = sum((piece.room for piece in pieces), Resources())
        assert room.contains(times(ask.each, share.slots))


@given(asks, steps)
def test_never_more_than_is_held_all_or_nothing_and_all_given_back(ask, steps):
    gang = Gang(ask)
    held: dict[str, Piece] = {}
    for now, step in enumerate(steps):
        if step == "back":
            assert sorted(gang.give_back()) == sorted(held)
            held.clear()
        elif isinstance(step, int):
            found = f"o{step}"
            assert gang.gone(found) == (held.pop(found, None) is not None)
        else:
            piece = Piece(f"o{now}", *step)
            if gang.offered(piece, float(now), HOLD_S):
                held[piece.offer_id] = piece
        assert (gang.due_s is not None) == bool(held)
        assert not held or gang.due(gang.due_s or 0.0)
        sure(ask, gang, held)
    assert sorted(gang.give_back()) == sorted(held)
    assert (gang.held, gang.complete(), gang.due_s) == (0, None, None)


@given(asks, st.lists(amounts, max_size=5))
def test_what_is_refused_as_too_large_is_what_all_agents_together_are_not_enough_for(ask, sizes):
    gang = Gang(ask)
    for number, size in enumerate(sizes):
        gang.offered(Piece(f"o{number}", f"a{number}", size), 0.0, HOLD_S)
    assert (never_fits(ask, sizes) == "") == (gang.complete() is not None)


class Job:
    """A gang as its caller drives it, against a cluster of the test's."""

    def __init__(self, ask: Ask) -> None:
        self.gang = Gang(ask)
        self.contest = Contest(ask, beyond=True)
        self.slots: Counter[str] = Counter()
        self.runs_until_s: float | None = None
        self.done = False

    @property
    def wants(self) -> bool:
        return self.runs_until_s is None and self.contest.contending


class World:
    """Agents with room for so many slots each.  All that is free of an agent is offered to the one
    that has least, which is fair, and as bad as it can be for gangs."""

    def __init__(self, dice: random.Random, rooms: Sequence[int], asks: Sequence[Ask]) -> None:
        self.dice = dice
        self.free = Counter({f"a{number}": room for number, room in enumerate(rooms)})
        self.jobs = [Job(ask) for ask in asks]
        self.ran: list[Job] = []

    def play(self) -> None:
        """Until all have run."""
        whole = Counter(self.free)
        for tick in range(6000):
            now_s = tick / 10
            for job in self.jobs:
                self._look(job, now_s)
            for agent in self.dice.sample(sorted(self.free), len(self.free)):
                self._offer(agent, now_s)
            if all(job.done for job in self.jobs):
                assert self.free == whole
                return
        raise AssertionError("they block each other")

    def _look(self, job: Job, now_s: float) -> None:
        if job.runs_until_s is not None and not job.done and now_s >= job.runs_until_s:
            job.done = True
            self._release(job)
        if job.gang.due(now_s):
            assert job.gang.give_back()
            self._release(job)
            job.contest.collided(now_s, HOLD_S, self.dice.random())
        job.contest.look(Resources(), now_s, self.dice.random())

    def _release(self, job: Job) -> None:
        self.free.update(job.slots)
        job.slots.clear()

    def _offer(self, agent: str, now_s: float) -> None:
        wanting = [job for job in self.jobs if job.wants and agent not in job.slots]
        if not wanting or not self.free[agent]:
            return
        least = min(job.slots.total() for job in wanting)
        job = self.dice.choice([job for job in wanting if job.slots.total() == least])
        piece = Piece(f"{agent}@{now_s}", agent, times(EACH, self.free[agent]))
        if not job.gang.offered(piece, now_s, HOLD_S * (1 + self.dice.random())):
            return
        job.slots[agent] += self.free[agent]
        self.free[agent] = 0
        shares = job.gang.complete()
        if shares is not None:
            job.gang.give_back()
            self._release(job)
            job.slots.update({share.agent_id: share.slots for share in shares})
            self.free.subtract(job.slots)
            assert min(self.free.values()) >= 0
            job.runs_until_s = now_s + 1.0
            self.ran.append(job)


@given(st.data())
def test_gangs_beside_each_other_all_run_whatever_the_agents(data):
    rooms = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    slots = data.draw(st.lists(st.integers(1, sum(rooms)), min_size=2, max_size=4))
    dice = random.Random(data.draw(st.integers(0, 2**32)))
    world = World(dice, rooms, [Ask(count, EACH) for count in slots])
    world.play()
    assert len(world.ran) == len(slots)


@pytest.mark.parametrize("jobs", [7, 20])
def test_many_gangs_that_could_all_run_beside_each_other_do_not_keep_each_other_from_it(jobs):
    ask = Ask(2, EACH, placement=Placement.ONE_PER_AGENT)
    for seed in range(5):
        world = World(random.Random(seed), [jobs, jobs], [ask] * jobs)
        world.play()
        assert len(world.ran) == jobs


@pytest.mark.parametrize("rooms", [[1, 1], [1] * 8, [4, 4]], ids=str)
def test_of_two_gangs_on_room_for_one_each_runs_in_turn_fifty_times(rooms):
    for seed in range(50):
        world = World(random.Random(seed), rooms, [Ask(sum(rooms), EACH)] * 2)
        world.play()
        first, second = world.ran
        assert (second.runs_until_s or 0.0) >= (first.runs_until_s or 0.0) + 1.0
