"""MapReduce's brain under anything that can happen, in any order, and crashes in between."""

from __future__ import annotations

from typing import Any

from hypothesis import event, note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from frameworks.mapreduce.core.journal import AttemptEnded, CommitFailed, Committed
from frameworks.mapreduce.core.orders import Failed, Killed, Lost, Preempted
from frameworks.mapreduce.core.views import JobView
from frameworks.mapreduce.messages import FetchFailed, Progress, Running, WantMaps
from frameworks.mapreduce.names import parse_attempt
from frameworks.mapreduce.work import Failure
from tests.kit.mapreduce_brain import ENDED, Shell, options, spec, splits

BLAMES = ("program", "data", "place", "job")


class BrainMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.shell = Shell(options(max_workers=3, idle_s=20.0, silence_s=1e9))
        self.jobs = 0
        self.agents = 0
        self.ended: list[tuple[str, Any]] = []
        # Failures by task that count, as this model counts them.
        self.failures: dict[tuple[str, str, int], int] = {}

    @initialize(slowstart=st.sampled_from(["0", "1"]))
    def begin(self, slowstart: str) -> None:
        self.agent_joins(2.1, "")
        self.agent_joins(4.1, "r1")
        self.submit(3, 2, 2, slowstart, "0", "normal", ["a1"])
        self.shell.offer()

    @rule(others=st.booleans())
    def round(self, others: bool) -> None:
        """A step on the usual way."""
        self.time_passes(3.0)
        self.offers()
        running = sorted(self.shell.running())
        self.shell.finish(*(running[::2] if others else running))
        self.shell.commit()

    # ---- What people and the cluster do ----------------------------------------------------

    @precondition(lambda self: self.jobs < 4)
    @rule(
        maps=st.integers(0, 4),
        reduces=st.integers(0, 3),
        attempts=st.integers(1, 3),
        slowstart=st.sampled_from(["0", "0.5", "1"]),
        percent=st.sampled_from(["0", "50"]),
        priority=st.sampled_from(["high", "normal", "low"]),
        places=st.lists(st.sampled_from(["a1.example", "a2", "elsewhere"]), max_size=2),
    )
    def submit(self, maps, reduces, attempts, slowstart, percent, priority, places) -> None:
        self.jobs += 1
        made = spec(
            self.jobs,
            reduces,
            mapreduce__map__maxattempts=str(attempts),
            mapreduce__reduce__maxattempts=str(attempts),
            mapreduce__job__reduce__slowstart__completedmaps=slowstart,
            mapreduce__map__failures__maxpercent=percent,
            mapreduce__job__priority=priority,
        )
        self.shell.submit(made, splits(maps, [tuple(places)] * maps))

    @precondition(lambda self: self.jobs)
    @rule(data=st.data())
    def kill_job(self, data: st.DataObject) -> None:
        view = data.draw(st.sampled_from(self.shell.brain.views()))
        self.shell.brain.kill(view.job_id, "by hand", self.shell.now_s)
        self.shell.drain()

    @precondition(lambda self: len(self.shell.agents) < 4)
    @rule(cpus=st.sampled_from([1.1, 2.1, 4.1]), rack=st.sampled_from(["", "r1", "r2"]))
    def agent_joins(self, cpus: float, rack: str) -> None:
        self.agents += 1
        self.shell.agent(f"a{self.agents}", cpus=cpus, mem=4096, rack=rack)

    @precondition(lambda self: self.shell.agents)
    @rule(data=st.data())
    def agent_is_lost(self, data: st.DataObject) -> None:
        agent_id = data.draw(st.sampled_from(sorted(self.shell.agents)))
        views = [view for view in self.shell.brain.views() if view.state == "running"]
        before = {view.job_id: self.outputs(view.job_id) for view in views}
        self.shell.lose_agent(agent_id)
        for view in views:
            kept = {task for task, agent in before[view.job_id].items() if agent != agent_id}
            if view.reduces.total and self.shell.brain.view(view.job_id).state == "running":
                assert set(self.outputs(view.job_id)) == kept
                event("outputs lost" if len(kept) < len(before[view.job_id]) else "none lost")

    def outputs(self, job_id: str) -> dict[int, str]:
        """Maps that are done, and the agents that have what they made."""
        return {
            task.number: attempt.agent_id
            for task in self.shell.brain.tasks(job_id, kind="map", state="done")
            for attempt in task.attempts
            if attempt.state == "done"
        }

    @precondition(lambda self: any(agent.workers for agent in self.shell.agents.values()))
    @rule(data=st.data(), told_before=st.booleans())
    def worker_is_lost(self, data: st.DataObject, told_before: bool) -> None:
        busy = sorted(name for name, agent in self.shell.agents.items() if agent.workers)
        agent = self.shell.agents[data.draw(st.sampled_from(busy))]
        worker_id = sorted(agent.workers)[0]
        agent.workers.clear()
        mine = list(agent.running)
        agent.running.clear()
        if not told_before:
            for attempt in mine:
                self.end(attempt, Failed(Failure(blame="place", message="its worker has ended")))
            self.shell.brain.worker_lost(agent.agent_id, worker_id, "killed", self.shell.now_s)
            self.shell.drain()
            return
        # Jobs that fail because of one of them do not count the others, whichever comes first:
        # so what is counted is told by the records.
        before = len(self.shell.records())
        self.shell.brain.worker_lost(agent.agent_id, worker_id, "killed", self.shell.now_s)
        self.shell.drain()
        for record in self.shell.records()[before:]:
            if isinstance(record, AttemptEnded) and record.how == "failed":
                assert record.attempt in mine
                name = parse_attempt(record.attempt)
                assert name is not None
                self.count(*name[:3])
        for attempt in mine:
            self.end(attempt, Failed(Failure(blame="place", message="its worker has ended")))

    @rule()
    def offers(self) -> None:
        before = len(self.shell.launched)
        needless = {view.job_id for view in self.shell.brain.views() if not self.needs(view)}
        self.shell.offer()
        for attempt in self.shell.launched[before:]:
            name = parse_attempt(attempt)
            assert name is not None
            event(f"launched {name.kind} {'again' if name.attempt else 'first'}")
            assert name.job_id not in needless

    @staticmethod
    def needs(view: JobView) -> bool:
        """Whether anything is left to be run for it."""
        last = view.reduces if view.reduces.total else view.maps
        left = last.total - last.done - last.committing - last.failed
        return view.state in ("waiting", "running") and left > 0

    @rule(seconds=st.sampled_from([0.3, 1.0, 5.0, 30.0]))
    def time_passes(self, seconds: float) -> None:
        self.shell.tick(seconds)

    # ---- What attempts do ------------------------------------------------------------------

    def pick(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from(sorted(self.shell.running())))

    def end(self, attempt: str, how: Any) -> None:
        self.ended.append((attempt, how))
        if isinstance(how, Failed) and how.failure.blame != "fetch":
            name = parse_attempt(attempt)
            assert name is not None
            state = self.shell.brain.view(name.job_id).state
            live = any(attempt == known for known, _agent in self.shell.brain.attempts())
            if live and attempt not in self.shell.killed and state == "running":
                self.count(name.job_id, name.kind, name.task)
        self.shell.end(attempt, how)

    def count(self, *task: Any) -> None:
        self.failures[task] = self.failures.get(task, 0) + 1

    @precondition(lambda self: self.shell.running())
    @rule(data=st.data())
    def attempt_starts(self, data: st.DataObject) -> None:
        self.shell.started(self.pick(data))

    @precondition(lambda self: self.shell.running())
    @rule(data=st.data())
    def attempt_finishes(self, data: st.DataObject) -> None:
        self.shell.finish(self.pick(data))

    @precondition(lambda self: self.shell.running())
    @rule(data=st.data())
    def all_finish(self, data: st.DataObject) -> None:
        self.shell.finish(*self.shell.running())

    @precondition(lambda self: self.shell.running())
    @rule(data=st.data(), blame=st.sampled_from(BLAMES))
    def attempt_fails(self, data: st.DataObject, blame: Any) -> None:
        self.end(self.pick(data), Failed(Failure(blame=blame, message="it failed")))

    @precondition(lambda self: self.shell.running())
    @rule(
        data=st.data(),
        how=st.sampled_from([Lost("net"), Preempted("taken"), Killed("by hand")]),
    )
    def attempt_is_ended(self, data: st.DataObject, how: Any) -> None:
        self.end(self.pick(data), how)

    @precondition(lambda self: self.ended)
    @rule(data=st.data())
    def status_comes_twice(self, data: st.DataObject) -> None:
        attempt, how = data.draw(st.sampled_from(self.ended))
        self.shell.brain.ended(attempt, how, self.shell.now_s)
        self.shell.brain.started(attempt, self.shell.now_s)
        self.shell.drain()

    @precondition(lambda self: self.shell.killed)
    @rule()
    def kills_are_done(self) -> None:
        self.shell.end_killed()

    @precondition(lambda self: self.shell.running())
    @rule(data=st.data(), progress=st.floats(0, 1))
    def attempt_gets_on(self, data: st.DataObject, progress: float) -> None:
        attempt = self.pick(data)
        said = Progress(attempts={attempt: Running(progress)})
        self.shell.brain.said(self.shell.agent_of[attempt], said, self.shell.now_s)
        self.shell.drain()

    @precondition(lambda self: self.shell.running() and self.shell.kept_outputs())
    @rule(data=st.data(), whole=st.booleans())
    def reduce_cannot_fetch(self, data: st.DataObject, whole: bool) -> None:
        attempt = self.pick(data)
        lost = data.draw(st.sampled_from(sorted(self.shell.kept_outputs())))
        brain, now_s = self.shell.brain, self.shell.now_s
        brain.said(self.shell.agent_of[attempt], WantMaps(attempt, 0), now_s)
        if whole:
            failure = Failure(blame="fetch", message="timed out", lost=(lost,))
            self.end(attempt, Failed(failure))
        else:
            brain.said(
                self.shell.agent_of[attempt], FetchFailed(attempt, (lost,), "timed out"), now_s
            )
            self.shell.drain()

    # ---- What the shell does ---------------------------------------------------------------

    @precondition(lambda self: self.shell.commits)
    @rule(data=st.data(), there=st.booleans())
    def part_is_committed(self, data: st.DataObject, there: bool) -> None:
        order = data.draw(st.sampled_from(self.shell.commits))
        if there:
            self.shell.commit(order)
            return
        self.shell.commits.remove(order)
        self.count(order.job_id, order.kind, order.task)
        event("commit failed")
        self.shell.brain.commit_failed(
            order.job_id, order.kind, order.task, "not there", self.shell.now_s
        )
        self.shell.drain()

    @precondition(lambda self: self.shell.finishes)
    @rule()
    def jobs_are_finished(self) -> None:
        self.shell.complete()

    @rule()
    def shell_crashes(self) -> None:
        before = self.shell.brain.views()
        self.shell.restart()
        after = self.shell.brain.views()
        assert [view.job_id for view in before] == [view.job_id for view in after]
        for old, new in zip(before, after, strict=True):
            assert (old.maps.done, old.reduces.done) == (new.maps.done, new.reduces.done)
            assert old.maps.attempts_failed == new.maps.attempts_failed
            assert old.failure == new.failure or old.failure is None
        # What ended while nobody listened is told now; what runs is known to run.
        known = {attempt for attempt, _agent in self.shell.brain.attempts()}
        assert known.issuperset(name for name in self.shell.running() if not self.given_up(name))
        for attempt in known.difference(self.shell.running()):
            self.end(attempt, Lost("unknown to the master"))

    def given_up(self, attempt: str) -> bool:
        """Whether the brain has taken it for ended, though it runs."""
        return any(record_ends(record, attempt) for record in self.shell.records())

    # ---- What must hold --------------------------------------------------------------------

    @invariant()
    def each_part_is_committed_once(self) -> None:
        committed: dict[tuple[str, str, int], str] = {}
        for record in self.shell.records():
            if isinstance(record, (Committed, CommitFailed)):
                name = parse_attempt(record.attempt)
                assert name is not None
                part = (name.job_id, name.kind, name.task)
                assert part not in committed, f"{record} after {committed[part]}"
                if isinstance(record, Committed):
                    committed[part] = record.attempt

    @invariant()
    def counts_add_up(self) -> None:
        for view in self.shell.brain.views():
            for phase in (view.maps, view.reduces):
                parts = phase.waiting + phase.running + phase.committing + phase.done + phase.failed
                assert parts == phase.total
                assert min(phase.waiting, phase.running, phase.done) >= 0
                assert 0 <= phase.progress <= 1
            if view.state == "succeeded":
                last = view.reduces if view.reduces.total else view.maps
                assert last.done + last.failed == last.total

    @invariant()
    def failures_are_counted_right(self) -> None:
        for view in self.shell.brain.views():
            for task in self.shell.brain.tasks(view.job_id):
                fetching = [a for a in task.attempts if a.failure and a.failure.blame == "fetch"]
                counted = self.failures.get((view.job_id, task.kind, task.number), 0)
                assert counted <= task.failures <= counted + len(fetching)
                numbers = [attempt.attempt for attempt in task.attempts]
                assert len(set(numbers)) == len(numbers)
                live = [a for a in task.attempts if a.state in ("launched", "running")]
                assert len(live) <= 2, live

    @invariant()
    def no_room_is_held_by_workers_beyond_the_limit(self) -> None:
        held = [agent for agent in self.shell.brain.agents() if agent.worker_id]
        assert len(held) <= 3

    def teardown(self) -> None:
        """With room, and no more faults, every job ends."""
        note(str(self.shell.brain.views()))
        self.shell.agent("fresh", cpus=8, mem=16384)
        for _ in range(400):
            if all(view.state in ENDED for view in self.shell.brain.views()):
                break
            self.shell.offer()
            self.shell.end_killed()
            self.shell.finish(*self.shell.running())
            self.shell.commit()
            self.shell.complete()
            self.shell.tick(1.0)
        views = self.shell.brain.views()
        for view in views:
            event(view.state)
        assert all(view.state in ENDED for view in views), views
        # Jobs do not wait for ever for attempts to end; those end all the same.
        for _ in range(130):
            self.shell.end_killed()
            self.shell.tick(1)
        assert not any(agent.worker_id for agent in self.shell.brain.agents())
        assert not self.shell.asks
        assert self.shell.brain.tick(self.shell.now_s) is None


def record_ends(record: Any, attempt: str) -> bool:
    return getattr(record, "attempt", "") == attempt and not hasattr(record, "worker_id")


TestBrain = BrainMachine.TestCase
