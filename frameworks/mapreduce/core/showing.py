"""Views: what people are shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

from frameworks.common.speculation import quantile
from frameworks.mapreduce.core.cluster import Worker
from frameworks.mapreduce.core.jobs import Job, Phase, add_counters
from frameworks.mapreduce.core.placing import has_work, is_excluded
from frameworks.mapreduce.core.state import State
from frameworks.mapreduce.core.tasks import Attempt, Task
from frameworks.mapreduce.core.views import (
    AgentView,
    AttemptView,
    JobView,
    PhaseView,
    TaskState,
    TaskView,
)
from frameworks.mapreduce.job import Split
from frameworks.mapreduce.names import Kind, parse_attempt, task_id
from frameworks.mapreduce.work import Counters
from mesos_py.resources import Resources, milli_text

_GROUP = "org.apache.hadoop.mapreduce.JobCounter"


def job_views(state: State, jobs: Iterable[Job]) -> list[JobView]:
    offered = state.cluster.offered(state.now_s)
    return [_job_view(state, job, offered) for job in jobs]


def _job_view(state: State, job: Job, offered: Set[Resources]) -> JobView:
    failed = _attempt(job, job.failed_attempt)
    agents = state.cluster.agents.values() if job.active and (state.blame or job.blame) else ()
    excluded = [one.hostname for one in agents if is_excluded(state, job, one.agent_id)]
    return JobView(
        job_id=job.job_id,
        name=job.spec.name,
        user=job.spec.user,
        priority=job.rules.priority,
        output=job.spec.output,
        state=job.state,
        submitted_s=job.submitted_s,
        started_s=job.started_s,
        ended_s=job.ended_s,
        maps=_phase_view(state, job, job.maps),
        reduces=_phase_view(state, job, job.reduces),
        why=job.why,
        failure=job.failure,
        failed_attempt=job.failed_attempt,
        failed_host="" if failed is None else failed.hostname,
        waiting_for=_waiting_for(state, job, offered),
        trouble=min(job.troubles.values(), key=lambda one: one.since_s, default=None),
        excluded=tuple(sorted(excluded)),
        counters=_counters(job),
    )


def _waiting_for(state: State, job: Job, offered: Set[Resources]) -> str:
    if not has_work(job):
        return ""
    phase = job.maps if job.maps.waiting.count else job.reduces
    needs = phase.rules.needs + state.options.worker_needs
    if not offered:
        return "no offers for a minute" if state.cluster.agents else "no offers yet"
    if state.hold is not None and state.hold.job == job.number:
        return f"room on {state.cluster.hostname(state.hold.agent_id)}, which is kept for it"
    # Where some of its kind run, others fit, once these have ended.
    if not phase.live and not any(seen.contains(needs) for seen in offered):
        for name, unit in (("mem", " MB"), ("cpus", " cpus")):
            largest = max(seen.scalars.get(name, 0) for seen in offered)
            wanted = needs.scalars.get(name, 0)
            if largest < wanted:
                shown = milli_text(largest)
                return f"needs {milli_text(wanted)}{unit}, largest offer seen {shown}{unit}"
        return f"needs {needs}, no offer seen has all of that"
    most = state.options.max_workers
    if not job.why_not and most is not None and state.cluster.worker_count() >= most:
        return f"room on the {most} agents that may be used at a time"
    return job.why_not or "room"


def _phase_view(state: State, job: Job, phase: Phase) -> PhaseView:
    committing = phase.commits.chosen_count - phase.done
    live = {attempt.task for attempt in phase.live.values()}
    running = {task for task in live if phase.tasks[task].state == "running"}
    progress = phase.done + phase.failed + committing + _progress(phase)
    ended = phase.ended
    return PhaseView(
        total=phase.total,
        waiting=phase.total - phase.done - phase.failed - committing - len(running),
        running=len(running),
        committing=committing,
        done=phase.done,
        failed=phase.failed,
        progress=progress / phase.total if phase.total else float(job.state != "waiting"),
        attempts_failed=ended["failed"],
        attempts_lost=ended["lost"],
        attempts_killed=ended["killed"] + ended["preempted"],
        twins=phase.twin_count,
        on_host=phase.levels["host"],
        on_rack=phase.levels["rack"],
        elsewhere=phase.levels["any"],
        lost_outputs=phase.lost_outputs,
        eta_s=_eta_s(state, job, phase, progress),
    )


def _progress(phase: Phase) -> float:
    best: dict[int, float] = {}
    for attempt in phase.live.values():
        if phase.tasks[attempt.task].state == "running":
            best[attempt.task] = max(best.get(attempt.task, 0.0), attempt.progress)
    return sum(best.values())


def _eta_s(state: State, job: Job, phase: Phase, progress: float) -> float | None:
    """From what tasks have taken, and how many run at once."""
    if not job.active or not phase.live or not phase.durations:
        return None
    typical_s = quantile([took_s for _agent, took_s in phase.durations], 0.5)
    return (phase.total - progress) * typical_s / len(phase.live)


def _counters(job: Job) -> Counters:
    sums: dict[str, dict[str, int]] = {}
    add_counters(sums, job.counters)
    seen: set[tuple[Kind, int]] = set()
    for attempt in job.live():
        task = job.phase(attempt.kind).tasks[attempt.task]
        if not task.counted and (attempt.kind, attempt.task) not in seen:
            seen.add((attempt.kind, attempt.task))
            add_counters(sums, attempt.counters)
    maps, reduces = job.maps, job.reduces
    ours = {
        "TOTAL_LAUNCHED_MAPS": maps.launched,
        "TOTAL_LAUNCHED_REDUCES": reduces.launched,
        "DATA_LOCAL_MAPS": maps.levels["host"],
        "RACK_LOCAL_MAPS": maps.levels["rack"],
        "OTHER_LOCAL_MAPS": maps.levels["any"],
        "NUM_FAILED_MAPS": maps.ended["failed"],
        "NUM_FAILED_REDUCES": reduces.ended["failed"],
        "NUM_KILLED_MAPS": maps.ended["killed"] + maps.ended["preempted"],
        "NUM_KILLED_REDUCES": reduces.ended["killed"] + reduces.ended["preempted"],
    }
    counted = {name: count for name, count in ours.items() if count}
    if counted:
        add_counters(sums, {_GROUP: counted})
    return sums


def _attempt(job: Job, name: str) -> Attempt | None:
    parsed = parse_attempt(name)
    task = None if parsed is None else job.phase(parsed.kind).tasks.get(parsed.task)
    return None if parsed is None or task is None else task.attempt(parsed.attempt)


# ---- Tasks ---------------------------------------------------------------------------------


def task_views(
    job: Job, kind: Kind | None, wanted: TaskState | None, since: int, limit: int
) -> list[TaskView]:
    found: list[TaskView] = []
    for phase, number, state in _tasks(job, kind):
        if wanted is not None and state != wanted:
            continue
        if since > 0:
            since -= 1
        elif len(found) >= limit:
            break
        else:
            found.append(_task_view(job, phase, number, state))
    return found


def _tasks(job: Job, kind: Kind | None) -> Iterator[tuple[Phase, int, TaskState]]:
    for phase in job.phases():
        if kind is None or kind == phase.kind:
            for number in range(phase.total):
                task = phase.tasks.get(number)
                yield phase, number, "waiting" if task is None else task.state


def _task_view(job: Job, phase: Phase, number: int, state: TaskState) -> TaskView:
    task = phase.tasks.get(number) or Task(number)
    return TaskView(
        task_id=task_id(job.job_id, phase.kind, number),
        kind=phase.kind,
        number=number,
        state=state,
        where=split_text(phase.splits[number]) if phase.splits else "",
        failures=task.attempts.failures,
        attempts=tuple(_attempt_view(phase, attempt) for attempt in task.history),
    )


def split_text(split: Split) -> str:
    """Its first piece as URL:start+length, and how many others there are."""
    if not split.pieces:
        return "nothing"
    piece = split.pieces[0]
    text = piece.url if piece.length < 0 else f"{piece.url}:{piece.start}+{piece.length}"
    more = len(split.pieces) - 1
    return f"{text} and {more} more" if more else text


def _attempt_view(phase: Phase, attempt: Attempt) -> AttemptView:
    return AttemptView(
        attempt=attempt.name,
        agent_id=attempt.agent_id,
        hostname=attempt.hostname,
        worker_id=attempt.worker_id,
        locality=attempt.level if phase.hosts(attempt.task) else "",
        state=attempt.state,
        twin=attempt.twin,
        launched_s=attempt.launched_s,
        started_s=attempt.started_s,
        ended_s=attempt.ended_s,
        progress=attempt.progress,
        phase=attempt.phase,
        status=attempt.status,
        why=attempt.why or attempt.kill_why,
        failure=attempt.failure,
    )


def _idle_since_s(worker: Worker | None) -> float:
    return 0.0 if worker is None or worker.running else worker.idle_since_s


def agent_views(state: State) -> list[AgentView]:
    blamed = state.blame.agents()
    return [
        AgentView(
            agent_id=agent.agent_id,
            hostname=agent.hostname,
            rack=agent.rack,
            worker_id="" if agent.worker is None else agent.worker.worker_id,
            running=0 if agent.worker is None else len(agent.worker.running),
            idle_since_s=_idle_since_s(agent.worker),
            failures=state.blame.failures(agent.agent_id),
            excluded_until_s=state.blame.until_s(agent.agent_id),
        )
        for agent in state.cluster.agents.values()
        if agent.worker is not None or agent.agent_id in blamed
    ]
