"""Executors of the RDD core as a model: tasks take no time and run when the test says so.

Values are numbers that say whether everything that went into them was right: a source's
partition has its own, a narrow node adds its id, a shuffle gives partition r of what all maps
have, times r + 1.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from frameworks.rdd.core.core import Core
from frameworks.rdd.core.effects import Added, Deliver, Drop, Ended, Failure, Fetch, Send, Want
from frameworks.rdd.core.hearing import MOST_FETCHES
from frameworks.rdd.core.rules import Rules
from frameworks.rdd.core.stages import Plan
from frameworks.rdd.messages import (
    PAYLOAD,
    CancelTask,
    DefineStage,
    FetchLost,
    Forget,
    Hello,
    Kept,
    Killed,
    LeftOut,
    MapOutput,
    Outcome,
    Raised,
    RunTask,
    StageWork,
    Succeeded,
    TaskEnded,
)
from frameworks.rdd.nodes import (
    Coalesced,
    Mapped,
    Node,
    Shuffled,
    ShuffleDependency,
    Slices,
    Union,
)
from frameworks.rdd.runner import Job
from frameworks.rdd.storage import NONE, StorageLevel

# So large that what is kept elsewhere is left out of tasks.
LARGE = 4100


@dataclass(frozen=True)
class Modulo:
    partitions: int

    def __call__(self, key: Any) -> int:
        return int(key) % self.partitions

    def places(self, keys: Sequence[Any]) -> list[int]:
        return [self(key) for key in keys]


@dataclass
class Place:
    """One executor."""

    name: str
    host: str
    slots: int
    stages: dict[str, DefineStage] = field(default_factory=dict)
    running: dict[int, RunTask] = field(default_factory=dict)
    cancelled: dict[int, str] = field(default_factory=dict)
    cache: dict[tuple[int, int], int] = field(default_factory=dict)
    results: set[int] = field(default_factory=set)
    forgotten: set[str] = field(default_factory=set)


class Gone(Exception):
    """An input is: what the task says of it."""

    def __init__(self, lost: FetchLost) -> None:
        super().__init__(lost.message)
        self.lost = lost


def _function(split: int, elements: Any) -> Any:
    return split, elements


class World:
    """`ended` and `delivered` have what came of jobs; times are virtual."""

    def __init__(self, rules: Rules | None = None, *, elastic: bool = False) -> None:
        self.works: dict[bytes, StageWork] = {}
        self.core = Core(rules or Rules(), self.pack, elastic=elastic)
        self.now_s = 0.0
        self.wake_s: float | None = None
        self.places: dict[str, Place] = {}
        self.nodes: list[Node] = []
        # path -> value of each partition
        self.files: dict[str, list[int]] = {}
        self.jobs: dict[int, Job] = {}
        self.delivered: dict[int, dict[int, int]] = {}
        self.ended: dict[int, Failure | None] = {}
        self.fetches: dict[int, Fetch] = {}
        self.big: dict[int, bytes] = {}
        self.added: list[bytes] = []
        self.ran: list[tuple[int, int]] = []
        self.sent: list[Send] = []
        self.told: list[TaskEnded] = []
        self.wants: list[int] = []
        self.drops: list[str] = []
        self.last_job = 0
        self.last_shuffle = 0
        self.big_results = False

    # ---- Data sets -------------------------------------------------------------------------

    def source(self, partitions: int) -> Node:
        slices = [bytes([split]) * LARGE for split in range(partitions)]
        return self._node(Slices(len(self.nodes), partitions, slices=slices))

    def mapped(self, parent: Node) -> Node:
        return self._node(
            Mapped(
                len(self.nodes), parent.partitions, (parent,), function=lambda _, elements: elements
            )
        )

    def union(self, one: Node, other: Node) -> Node:
        count = one.partitions + other.partitions
        return self._node(Union(len(self.nodes), count, (one, other)))

    def coalesced(self, parent: Node) -> Node:
        groups = [range(parent.partitions)]
        return self._node(Coalesced(len(self.nodes), 1, (parent,), groups=groups))

    def shuffled(self, parent: Node, partitions: int) -> Node:
        self.last_shuffle += 1
        dependency = ShuffleDependency(
            self.last_shuffle, parent, Modulo(partitions), maps=parent.partitions
        )
        return self._node(Shuffled(len(self.nodes), partitions, shuffle=dependency))

    def persist(self, node: Node) -> None:
        node.storage = StorageLevel.MEMORY_ONLY

    def unpersist(self, node: Node) -> None:
        node.storage = NONE
        self.core.unpersist(node.id)
        self.settle()

    def _node(self, node: Node) -> Node:
        self.nodes.append(node)
        return node

    def expected(self, node: Node, split: int) -> int:
        """What a partition's value must be."""
        if node.shuffle is not None:
            parent = node.shuffle.parent
            assert parent is not None
            values = [self.expected(parent, each) for each in range(parent.partitions)]
            return sum(values) * (split + 1)
        if not node.parents:
            return 1000 * node.id + split
        return node.id + sum(
            self.expected(node.parents[index], each) for index, each in node.splits(split)
        )

    # ---- What happens ------------------------------------------------------------------------

    def pack(self, plan: Plan, shuffle: ShuffleDependency | None, function: Any) -> bytes:
        blob = str(len(self.works)).encode()
        self.works[blob] = StageWork(plan.node, shuffle, function)
        return blob

    def submit(
        self,
        node: Node,
        splits: list[int] | None = None,
        group: str = "",
        properties: dict[str, str] | None = None,
    ) -> int:
        number = self.last_job = self.last_job + 1
        wanted = list(range(node.partitions)) if splits is None else splits
        job = Job(node, _function, wanted, action="count", group=group, properties=properties or {})
        plan = Plan(node)
        packed = {
            shuffle.shuffle_id: self.pack(before, shuffle, None)
            for shuffle, before in self.core.unmade(plan)
        }
        self.jobs[number] = job
        self.delivered[number] = {}
        blob = self.pack(plan, None, _function)
        self.core.submit(number, job, plan, blob, packed, self.now_s)
        self.settle()
        return number

    def join(self, name: str, host: str = "h1", slots: int = 1) -> Place:
        place = self.places[name] = Place(name, host, slots)
        self.core.executor_joined(
            Hello(name, host, slots, f"{name}:1", (3, 11, 0), f"agent of {host}"), self.now_s
        )
        self.settle()
        return place

    def lose(self, name: str, *, outputs_lost: bool = False, blame: bool = False) -> None:
        del self.places[name]
        if outputs_lost:
            self.delete(f"{name}/")
        self.core.executor_lost(
            name, "went away", self.now_s, outputs_lost=outputs_lost, blame=blame
        )
        self.settle()

    def lose_agent(self, host: str) -> None:
        for place in [each for each in self.places.values() if each.host == host]:
            self.lose(place.name)
        for path in [path for path in self.files if path.split("/")[1] == host]:
            del self.files[path]
        self.core.agent_lost(f"agent of {host}", self.now_s)
        self.settle()

    def delete(self, prefix: str) -> None:
        """Files, without telling anybody."""
        for path in [path for path in self.files if path.startswith(prefix)]:
            del self.files[path]

    def cancel(self, number: int) -> None:
        self.core.cancel(number, "test", self.now_s)
        self.settle()

    def pass_time(self, seconds: float) -> None:
        self.now_s += seconds
        self.settle()

    def evict(self, name: str, block: tuple[int, int], *, told: bool = True) -> None:
        del self.places[name].cache[block]
        if not told:
            return
        self.core.heard(name, Kept({("rdd", *block): None}), self.now_s)
        self.settle()

    def fetched(self, task_id: int, *, ok: bool = True) -> None:
        del self.fetches[task_id]
        content = self.big.get(task_id)
        self.core.fetched(task_id, content if ok else None, self.now_s)
        self.settle()

    # ---- Tasks -----------------------------------------------------------------------------

    def running(self) -> list[tuple[str, int]]:
        """(executor, task), in the order of their beginning."""
        pairs = [(place.name, task) for place in self.places.values() for task in place.running]
        return sorted(pairs, key=lambda pair: pair[1])

    def maps(self) -> list[tuple[str, int]]:
        """Of those that run, the tasks of maps."""
        return [
            (name, task_id)
            for name, task_id in self.running()
            if self._work(self.places[name], task_id).shuffle is not None
        ]

    def _work(self, place: Place, task_id: int) -> StageWork:
        return self.works[place.stages[place.running[task_id].stage_key].blob]

    def finish(self, name: str, task_id: int, outcome: Outcome | None = None) -> Outcome:
        """A task ends, by itself if no other end is given."""
        place = self.places[name]
        task = place.running.pop(task_id)
        reason = place.cancelled.pop(task_id, None)
        if outcome is None:
            outcome = Killed(reason) if reason is not None else self._outcome(place, task)
        self._drop_stages(place)
        ended = TaskEnded(task_id, outcome)
        self.told.append(ended)
        self.core.heard(name, ended, self.now_s)
        self.settle()
        return outcome

    def finish_all(self) -> None:
        """Until nothing runs, and nothing would if time passed."""
        for _ in range(10_000):
            if self.fetches:
                self.fetched(next(iter(self.fetches)))
            elif running := self.running():
                self.finish(*running[0])
            elif self.core.state.jobs and self.wake_s is not None:
                self.pass_time(max(0.0, self.wake_s - self.now_s))
            else:
                return
        raise AssertionError("it does not come to an end")

    def _outcome(self, place: Place, task: RunTask) -> Outcome:
        stage = place.stages[task.stage_key]
        work = self.works[stage.blob]
        self.ran.append((work.node.id, task.split))
        try:
            value = self._value(place, stage, task, work.node, task.split)
        except Gone as gone:
            return gone.lost
        if work.shuffle is None:
            result = str(value).encode()
            sums = f"{task.stage_id}/{task.split}".encode()
            if not self.big_results:
                return Succeeded(result, accumulators=sums)
            self.big[task.task_id] = result
            place.results.add(task.task_id)
            block = ("result", task.task_id, 0)
            return Succeeded(result_block=block, result_bytes=len(result), accumulators=sums)
        shuffle = work.shuffle
        count = shuffle.partitioner.partitions
        path = f"{place.name}/{place.host}/{shuffle.shuffle_id}/{task.split}-{task.task_id}"
        self.files[path] = [value * (each + 1) for each in range(count)]
        return Succeeded(
            output=MapOutput(
                shuffle.shuffle_id, task.split, place.name, place.host, path, "",
                bytes(8 * (count + 1)),
            )
        )  # fmt: skip

    def _value(
        self, place: Place, stage: DefineStage, task: RunTask, node: Node, split: int
    ) -> int:
        if node.storage and (node.id, split) in place.cache:
            return place.cache[node.id, split]
        if node.shuffle is not None:
            value = self._read(stage, node.shuffle, split)
        elif not node.parents:
            payload = pickle.loads(task.payloads)[node.id][split]
            if isinstance(payload, LeftOut):
                raise Gone(FetchLost(PAYLOAD, -1, "", "left out"))
            assert payload == bytes([split]) * LARGE
            value = 1000 * node.id + split
        else:
            value = node.id + sum(
                self._value(place, stage, task, node.parents[index], each)
                for index, each in node.splits(split)
            )
        if node.storage:
            place.cache[node.id, split] = value
            self.core.heard(place.name, Kept({("rdd", node.id, split): (8, True)}), self.now_s)
        return value

    def _read(self, stage: DefineStage, shuffle: ShuffleDependency, split: int) -> int:
        outputs = stage.outputs[shuffle.shuffle_id]
        if len(outputs) < shuffle.maps:
            raise Gone(FetchLost(shuffle.shuffle_id, -1, "", "not all outputs are known"))
        for output in outputs:
            if output.path not in self.files:
                lost = (output.shuffle_id, output.map_index, output.executor_id)
                raise Gone(FetchLost(*lost, f"{output.path} is gone"))
        return sum(self.files[output.path][split] for output in outputs)

    # ---- What the core wants -----------------------------------------------------------------

    def settle(self) -> None:
        effects, self.wake_s = self.core.settle(self.now_s)
        for effect in effects:
            if isinstance(effect, Send):
                self._receive(effect)
            elif isinstance(effect, Deliver):
                results = self.delivered[effect.job]
                assert effect.index not in results, "a result came twice"
                assert effect.job not in self.ended, "a result came after the end"
                results[effect.index] = int(effect.result)
            elif isinstance(effect, Ended):
                assert effect.job not in self.ended, "a job ended twice"
                self.ended[effect.job] = effect.failure
            elif isinstance(effect, Fetch):
                self.fetches[effect.task_id] = effect
                assert len(self.fetches) <= MOST_FETCHES
            elif isinstance(effect, Added):
                self.added.append(effect.accumulators)
            elif isinstance(effect, Want):
                self.wants.append(effect.slots)
            elif isinstance(effect, Drop):
                self.drops.append(effect.executor_id)

    def _receive(self, send: Send) -> None:
        self.sent.append(send)
        place = self.places.get(send.executor_id)
        message = send.message
        if place is None:
            return
        if isinstance(message, DefineStage):
            assert message.key not in place.stages
            place.stages[message.key] = message
        elif isinstance(message, RunTask):
            assert message.stage_key in place.stages, "a task of a stage that is not known"
            place.running[message.task_id] = message
            assert len(place.running) <= place.slots, "a slot is used twice"
        elif isinstance(message, CancelTask) and message.task_id in place.running:
            place.cancelled[message.task_id] = message.reason
        elif isinstance(message, Forget):
            place.forgotten.update(message.stages)
            self._drop_stages(place)
            for rdd_id in message.rdds:
                for block in [block for block in place.cache if block[0] == rdd_id]:
                    del place.cache[block]
            place.results.difference_update(message.results)

    def _drop_stages(self, place: Place) -> None:
        """What runs still has those that are forgotten."""
        held = {task.stage_key for task in place.running.values()}
        for key in place.forgotten - held:
            del place.stages[key]
        place.forgotten &= held

    # ---- Questions ---------------------------------------------------------------------------

    def results(self, number: int) -> list[int]:
        found = self.delivered[number]
        return [found[index] for index in sorted(found)]

    def check(self, number: int) -> None:
        """A job that has succeeded has given all that it should, right."""
        job = self.jobs[number]
        assert self.ended[number] is None, self.ended[number]
        expected = [self.expected(job.node, split) for split in job.splits]
        assert self.results(number) == expected

    def check_nothing_left(self) -> None:
        """Of what has ended nothing is remembered but its outputs, and what is kept."""
        state = self.core.state
        assert not state.jobs
        assert not state.stages
        assert not state.by_shuffle
        assert not state.tasks
        assert not state.fetching
        assert not state.unfetched
        assert not state.under_way
        assert not state.by_turn
        assert not state.turns
        assert not state.held
        for executor in state.executors.values():
            assert not executor.running
            assert not executor.told
        for place in self.places.values():
            assert not place.results


def raised(kind: str = "ValueError", *, fatal: bool = False) -> Raised:
    return Raised(kind, "bad", f"Traceback of {kind}: bad", pickle.dumps(ValueError("bad")), fatal)
