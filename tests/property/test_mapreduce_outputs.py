"""A reduce's knowledge of map outputs under a tracker and hosts that do anything: no map is
fetched twice at once or counted twice, and all come when what is named last can be had."""

from __future__ import annotations

import random

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from frameworks.mapreduce.data.outputs import MAX_RETRY_S, Outputs
from frameworks.mapreduce.messages import MapOutput, Maps
from frameworks.mapreduce.work import Segment
from frameworks.runtime.fetching import Blame

MAPS = 5
HOSTS = ("a", "b", "c")


class Reduce(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.outputs = Outputs(MAPS, random.Random(1))
        self.now_s = 0.0
        self.listed: list[MapOutput] = []
        self.fetching: list[MapOutput] = []
        self.fetched: list[int] = []

    @rule(number=st.integers(0, MAPS - 1), host=st.sampled_from(HOSTS), length=st.integers(0, 3))
    def a_map_ends(self, number: int, host: str, length: int) -> None:
        attempt = f"m{number}_{len(self.listed)}"
        self.listed.append(
            MapOutput(
                map=number,
                attempt=attempt,
                agent_id=host,
                url=f"http://{host}/{attempt}",
                path="",
                segment=Segment(0, length, length, 0),
            )
        )

    @rule(since=st.integers(0, 10), count=st.integers(0, 10))
    def the_tracker_says(self, since: int, count: int) -> None:
        said = tuple(self.listed[since : since + count])
        before = self.outputs.since
        self.outputs.learn(Maps("r", since, said), self.now_s)
        assert self.outputs.since in (before, since + len(said))

    @rule()
    def it_hears_all_again(self) -> None:
        self.outputs.again()

    @rule(by_s=st.floats(0, 2 * MAX_RETRY_S))
    def time_goes_on(self, by_s: float) -> None:
        self.now_s += by_s

    @precondition(lambda self: len(self.fetching) < 3)
    @rule()
    def a_fetch_begins(self) -> None:
        due_s = self.outputs.next_due_s()
        taken = self.outputs.take(self.now_s)
        assert (taken is not None) == (due_s is not None and due_s <= self.now_s)
        if taken is not None:
            assert taken.map not in [other.map for other in self.fetching]
            assert taken.map not in self.fetched
            assert taken.segment.length
            self.fetching.append(taken)

    @precondition(lambda self: self.fetching)
    @rule(data=st.data())
    def a_fetch_ends_well(self, data: st.DataObject) -> None:
        output = self.fetching.pop(data.draw(st.integers(0, len(self.fetching) - 1)))
        self.outputs.done(output)
        self.fetched.append(output.map)

    @precondition(lambda self: self.fetching)
    @rule(data=st.data(), blame=st.sampled_from(Blame))
    def a_fetch_fails(self, data: st.DataObject, blame: Blame) -> None:
        output = self.fetching.pop(data.draw(st.integers(0, len(self.fetching) - 1)))
        lost = self.outputs.failed(output, blame, self.now_s)
        assert len(set(lost)) == len(lost)
        assert not {int(attempt[1]) for attempt in lost} & set(self.fetched)

    @invariant()
    def nothing_is_counted_twice(self) -> None:
        assert len(set(self.fetched)) == len(self.fetched)
        assert len(self.fetched) <= self.outputs.done_count <= MAPS
        if self.outputs.complete:
            assert not self.fetching, "who is told that all is here reads what is here"

    def teardown(self) -> None:
        """From now on all goes well."""
        for output in self.fetching:
            self.outputs.done(output)
        for number in range(MAPS):
            self.a_map_ends(number, "a", 1)
        self.outputs.learn(
            Maps("r", self.outputs.since, tuple(self.listed[self.outputs.since :])), self.now_s
        )
        while (due_s := self.outputs.next_due_s()) is not None:
            self.now_s = max(self.now_s, due_s)
            taken = self.outputs.take(self.now_s)
            assert taken is not None
            self.outputs.done(taken)
        assert self.outputs.complete
        assert not self.outputs.wanting


TestReduce = Reduce.TestCase
