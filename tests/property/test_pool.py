"""The pool under any order of calls: its numbers, and what it says of whom."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from frameworks.common.pool import Phase, Pool, PoolRules
from mesos_py import Resources

SIZE = Resources.of(cpus=1)
AGENTS = st.sampled_from(["a", "b", "c"])
WHO = st.integers(0, 30)
RULES = PoolRules(
    least=1, most=4, start_s=20.0, idle_s=10.0, one_per_agent=True, backoff_cap_s=30.0
)


class PoolMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.pool = Pool(RULES)
        self.now_s = 0.0
        self.begun = 0

    def pick(self, number: int) -> str:
        """Mostly somebody who is there, now and then somebody who is not any more."""
        ids = [member.task_id for member in self.pool]
        return ids[number % len(ids)] if ids and number < 25 else f"t{number % (self.begun + 1)}"

    @rule(seconds=st.floats(0.0, 40.0))
    def time_passes(self, seconds):
        self.now_s += seconds

    @rule(agent=AGENTS, wanted=st.integers(0, 6))
    def start(self, agent, wanted):
        if self.pool.missing(wanted, self.now_s) and self.pool.allows(agent, self.now_s):
            assert all(member.agent_id != agent for member in self.pool)
            self.pool.begin(f"t{self.begun}", agent, agent, SIZE, self.now_s)
            self.begun += 1

    @rule(number=WHO)
    def serves(self, number):
        self.pool.serves(self.pick(number), self.now_s)

    @rule(number=WHO, busy=st.booleans())
    def works(self, number, busy):
        self.pool.works(self.pick(number), busy, self.now_s)

    @rule(number=WHO)
    def drain(self, number):
        self.pool.drain(self.pick(number), self.now_s)

    @rule(number=WHO)
    def resume(self, number):
        self.pool.resume(self.pick(number), self.now_s)

    @rule(number=WHO)
    def end(self, number):
        self.pool.ending(self.pick(number), self.now_s)

    @rule(number=WHO, fault=st.booleans())
    def ended(self, number, fault):
        member = self.pool.ended(self.pick(number), self.now_s, fault)
        if member is None or not fault or member.phase == Phase.ENDING:
            return
        if member.served_s is None or self.now_s - member.served_s < RULES.settled_s:
            # Never again at once, on that agent.
            assert not self.pool.allows(member.agent_id, self.now_s)
            assert self.pool.allows(member.agent_id, self.now_s + RULES.backoff_cap_s) or any(
                other.agent_id == member.agent_id for other in self.pool
            )

    @rule()
    def give_up_who_is_late(self):
        for member in self.pool.overdue(self.now_s):
            assert self.pool.give_up(member.task_id, self.now_s)
        assert self.pool.overdue(self.now_s) == []

    @invariant()
    def numbers_hold(self):
        assert len(self.pool) <= RULES.most
        for wanted in range(6):
            there = self.pool.count(Phase.STARTING, Phase.SERVING)
            missing = self.pool.missing(wanted, self.now_s)
            over = self.pool.surplus(wanted)
            assert not (missing and over)
            assert there + missing <= max(there, self.pool.wanted(wanted))
            assert there - len(over) >= min(there, RULES.least)
            assert len(self.pool) + missing <= RULES.most

    @invariant()
    def who_is_not_needed_is_idle_and_serves(self):
        unneeded = self.pool.unneeded(self.now_s)
        for member in unneeded:
            assert member.phase == Phase.SERVING
            assert member.idle_since_s is not None
            assert self.now_s - member.idle_since_s >= RULES.idle_s
        there = self.pool.count(Phase.STARTING, Phase.SERVING)
        assert there - len(unneeded) >= min(there, RULES.least)

    @invariant()
    def time_alone_changes_answers_only_when_it_was_said(self):
        wake_s = self.pool.wake_s(self.now_s)
        assert wake_s is None or wake_s > self.now_s
        just_before = self.now_s + 1e6 if wake_s is None else wake_s - 1e-6
        if just_before <= self.now_s:
            return
        for ask in (self.pool.overdue, self.pool.unneeded):
            assert ask(just_before) == ask(self.now_s)
        for agent in ("a", "b", "c"):
            assert self.pool.allows(agent, just_before) == self.pool.allows(agent, self.now_s)


TestPool = PoolMachine.TestCase
