"""Jobs of data sets while executors come and go: each ends, and what succeeds is right."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from frameworks.rdd.core.rules import Rules
from frameworks.rdd.messages import Beat, Died, FetchLost, Kept, TaskEnded, WhereIs
from tests.kit.rdd_checked import CheckedWorld
from tests.kit.rdd_world import raised

HOSTS = ("h1", "h2", "h3")
few = st.integers(0, 3)
BROADCAST = 1000


class Cluster(RuleBasedStateMachine):
    """Steps take a number and apply it to what there is, so that each does something."""

    def __init__(self) -> None:
        super().__init__()
        self.world: CheckedWorld
        self.names = 0
        self.faults = False
        self.silent = 0

    @initialize(
        fair=st.booleans(),
        twins=st.booleans(),
        big=st.booleans(),
        wait_s=few,
        most=few,
        excludes=few,
    )
    def begin(
        self, fair: bool, twins: bool, big: bool, wait_s: int, most: int, excludes: int
    ) -> None:
        self.world = CheckedWorld(
            Rules(
                max_failures=1 + most,
                stage_attempts=2 + most,
                exclude_failures=excludes,
                exclude_s=30.0,
                fair=fair,
                twins=twins,
                twin_quantile=0.0,
                twin_after_s=0.0,
                twin_multiplier=0.0,
                twin_share=1.0,
                wait_executor_s=wait_s,
                wait_host_s=wait_s,
                idle_s=20.0,
                idle_keeping_s=40.0,
            )
        )
        world = self.world
        world.core.add_broadcast(BROADCAST)
        world.big_results = big
        # Most that goes wrong needs shuffles behind one another.
        once = world.shuffled(world.source(3), 2)
        world.persist(kept := world.mapped(once))
        world.shuffled(world.union(kept, once), 3)
        world.join("e0", "h1", 2)
        world.join("e00", "h2", 3)
        # And some results, and room for twins.
        world.submit(world.nodes[0])
        world.submit(world.nodes[-1])
        world.join("e000", "h3", 1)

    # ---- Programs ------------------------------------------------------------------------------

    @rule(count=st.integers(0, 4))
    def source(self, count: int) -> None:
        self.world.source(count)

    @rule(pick=st.integers(0, 100), kind=st.integers(0, 3), partitions=st.integers(1, 4))
    def derived(self, pick: int, kind: int, partitions: int) -> None:
        nodes = self.world.nodes
        parent = nodes[-1 - pick % min(4, len(nodes))]
        if kind == 0:
            self.world.mapped(parent)
        elif kind == 1 and parent.partitions < 12:
            self.world.union(parent, nodes[pick % len(nodes)])
        elif kind == 2 and parent.partitions:
            self.world.coalesced(parent)
        elif kind == 3:
            self.world.shuffled(parent, partitions)

    @rule(pick=st.integers(0, 100))
    def persist(self, pick: int) -> None:
        self.world.persist(self.world.nodes[pick % len(self.world.nodes)])

    @rule(pick=st.integers(0, 100))
    def unpersist(self, pick: int) -> None:
        self.world.unpersist(self.world.nodes[pick % len(self.world.nodes)])

    @rule(pick=st.integers(0, 100), first=st.booleans())
    def submit(self, pick: int, first: bool) -> None:
        node = self.world.nodes[-1 - pick % len(self.world.nodes)]
        if node.partitions <= 24:
            splits = [0] if first and node.partitions else None
            pool = {"spark.scheduler.pool": "p"} if pick % 3 == 0 else {}
            self.world.submit(node, splits, group=str(pick % 2), properties=pool)

    @precondition(lambda self: self.world.core.state.jobs)
    @rule(pick=st.integers(0, 100), whole=st.booleans())
    def cancel(self, pick: int, whole: bool) -> None:
        jobs = sorted(self.world.core.state.jobs)
        if whole:
            self.world.core.cancel_group(str(pick % 2), "test", self.world.now_s)
            self.world.settle()
        else:
            self.world.cancel(jobs[pick % len(jobs)])

    # ---- Executors -----------------------------------------------------------------------------

    @precondition(lambda self: len(self.world.places) < 5)
    @rule(host=st.sampled_from(HOSTS), slots=st.integers(1, 3))
    def join(self, host: str, slots: int) -> None:
        self.names += 1
        self.world.join(f"e{self.names}", host, slots)

    @precondition(lambda self: self.world.places)
    @rule(pick=few, outputs_lost=st.booleans(), blame=st.booleans())
    def lose(self, pick: int, outputs_lost: bool, blame: bool) -> None:
        self.faults |= blame or outputs_lost
        self.world.lose(self._name(pick), outputs_lost=outputs_lost, blame=blame)

    @rule(host=st.sampled_from(HOSTS))
    def lose_agent(self, host: str) -> None:
        self.faults = True
        self.world.lose_agent(host)

    @precondition(lambda self: self.world.drops)
    @rule()
    def dropped(self) -> None:
        name = self.world.drops.pop()
        if name in self.world.places:
            self.world.lose(name)

    @precondition(lambda self: self.world.places)
    @rule(pick=few)
    def leaves(self, pick: int) -> None:
        self.world.leave(self._name(pick))

    @precondition(lambda self: self.world.files)
    @rule(pick=st.integers(0, 100), all_of_one=st.booleans())
    def delete_files(self, pick: int, all_of_one: bool) -> None:
        self.silent += 1
        path = sorted(self.world.files)[pick % len(self.world.files)]
        self.world.delete(path.split("/")[0] + "/" if all_of_one else path)

    @rule(pick=st.integers(0, 100), told=st.booleans())
    def evict(self, pick: int, told: bool) -> None:
        blocks = [(p.name, block) for p in self.world.places.values() for block in sorted(p.cache)]
        if blocks:
            self.silent += not told
            self.world.evict(*blocks[pick % len(blocks)], told=told)

    # ---- Tasks ---------------------------------------------------------------------------------

    @precondition(lambda self: self.world.running())
    @rule(picks=st.lists(st.integers(0, 100), min_size=1, max_size=6))
    def finish(self, picks: list[int]) -> None:
        for pick in picks:
            if running := self.world.running():
                self.world.finish(*running[pick % len(running)])

    @precondition(lambda self: self.world.running())
    @rule(pick=st.integers(0, 100), kind=st.integers(0, 7))
    def fail(self, pick: int, kind: int) -> None:
        self.faults = True
        running = self.world.running()
        outcome = raised(fatal=kind == 1) if kind else Died("signal 9")
        self.world.finish(*running[pick % len(running)], outcome)

    @precondition(lambda self: self.world.fetches)
    @rule(pick=few, ok=st.booleans())
    def fetched(self, pick: int, ok: bool) -> None:
        fetches = sorted(self.world.fetches)
        self.faults = self.faults or not ok
        self.world.fetched(fetches[pick % len(fetches)], ok=ok)

    @precondition(lambda self: self.world.told and self.world.places)
    @rule(pick=st.integers(0, 100), name=few)
    def twice(self, pick: int, name: int) -> None:
        """What was said is said again, perhaps by another."""
        told = self.world.told[pick % len(self.world.told)]
        self.world.core.heard(self._name(name), told, self.world.now_s)
        self.world.settle()

    @precondition(lambda self: self.world.running() and len(self.world.places) > 1)
    @rule(pick=st.integers(0, 100), name=few)
    def impostor(self, pick: int, name: int) -> None:
        running = self.world.running()
        of, task_id = running[pick % len(running)]
        others = sorted(set(self.world.places) - {of})
        self.world.pretend(others[name % len(others)], task_id)

    @precondition(lambda self: self.world.places)
    @rule(name=few, has=few, wants=few)
    def asks(self, name: int, has: int, wants: int) -> None:
        chunks = (("broadcast", BROADCAST, wants),) if wants else ()
        message = WhereIs(1, chunks, (("broadcast", BROADCAST, has),))
        self.world.core.heard(self._name(name), message, self.world.now_s)
        self.world.settle()

    @rule(pick=st.integers(0, 100))
    def nonsense(self, pick: int) -> None:
        core, now_s = self.world.core, self.world.now_s
        for name in ("nobody", *self.world.places):
            core.heard(name, TaskEnded(10**6 + pick, FetchLost(pick, pick, name, "x")), now_s)
            core.heard(name, Kept({("rdd", 10**6, pick): None}), now_s)
            core.heard(name, WhereIs(pick, (("broadcast", pick, 1), ("rdd", pick, 0))), now_s)
        core.executor_lost("nobody", "x", now_s, outputs_lost=True, blame=True)
        core.agent_lost("nobody", now_s)
        core.fetched(10**6, b"1", now_s)
        core.cancel(10**6, "x", now_s)
        self.world.settle()

    @rule(seconds=st.integers(0, 30))
    def time(self, seconds: int) -> None:
        self.world.now_s += seconds
        for place in self.world.places.values():
            beat = Beat(0, 0, dict.fromkeys(place.running, 1))
            self.world.core.heard(place.name, beat, self.world.now_s)
        self.world.settle()

    def _name(self, pick: int) -> str:
        names = sorted(self.world.places)
        return names[pick % len(names)]

    # ---- What must hold ------------------------------------------------------------------------

    @invariant()
    def what_is_believed_and_ordered_is_right(self) -> None:
        self.world.compare()

    @invariant()
    def slots_are_counted(self) -> None:
        state = self.world.core.state
        for name, place in self.world.places.items():
            executor = state.executors[name]
            assert executor.running == set(place.running)
            assert (name in state.free) == (executor.free > 0)
        assert state.slots == sum(place.slots for place in self.world.places.values())

    @invariant()
    def no_slot_is_free_while_a_task_could_run(self) -> None:
        state = self.world.core.state
        if state.free and self.world.wake_s is None and not state.blame:
            assert not any(each.active and each.pending for each in state.stages.values())

    def teardown(self) -> None:
        world = self.world
        self.names += 1
        world.join(f"e{self.names}", "h1", 2)
        world.finish_all()
        assert set(world.ended) == set(world.jobs)
        for number, failure in world.ended.items():
            if failure is None:
                world.check(number)
                world.check_sums(number)
            elif "was gone" in failure.text:
                # Each is found at most twice by a stage: as one output, and as all of somebody.
                assert 2 * self.silent >= world.core.state.rules.stage_attempts
            elif not failure.cancelled:
                assert self.faults
        world.check_nothing_left()


@pytest.mark.long
def test_jobs_end_and_what_succeeds_is_right():
    run_state_machine_as_test(Cluster)
