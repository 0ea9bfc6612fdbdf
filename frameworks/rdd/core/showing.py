"""Views of what the core knows."""

from __future__ import annotations

from frameworks.rdd.core.stages import Plan
from frameworks.rdd.core.state import Attempt, JobState, Stage, State
from frameworks.rdd.core.views import (
    ExecutorView,
    JobStatus,
    JobView,
    KeptView,
    StageStatus,
    StageView,
    TaskView,
    View,
)
from frameworks.rdd.nodes import Node

# Of a stage's lineage so much is shown.
MOST_LINES = 30


def job_view(job: JobState, status: JobStatus, ended_s: float | None, error: str = "") -> JobView:
    return JobView(
        number=job.number,
        action=job.action,
        place=job.place,
        group=job.group,
        description=job.description,
        status=status,
        stages=tuple(job.stages),
        began_s=job.began_s,
        ended_s=ended_s,
        error=error.strip().split("\n")[-1],
    )


def stage_view(stage: Stage, status: StageStatus, now_s: float | None) -> StageView:
    """now_s: of its end, if it has none yet; None: it goes on."""
    return StageView(
        id=stage.id,
        attempt=max(0, stage.tries - 1),
        name=stage.name,
        place=stage.plan.node.place,
        rdd_id=stage.plan.node.id,
        jobs=tuple(stage.jobs),
        status=status,
        total=len(stage.splits),
        done=len(stage.splits) - len(stage.undone),
        running=sum(map(len, stage.running.values())),
        failed=stage.failed_tasks,
        began_s=stage.began_s,
        ended_s=now_s if stage.ended_s is None else stage.ended_s,
        shuffle_id=stage.shuffle.shuffle_id if stage.shuffle is not None else None,
        reads=tuple(stage.plan.shuffles),
        lineage=_lineage(stage.plan),
        read_bytes=stage.read_bytes,
        written_bytes=stage.written_bytes,
        spilled_bytes=stage.spilled_bytes,
    )


def _lineage(plan: Plan) -> tuple[str, ...]:
    """Not all, of what iterates without end."""
    lines = [_described(node) for node in reversed(plan.nodes[-MOST_LINES:])]
    if more := len(plan.nodes) - len(lines):
        lines.append(f"{more} more")
    return tuple(lines)


def _described(node: Node) -> str:
    name = " ".join(each for each in (node.name, node.place) if each) or type(node).__name__
    kept = " (kept)" if node.storage else ""
    saved = " (saved)" if node.checkpoint else ""
    shuffle = node.shuffle
    reads = f" reads shuffle {shuffle.shuffle_id}" if shuffle and not node.checkpoint else ""
    return f"({node.partitions}) RDD {node.id}: {name}{kept}{saved}{reads}"


def task_view(attempt: Attempt, now_s: float) -> TaskView:
    return TaskView(
        task_id=attempt.task_id,
        stage=attempt.stage.id,
        partition=attempt.stage.splits[attempt.index],
        attempt=attempt.number,
        executor=attempt.executor.id,
        host=attempt.executor.host,
        ran_s=now_s - attempt.began_s,
        elements=attempt.elements,
        cancelled=bool(attempt.cancelled),
    )


def active_stages(state: State) -> tuple[StageView, ...]:
    """Those of which tasks run, or could."""
    return tuple(stage_view(each, "ACTIVE", None) for each in state.stages.values() if each.active)


def view(state: State, now_s: float) -> View:
    """All of it."""
    executors = tuple(
        ExecutorView(
            id=each.id,
            host=each.host,
            slots=each.slots,
            running=len(each.running),
            memory_bytes=each.memory_bytes,
            disk_bytes=each.disk_bytes,
            excluded=state.blame.excluded(each.id, now_s),
            leaving=each.leaving or each.dropped,
        )
        for each in state.executors.values()
    )
    kept = tuple(
        KeptView(rdd_id, amount.partitions, amount.memory_bytes, amount.disk_bytes)
        for rdd_id, amount in state.kept.amounts().items()
    )
    return View(
        now_s=now_s,
        jobs=(
            *(job_view(job, "RUNNING", None) for job in state.jobs.values()),
            *state.ended_jobs,
        ),
        stages=(
            *(stage_view(each, _status(each), None) for each in state.stages.values()),
            *state.ended_stages,
        ),
        tasks=tuple(task_view(each, now_s) for each in state.tasks.values()),
        executors=executors,
        kept=kept,
        waiting=sum(len(each.pending) for each in state.stages.values()),
    )


def _status(stage: Stage) -> StageStatus:
    if not stage.undone:
        return "COMPLETE"
    return "ACTIVE" if stage.active else "WAITING"


__all__ = ["active_stages", "job_view", "stage_view", "view"]
