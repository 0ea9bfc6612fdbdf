"""How jobs and stages stand, as PySpark's StatusTracker tells it."""

from __future__ import annotations

from typing import NamedTuple

from frameworks.rdd.core.views import JobView, StageView
from frameworks.rdd.runner import Runner


class SparkJobInfo(NamedTuple):
    """status: RUNNING, SUCCEEDED or FAILED."""

    jobId: int
    stageIds: list[int]
    status: str


class SparkStageInfo(NamedTuple):
    stageId: int
    currentAttemptId: int
    name: str
    numTasks: int
    numActiveTasks: int
    numCompletedTasks: int
    numFailedTasks: int


class StatusTracker:
    """What is known now; jobs and stages that ended long ago are forgotten."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def getJobIdsForGroup(self, jobGroup: str | None = None) -> list[int]:
        """None: those that belong to no group."""
        return [each.number for each in self._jobs() if each.group == (jobGroup or "")]

    def getActiveStageIds(self) -> list[int]:
        return sorted({each.id for each in self._stages() if each.status == "ACTIVE"})

    def getActiveJobsIds(self) -> list[int]:
        return sorted(each.number for each in self._jobs() if each.status == "RUNNING")

    def getJobInfo(self, jobId: int) -> SparkJobInfo | None:
        for each in self._jobs():
            if each.number == jobId:
                return SparkJobInfo(jobId, list(each.stages), each.status)
        return None

    def getStageInfo(self, stageId: int) -> SparkStageInfo | None:
        """Of its last attempt."""
        found = [each for each in self._stages() if each.id == stageId]
        if not found:
            return None
        last = max(found, key=_attempt)
        return SparkStageInfo(
            stageId, last.attempt, last.name, last.total, last.running, last.done, last.failed
        )

    def _jobs(self) -> tuple[JobView, ...]:
        return self._runner.view().jobs

    def _stages(self) -> tuple[StageView, ...]:
        return self._runner.view().stages


def _attempt(stage: StageView) -> int:
    return stage.attempt
