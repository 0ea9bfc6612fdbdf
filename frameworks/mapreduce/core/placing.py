"""Which attempts are started on what is offered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from frameworks.common.delay import Level
from frameworks.common.fairness import Turns
from frameworks.mapreduce.core import holding
from frameworks.mapreduce.core.jobs import Job, Phase
from frameworks.mapreduce.core.journal import Launched
from frameworks.mapreduce.core.orders import Room, Start
from frameworks.mapreduce.core.places import (
    Place,
    answer,
    may_have_worker,
    most_left,
    places_of,
)
from frameworks.mapreduce.core.state import State
from frameworks.mapreduce.core.waiting import level_of
from frameworks.mapreduce.job import JobSpec
from frameworks.mapreduce.names import AttemptName, Kind
from frameworks.mapreduce.work import Work
from mesos_py.resources import Resources

# So long a task that has failed is tried elsewhere, if there is any elsewhere.
ELSEWHERE_S: Final = 10.0


def place(state: State, rooms: Sequence[Room]) -> None:
    """Answer each offer once: by one Launch, with all that is started on it, or by a Decline."""
    places = places_of(state, rooms)
    _lift_exclusions(state)
    Round(state, places).run()
    for found in places:
        answer(state, found)


def has_work(job: Job) -> bool:
    """Whether anything of it could be started now."""
    return _has_ready(job) or _has_early(job) or _has_twins(job)


def _has_ready(job: Job) -> bool:
    """Maps, and reduces that wait for none."""
    if not job.active:
        return False
    return bool(job.maps.waiting.count or (job.reduces.waiting.count and job.maps.settled))


def _has_early(job: Job) -> bool:
    """Reduces that would wait for maps, which run already."""
    return job.active and job.reduces_may_start() and not job.maps.settled


def _has_twins(job: Job) -> bool:
    return job.active and bool(job.maps.twins or job.reduces.twins)


class Round:
    """One round of offers.

    near: of jobs that settle for nothing but a host with their input, the agents that are.
    Elsewhere they need not be looked at, which is what makes hundreds of waiting jobs cheap.
    least: what the least demanding task needs; with less a place is full.
    """

    def __init__(self, state: State, places: list[Place]) -> None:
        self.state = state
        self.places = places
        self.ready = Turns(state.options.order)
        self.early = Turns(state.options.order)
        self.twins = Turns(state.options.order)
        self.near: dict[int, set[str]] = {}
        self.least = _least(job for job in state.current.values() if has_work(job))
        agent_of = {name: one.agent.agent_id for one in places for name in one.agent.names}
        for job in state.current.values():
            self._join(job)
            if has_work(job):
                job.why_not = ""
            if job.number in self.ready and job.maps.waiting.count:
                self._narrow(job, agent_of)
        holding.choose(state, places, self.ready)

    def run(self) -> None:
        """One attempt per place and turn, so that few attempts spread over many agents."""
        open_places = self.places
        while open_places and (self.ready or self.early or self.twins):
            open_places = [place for place in open_places if self._fill(place)]
        self._count_skips()

    def _join(self, job: Job) -> None:
        for turns, has in (
            (self.ready, _has_ready),
            (self.early, _has_early),
            (self.twins, _has_twins),
        ):
            if job.number in turns:
                turns.remove(job.number)
            if has(job):
                turns.add(job.number, job.rules.priority, job.held_milli)

    def _narrow(self, job: Job, agent_of: dict[str, str]) -> None:
        waiting = job.maps.waiting
        if waiting.only_near and job.delay.allowed(self.state.now_s) == "host":
            self.near[job.number] = waiting.hosts_among(agent_of)

    def _count_skips(self) -> None:
        """Jobs that have let an offer pass begin to wait, and get less choosy in the end."""
        if not self.near:
            return
        left = most_left(self.places)
        soonest_s = self.state.options.refuse_s
        for number in self.near:
            job = self.state.current[number]
            if job.maps.waiting.count and left.contains(job.maps.rules.needs):
                soonest_s = min(soonest_s, job.delay.skipped(self.state.now_s))
                job.why_not = job.why_not or "waits for a host that has the input"
        for one in self.places:
            one.later(soonest_s)

    # ---- One attempt on one place ----------------------------------------------------------

    def _fill(self, place: Place) -> bool:
        """Start one attempt there.  False if nothing (more) can be.

        Maps, and reduces that have all they need, come first, of whichever job; then reduces
        that would wait for maps, which run already; then twins.
        """
        if not place.room.contains(self.least) or not may_have_worker(self.state, place):
            return False
        for turns, start in (
            (self.ready, self._ready),
            (self.early, self._reduce),
            (self.twins, self._twin),
        ):
            for number in turns:
                near = self.near.get(number) if turns is self.ready else None
                if near is not None and place.agent.agent_id not in near:
                    continue
                job = self.state.current[number]
                if holding.is_kept(self.state, place, job) or self._excluded(job, place):
                    continue
                if start(place, job):
                    self._join(job)
                    return True
        return False

    def _ready(self, place: Place, job: Job) -> bool:
        return self._map(place, job) if job.maps.waiting.count else self._reduce(place, job)

    def _map(self, place: Place, job: Job) -> bool:
        phase, now_s = job.maps, self.state.now_s
        if not place.fits(phase):
            return False
        agent, waiting, cluster = place.agent, phase.waiting, self.state.cluster
        task = waiting.again(lambda number: self._may_try(place, phase, number))
        if task is not None:
            self._start(place, job, phase, task, self._level(place, phase, task))
            return True
        racks = bool(agent.rack)
        allowed = job.delay.allowed(now_s, racks)
        rack = cluster.hosts_of_rack.get(agent.rack, set()) if racks else set()
        found = waiting.find(agent.names, rack, allowed)
        if found is not None:
            if phase.hosts(found[0]):
                job.delay.launched(found[1])
            self._start(place, job, phase, *found)
            return True
        if waiting.choosy():
            self._elsewhere_first(place, job)
        else:
            place.later(job.delay.skipped(now_s, racks))
            job.why_not = "waits for a host that has the input"
        return False

    def _reduce(self, place: Place, job: Job) -> bool:
        phase = job.reduces
        if not place.fits(phase):
            return False
        task = phase.waiting.again(lambda number: self._may_try(place, phase, number))
        if task is None:
            found = phase.waiting.find((), set(), "any")
            if found is None:
                self._elsewhere_first(place, job)
                return False
            task = found[0]
        self._start(place, job, phase, task, "any")
        return True

    def _twin(self, place: Place, job: Job) -> bool:
        agent_id = place.agent.agent_id
        for phase in job.phases():
            if agent_id in phase.slow_agents or not phase.twins or not place.fits(phase):
                continue
            for number in phase.twins:
                attempts = phase.tasks[number].attempts
                if agent_id not in attempts.running.values() and agent_id not in attempts.failed_on:
                    phase.twins.remove(number)
                    level = self._level(place, phase, number)
                    self._start(place, job, phase, number, level, twin=True)
                    return True
        return False

    def _level(self, place: Place, phase: Phase, task: int) -> Level:
        agent, racks = place.agent, self.state.cluster.rack_of_host
        return level_of(phase.hosts(task), agent.names, agent.rack, racks)

    def _start(
        self, place: Place, job: Job, phase: Phase, task: int, level: Level, twin: bool = False
    ) -> None:
        state, agent, rules = self.state, place.agent, phase.rules
        place.room -= rules.needs
        holding.started(state, job, phase)
        worker = agent.worker
        if worker is None:
            worker_id = state.cluster.next_worker_id(state.options.worker_prefix)
        else:
            worker_id = worker.worker_id
        number = phase.task(task).attempts.next
        name = str(AttemptName(job.job_id, phase.kind, task, number))
        state.write(
            Launched(name, agent.agent_id, agent.hostname, worker_id, level, twin, state.now_s)
        )
        assert agent.worker is not None
        agent.worker.sure = True
        work = Work(
            attempt=name,
            job_url=f"{job.spec.staging.rstrip('/')}/job.json",
            split=job.maps.splits[task] if phase.kind == "map" else None,
            maps=job.maps.total if phase.kind == "reduce" else 0,
            out=part_url(state, job.spec, phase.kind, name, task),
            mem_mb=rules.mem_mb,
            cpus=rules.cpus,
        )
        place.starts.append(Start(name, work, rules.needs))

    # ---- What keeps an attempt from a place ------------------------------------------------

    def _excluded(self, job: Job, place: Place) -> bool:
        if not is_excluded(self.state, job, place.agent.agent_id):
            return False
        job.why_not = f"too much has failed on {place.agent.hostname}"
        return True

    def _may_try(self, place: Place, phase: Phase, number: int) -> bool:
        """Whether a task that has failed may be tried here: elsewhere first, if there is any."""
        task = phase.tasks[number]
        failed_on, now_s = task.attempts.failed_on, self.state.now_s
        if place.agent.agent_id not in failed_on or now_s - task.failed_s >= ELSEWHERE_S:
            return True
        return failed_on.issuperset(self.state.cluster.usable(now_s))

    def _elsewhere_first(self, place: Place, job: Job) -> None:
        place.later(1.0)
        job.why_not = "what has failed is tried on another agent first"


def _least(jobs: Iterable[Job]) -> Resources:
    least: dict[str, int] = {}
    for job in jobs:
        for phase in job.phases():
            for name, milli in phase.rules.needs.scalars.items():
                least[name] = min(milli, least.get(name, milli))
    return Resources(least)


def part_url(state: State, spec: JobSpec, kind: Kind, attempt: str, task: int) -> str:
    """Where an attempt leaves its part of the output; "" for a map whose output reduces read."""
    if kind == "map" and spec.reduces:
        return ""
    name = f"part-{task:05}{state.options.extension(spec.conf)}"
    return f"{spec.output.rstrip('/')}/_temporary/{attempt}/{name}"


def is_excluded(state: State, job: Job, agent_id: str) -> bool:
    if not job.blame and not state.blame:
        return False
    now_s = state.now_s
    return job.blame.excluded(agent_id, now_s) or state.blame.excluded(agent_id, now_s)


def _lift_exclusions(state: State) -> None:
    """Rather than wait for agents that have failed, a job uses them when there are no others."""
    usable = state.cluster.usable(state.now_s)
    for job in state.current.values():
        if not (state.blame or job.blame) or not has_work(job):
            continue
        if all(is_excluded(state, job, agent_id) for agent_id in usable):
            job.blame.lift(usable)
            state.blame.lift(usable)
