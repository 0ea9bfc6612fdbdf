"""The face of the core: what happens goes in, with the time; what is to be done comes out.

Whoever owns it calls a method for each thing that happens, then `settle`, and carries out the
effects in their order.  Nothing that comes late, twice, or of somebody unknown does harm.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from frameworks.rdd.core.effects import Drop, Effect, Failure, Want
from frameworks.rdd.core.hearing import Hearing, title
from frameworks.rdd.core.jobs import Jobs
from frameworks.rdd.core.placing import Placing
from frameworks.rdd.core.rules import Rules
from frameworks.rdd.core.showing import active_stages, view
from frameworks.rdd.core.stages import Plan, unmade
from frameworks.rdd.core.state import Executor, JobState, Pack, Stage, State
from frameworks.rdd.core.twins import Twins
from frameworks.rdd.core.views import StageView, View
from frameworks.rdd.core.where import Where
from frameworks.rdd.messages import (
    AddFiles,
    Beat,
    Forget,
    FromExecutor,
    Hello,
    Kept,
    Locations,
    TaskEnded,
    WhereIs,
)
from frameworks.rdd.nodes import ShuffleDependency
from frameworks.rdd.runner import TAGS, Job


class Core:
    """elastic: whether executors that are not needed are to be dropped, and others come when
    they are wanted.  pack: makes blobs of stages for which none was brought."""

    def __init__(self, rules: Rules, pack: Pack, *, elastic: bool = False) -> None:
        self.state = State(rules, pack)
        self.where = Where(self.state.kept, self.state.executors)
        self._elastic = elastic
        self._jobs = Jobs(self.state)
        self._hearing = Hearing(self.state, self._jobs)
        self._placing = Placing(self.state, self._jobs)
        self._twins = Twins(self.state)
        self._files: list[AddFiles] = []
        self._wanted = 0

    # ---- The driver's wishes -----------------------------------------------------------------

    def unmade(self, plan: Plan) -> list[tuple[ShuffleDependency, Plan]]:
        """The shuffles that a job with this last stage would have to make, which nobody makes
        now: their blobs can be brought to `submit`."""
        state = self.state
        return list(
            unmade(
                plan,
                state.kept,
                lambda each: state.outputs.complete(each) or each in state.by_shuffle,
            )
        )

    def submit(
        self,
        number: int,
        job: Job,
        plan: Plan,
        blob: bytes,
        packed: dict[int, bytes],
        now_s: float,
    ) -> None:
        """Numbers grow.  plan: of the job's node.  blob: of its last stage; packed: by id of
        the shuffle, of those that were `unmade`."""
        state = self.state
        state.last_stage += 1
        final = Stage(state.last_stage, plan, tuple(job.splits), function=job.function, blob=blob)
        final.name = " at ".join(each for each in (job.action, job.place) if each)
        new = JobState(
            number=number,
            final=final,
            action=job.action,
            place=job.place,
            group=job.group,
            description=job.description,
            properties=dict(job.properties),
            began_s=now_s,
        )
        self._jobs.submit(new, packed, now_s)

    def cancel(self, number: int, reason: str, now_s: float) -> None:
        """One job.  Nothing if it has ended."""
        job = self.state.jobs.get(number)
        if job is not None:
            text = f"{title(job)} was cancelled: {reason}"
            self._jobs.end(job, Failure(text, cancelled=True), now_s)

    def cancel_group(self, group: str | None, reason: str, now_s: float) -> None:
        """The jobs of a group, or all (None)."""
        for job in list(self.state.jobs.values()):
            if group is None or job.group == group:
                self.cancel(job.number, reason, now_s)

    def cancel_tag(self, tag: str, reason: str, now_s: float) -> None:
        """The jobs that have this one among their tags."""
        for job in list(self.state.jobs.values()):
            if tag in job.properties.get(TAGS, "").split(","):
                self.cancel(job.number, reason, now_s)

    def unpersist(self, rdd_id: int) -> None:
        """Executors need not keep it; what they still make of it meanwhile neither."""
        for executor_id in self.state.kept.unpersist(rdd_id):
            self.state.send(executor_id, Forget(rdds=(rdd_id,)))

    def forget_shuffle(self, shuffle_id: int) -> None:
        """Nobody can read it any more; not while somebody makes it."""
        state = self.state
        if shuffle_id not in state.by_shuffle and state.outputs.forget(shuffle_id):
            for executor_id in state.executors:
                state.send(executor_id, Forget(shuffles=(shuffle_id,)))

    def add_files(self, files: AddFiles) -> None:
        """For all executors, later ones too."""
        self._files.append(files)
        for blocks in files.files.values():
            for kind, number, _ in blocks:
                self.where.add(kind, number)
        for executor_id in self.state.executors:
            self.state.send(executor_id, files)

    def add_broadcast(self, number: int) -> None:
        self.where.add("broadcast", number)

    def destroy_broadcast(self, number: int) -> None:
        """Nothing if it is not known."""
        if self.where.known("broadcast", number):
            self.where.remove("broadcast", number)
            for executor_id in self.state.executors:
                self.state.send(executor_id, Forget(broadcasts=(number,)))

    # ---- What is heard -----------------------------------------------------------------------

    def executor_joined(self, hello: Hello, now_s: float) -> None:
        """Nothing if it has."""
        state = self.state
        if hello.executor_id in state.executors or hello.slots < 1:
            return
        state.join(
            Executor(
                id=hello.executor_id,
                host=hello.host,
                agent_id=hello.agent_id,
                address=hello.block_address,
                slots=hello.slots,
                idle_since_s=now_s,
            )
        )
        for files in self._files:
            state.send(hello.executor_id, files)

    def heard(self, executor_id: str, message: FromExecutor, now_s: float) -> None:
        state = self.state
        executor = state.executors.get(executor_id)
        if executor is None:
            return
        if isinstance(message, TaskEnded):
            self._hearing.ended(executor_id, message.task_id, message.outcome, now_s)
        elif isinstance(message, Kept):
            if needless := state.kept.update(executor_id, message.blocks):
                state.send(executor_id, Forget(rdds=tuple(sorted(needless))))
        elif isinstance(message, Beat):
            self._beat(executor, message, now_s)
        elif isinstance(message, WhereIs):
            self.where.has(executor_id, message.has)
            answer = self.where.answer(executor_id, message.wanted)
            state.send(executor_id, Locations(message.number, answer))

    def fetched(self, task_id: int, result: bytes | None, now_s: float) -> None:
        """Of the effect Fetch; None: it could not be had."""
        self._hearing.fetched(task_id, result, now_s)

    def executor_lost(
        self, executor_id: str, reason: str, now_s: float, *, outputs_lost: bool, blame: bool
    ) -> None:
        state = self.state
        executor = state.executors.get(executor_id)
        changed = state.outputs.lost_of_executor(executor_id) if outputs_lost else set()
        if executor is not None:
            state.part_with(executor)
            state.kept.lost(executor_id)
            self.where.lost(executor_id)
            state.blame.forget(executor_id)
            self._hearing.results_lost(executor_id, now_s)
            ended = [state.end(task_id, now_s) for task_id in sorted(executor.running)]
            attempts = [each for each in ended if each is not None]
            if blame:
                words = f"executor {executor_id} on {executor.host} was lost: {reason}"
                self._hearing.executor_lost(attempts, words, now_s)
            for attempt in attempts:
                self._jobs.requeue(attempt.stage, attempt.index, now_s)
        if changed:
            self._hearing.outputs_lost(changed, now_s)

    def agent_lost(self, agent_id: str, now_s: float) -> None:
        """With what its executors have left; they themselves are told to be lost besides."""
        if agent_id and (changed := self.state.outputs.lost_of_agent(agent_id)):
            self._hearing.outputs_lost(changed, now_s)

    def executor_leaving(self, executor_id: str) -> None:
        """It gets no more tasks."""
        executor = self.state.executors.get(executor_id)
        if executor is not None:
            executor.leaving = True
            self.state.refresh(executor)

    def refuse(self, failure: Failure, now_s: float) -> None:
        """Nothing can be run any more: all jobs end so, later ones too."""
        self.state.refused = failure
        for job in list(self.state.jobs.values()):
            self._jobs.end(job, failure, now_s)

    # ---- What comes of it --------------------------------------------------------------------

    def settle(self, now_s: float) -> tuple[Sequence[Effect], float | None]:
        """What is to be done now, and when time alone asks for another look (None: never)."""
        self._hearing.fetch()
        wakes = [self._placing.place(now_s)]
        if (twins_s := self._twins.look(now_s)) is not None:
            wakes.append(twins_s)
            wakes.append(self._placing.place(now_s))
        if self._elastic:
            wakes.append(self._size(now_s))
        effects, self.state.effects = self.state.effects, []
        return effects, min((each for each in wakes if each is not None), default=None)

    def active_stages(self) -> tuple[StageView, ...]:
        """How those stand of which tasks run, or could."""
        return active_stages(self.state)

    def view(self, now_s: float) -> View:
        return view(self.state, now_s)

    @property
    def slots(self) -> int:
        """Of all executors that are there."""
        return self.state.slots

    # ---- Its own -------------------------------------------------------------------------

    def _beat(self, executor: Executor, beat: Beat, now_s: float) -> None:
        executor.memory_bytes = beat.memory_bytes
        executor.disk_bytes = beat.disk_bytes
        for task_id, elements in beat.running.items():
            attempt = self.state.tasks.get(task_id)
            if attempt is None or attempt.executor is not executor:
                continue
            if elements > attempt.elements:
                attempt.elements = elements
                attempt.moved_s = now_s

    def _size(self, now_s: float) -> float | None:
        """Tell how many slots there is work for, and drop executors that have had none."""
        state = self.state
        wanted = len(state.tasks) + sum(len(each.pending) for each in state.by_turn.values())
        if wanted != self._wanted:
            self._wanted = wanted
            state.effects.append(Want(wanted))
        wake_s: float | None = None
        for executor in self._idle():
            keeps = state.kept.any_on(executor.id)
            limit_s = state.rules.idle_keeping_s if keeps else state.rules.idle_s
            assert executor.idle_since_s is not None
            until_s = executor.idle_since_s + limit_s
            if until_s <= now_s:
                executor.dropped = True
                state.refresh(executor)
                state.effects.append(Drop(executor.id, f"idle for {limit_s:g} s"))
            elif until_s != float("inf"):
                wake_s = until_s if wake_s is None else min(wake_s, until_s)
        return wake_s

    def _idle(self) -> Iterable[Executor]:
        # Whoever can be dropped is free; there are many only when there is little to do.
        return [each for each in self.state.free.values() if each.idle_since_s is not None]


__all__ = ["Core"]
