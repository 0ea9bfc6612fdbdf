"""What is taken back, on random histories: never too much, never for nothing."""

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from master.allocator.drf import DrfAllocator
from master.allocator.priority import PriorityAllocator
from master.allocator.revocation.amounts import add, covers
from mesos_py.allocation import AllocatorOptions, Need, RevocationEnded
from mesos_py.policy import RolePolicy
from mesos_py.resources import Resources
from mesos_py.testing.allocator_harness import AllocatorHarness
from mesos_py.testing.allocator_runs import RandomRun
from tests.kit.revocable import RevocableHarness

ROLES = ("r", "s", "t")
POLICIES = {"s": RolePolicy(weight=2.0), "t": RolePolicy(guarantee={"cpus": 3000})}


class Campaign:
    """Random steps; what is planned is checked against the ledger of the harness.

    Only cpus are short, so that they are what guarantees are about.
    """

    def __init__(self, seed, victims="youngest"):
        self.dice = random.Random(seed)
        # Whether an operator has promised something: else what is kept on an agent matters
        # there only.
        self.promised = self.dice.random() < 0.5
        self.h = RevocableHarness(
            policies=POLICIES if self.promised else {"s": POLICIES["s"]},
            victims=victims,
            revocation_patience_s=self.dice.choice((0.0, 1.0)),
            revocation_interval_s=self.dice.choice((0.0, 1.0)),
            revocation_cap=self.dice.choice((0.1, 1.0)),
            revocation_hold_s=self.dice.choice((2.0, 30.0)),
        )
        assert isinstance(self.h.allocator, DrfAllocator)
        self.holds = self.h.allocator.revoker.progress.holds
        self.born = 0
        self.kills = 0
        self.alone = 0
        self.choices = [
            (2, self.add_agent),
            (1, self.remove_agent),
            (1, self.toggle_agent),
            (3, self.add_framework),
            (1, self.remove_framework),
            (6, self.change_needs),
            (2, self.toggle_framework),
            (30, self.launch),
            (5, self.decline),
            (10, self.finish),
            (12, self.answer),
            (10, self.advance),
            (20, self.cycle),
        ]

    def go(self, steps):
        weights, actions = zip(*self.choices, strict=True)
        for action in self.dice.choices(actions, weights, k=steps):
            action()
        self.wind_up()

    # ---- Checks -----------------------------------------------------------------

    def cycle(self):
        h = self.h
        h.cycle()
        self.check_nobody_is_left_out()
        before = {agent_id: self.coming(agent_id) for agent_id in h.agents}
        found = h.revocations()
        self.check_guarantees(found)
        for agent_id in {one.agent_id for one in found}:
            self.check_it_helps(agent_id, [one for one in found if one.agent_id == agent_id])
            assert not covers(before[agent_id], self.holds.kept(agent_id)), "for nothing"
        wake_s = h.allocator.next_wake_s()
        assert wake_s is None or wake_s > h.now_s
        assert not h.allocator.failures()

    def check_nobody_is_left_out(self):
        if self.holds and self.promised:
            # What is kept on one agent counts for guarantees on all of them, of which the
            # harness knows nothing: it is checked when nothing is kept any more.
            return
        left_out = [one for one in self.h.left_out() if not self.holds.on(one[2])]
        assert not left_out, f"could be granted and were not: {left_out}"

    def check_guarantees(self, found):
        h = self.h
        for framework_id in {one.framework_id for one in found if one.resources.scalar("cpus")}:
            going = self.going(framework_id)
            left = h.held_by(framework_id) - going
            # What it could have at any time is not taken from it.
            lacking = h.guaranteed(framework_id) - left
            assert lacking <= 1e-9 or lacking <= self.to_be_had(found), (
                f"below a guarantee: {found}"
            )

    def going(self, framework_id):
        """Cpus that are being taken from it.  What the allocator believed to be lost, and
        planned anew, counts once."""
        mine = [one for one in self.h.open if one.framework_id == framework_id]
        tasks = {name for one in mine for name in one.task_ids if name in self.h.tasks}
        offers = dict.fromkeys(one for one in mine if not one.task_ids)
        return sum(self.h.tasks[name].resources.scalar("cpus") for name in tasks) + sum(
            one.resources.scalar("cpus") for one in offers
        )

    def to_be_had(self, found):
        """Cpus that are free, or will be, and for nobody; who has an offer and is helped
        now is thought to decline what it does not need of that."""
        h = self.h
        free = sum(h.cluster.free(agent_id).scalar("cpus") for agent_id in h.agents)
        going = sum(map(self.going, h.frameworks))
        kept = sum(self.holds.kept(agent_id).get("cpus", 0) for agent_id in h.agents)
        helped = {one.beneficiary for one in found}
        free += sum(one.resources.scalar("cpus") for one in h.held if one.framework_id in helped)
        return free + going - kept / 1000

    def check_it_helps(self, agent_id, found):
        """All for whom something is kept there will have room, and without any one of
        the victims they would not (were it not for what others may hope for there)."""
        kept = self.holds.kept(agent_id)
        coming = self.coming(agent_id)
        assert covers(self.with_own_offers(agent_id), kept), f"does not help: {found}"
        competing = set(self.h.competing())
        needy = {(f, one.role) for f, row in self.h.frameworks.items() for one in row.needs}
        if len(needy & competing) > 1:
            return
        self.alone += 1
        for one in found:
            tasks = [self.h.tasks[name].resources for name in one.task_ids]
            for resources in tasks or [one.resources]:
                less = dict(coming)
                add(less, resources.scalars, -1)
                assert not covers(less, kept), f"not needed: {resources} of {one}"

    def coming(self, agent_id):
        """What is free there or will be."""
        amounts = dict(self.h.cluster.free(agent_id).scalars)
        for hold in self.holds.on(agent_id):
            for one in hold.in_progress:
                add(amounts, one.resources.scalars)
        return amounts

    def with_own_offers(self, agent_id):
        """And with what is on offer to those for whom something is kept."""
        amounts = self.coming(agent_id)
        keepers = {(hold.framework_id, hold.role) for hold in self.holds.on(agent_id)}
        for grant in self.h.held:
            if grant.agent_id == agent_id and (grant.framework_id, grant.role) in keepers:
                add(amounts, grant.resources.scalars)
        return amounts

    def wind_up(self):
        """Everything is answered and nobody needs anything: nothing is kept any more."""
        h = self.h
        while h.open:
            h.carry_out(h.open[:1])
        for framework_id in h.frameworks:
            h.change_framework(framework_id, needs=())
        self.cycle()
        assert not self.holds
        assert not h.left_out()

    # ---- Steps -----------------------------------------------------------------------

    def add_agent(self):
        if len(self.h.agents) < 4:
            self.born += 1
            self.h.agent(f"a{self.born}", f"cpus:{self.dice.randint(1, 8)};mem:100000")

    def remove_agent(self):
        if self.h.agents:
            agent_id = self.dice.choice(list(self.h.agents))
            self.h.remove_agent(agent_id)
            for one in [one for one in self.h.open if one.agent_id == agent_id]:
                self.h.open.remove(one)
                if self.dice.random() < 0.5:
                    self.h.allocator.tell(RevocationEnded(one, freed=False))

    def toggle_agent(self):
        if self.h.agents:
            agent_id = self.dice.choice(list(self.h.agents))
            self.h.change_agent(agent_id, active=self.dice.random() < 0.8)

    def add_framework(self):
        if len(self.h.frameworks) < 5:
            self.born += 1
            roles = self.dice.sample(ROLES, self.dice.randint(1, 2))
            self.h.framework(f"f{self.born}", *roles)

    def remove_framework(self):
        if self.h.frameworks:
            framework_id = self.framework()
            self.h.remove_framework(framework_id)
            # The master has nothing to take back from one that is gone.
            for one in [one for one in self.h.open if one.framework_id == framework_id]:
                self.h.answer(one, freed=True)

    def change_needs(self):
        if self.h.frameworks:
            row = self.h.frameworks[self.framework()]
            needs = tuple(
                Need(
                    self.dice.choice(row.roles),
                    Resources.of(cpus=self.dice.choice((0.5, 1, 2, 3)), mem=1),
                    self.dice.randint(1, 6),
                    self.dice.choice((*self.h.agents, "", "", "")),
                )
                for _ in range(self.dice.choice((0, 1, 1, 2)))
            )
            self.h.change_framework(row.framework_id, needs=needs)

    def toggle_framework(self):
        if self.h.frameworks:
            framework_id = self.framework()
            if self.dice.random() < 0.5:
                self.h.change_framework(framework_id, active=self.dice.random() < 0.7)
            elif self.dice.random() < 0.5:
                self.h.suppress(framework_id)
            else:
                self.h.revive(framework_id)

    def launch(self):
        if self.h.held:
            grant = self.dice.choice(self.h.held)
            size = self.dice.choice((0.5, 1, 1, 2))
            most = int(grant.resources.scalar("cpus") // size)
            if most and grant.resources.scalar("mem") >= most:
                self.h.launch(grant, f"cpus:{size};mem:1", self.dice.randint(1, most))

    def decline(self):
        if self.h.held:
            self.h.decline(self.dice.choice(self.h.held), self.dice.choice((0.0, 5.0, 60.0)))

    def finish(self):
        if self.h.tasks:
            self.h.end(self.dice.choice(list(self.h.tasks)))

    def answer(self):
        if self.h.open:
            one = self.dice.choice(self.h.open)
            if one not in self.h.stopped and self.dice.random() < 0.9:
                self.kills += len(self.h.carry_out([one]))
            else:
                self.h.answer(one, freed=False)
            if self.dice.random() < 0.1:
                self.h.allocator.tell(RevocationEnded(one, self.dice.random() < 0.5))

    def advance(self):
        wake_s = self.h.allocator.next_wake_s()
        if wake_s is not None and wake_s > self.h.now_s and self.dice.random() < 0.5:
            self.h.now_s = wake_s
        else:
            self.h.advance(self.dice.choice((0.0, 0.1, 1.0, 10.0, 700.0)))

    def framework(self):
        return self.dice.choice(list(self.h.frameworks))


@given(seed=st.integers(0, 2**32), victims=st.sampled_from(["youngest", "most-over", "cost"]))
def test_whatever_is_taken_back_is_above_a_guarantee_needed_and_of_use(seed, victims):
    Campaign(seed, victims).go(200)


@pytest.mark.long
def test_100_000_random_steps_keep_the_rules():
    steps = 1000 * settings().max_examples  # 100,000 but in the fast profile
    kills = alone = 0
    for seed in range(max(1, steps // 2000)):
        campaign = Campaign(seed)
        campaign.go(2000)
        kills += campaign.kills
        alone += campaign.alone
    assert kills > steps / 500, "the runs were too poor to show anything"
    assert alone > steps / 2000, "nothing was shown to be minimal"


def roles_policies(dice):
    """Whatever operators may say, of roles of which some are there."""
    return {
        role: RolePolicy(
            weight=float(dice.randint(1, 3)),
            priority=dice.randint(0, 2),
            guarantee={"cpus": dice.choice((1000, 3000))} if dice.random() < 0.3 else {},
            limit={"cpus": dice.choice((3000, 8000))} if dice.random() < 0.3 else {},
            agents=frozenset({f"a{dice.randint(0, 3)}"}) if dice.random() < 0.2 else frozenset(),
        )
        for role in ("r", "s", "s/t", "idle")
    }


@given(
    seed=st.integers(0, 2**32),
    make=st.sampled_from([DrfAllocator, PriorityAllocator]),
    min_offer_share=st.sampled_from([0.0, 0.0, 0.3]),
    preempt=st.booleans(),
)
def test_what_is_taken_back_reaches_the_one_it_was_taken_for(seed, make, min_offer_share, preempt):
    """Where nothing is kept for short tasks: else what others have of the memory there may
    have to come back first."""
    dice = random.Random(seed)
    h = RevocableHarness(
        make,
        policies=roles_policies(dice),
        min_offer_share=min_offer_share,
        preempt=preempt,
    )
    for number in range(dice.randint(1, 4)):
        h.agent(f"a{number}", f"cpus:{dice.randint(2, 10)};mem:100000")
    for name in ("x", "y", "z"):
        h.framework(name, dice.choice(("r", "s", "s/t")))
    # They take what they are offered.
    for _ in range(4):
        h.cycles()
        for grant in list(h.held):
            size = dice.choice((0.5, 1, 2))
            most = int(grant.resources.scalar("cpus") // size)
            if most and grant.resources.scalar("mem") >= most and grant.max_task_s is None:
                h.launch(grant, f"cpus:{size};mem:1", most)
            else:
                h.decline(grant, 1000.0)
    role = dice.choice(("r", "s", "s/t"))
    wanted = Need(role, Resources.of(cpus=dice.choice((0.5, 1, 2, 4)), mem=1), dice.randint(1, 4))
    h.framework("needy", role, needs=(wanted,))
    h.cycle()
    found = h.revocations()
    h.carry_out(found)
    # What it was offered before may be a part of what it needs there.
    for grant in [one for one in h.held if one.framework_id == "needy"]:
        h.decline(grant, 0.0)
    grants = h.cycle()
    for agent_id in {one.agent_id for one in found}:
        there = [one.resources for one in (*h.held,) if one.agent_id == agent_id]
        mine = [
            one.resources
            for one in h.held
            if one.agent_id == agent_id and one.framework_id == "needy"
        ]
        got = sum(one.scalar("cpus") for one in mine)
        assert got >= wanted.resources.scalar("cpus"), (found, grants, there)


@given(seed=st.integers(0, 2**32), steps=st.integers(1, 400))
@settings(max_examples=min(30, settings().max_examples))
def test_while_nobody_states_needs_grants_are_as_if_it_was_switched_off(seed, steps):
    histories = []
    for victims in ("youngest", "off"):
        options = AllocatorOptions(victims=victims, seed=seed, policies=POLICIES)

        class Asked(RandomRun):
            def cycle(self):
                super().cycle()
                h = self.harness
                assert h.allocator.revocations(h.cluster, h.now_s) == []

        run = Asked(AllocatorHarness(DrfAllocator(options), options), random.Random(seed))
        run.go(steps)
        histories.append([[replace(grant) for grant in grants] for grants in run.history])
    assert histories[0] == histories[1]
