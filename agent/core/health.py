"""What the outcomes of probes mean.  Values in, verdicts out; no clock, no effects."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from mesos_py.health import CommandProbe, HttpProbe, Plan, Probe
from mesos_py.states import TASK_RUNNING
from mesos_py.v1 import types_pb2 as pb

# The two kinds of checks; a task may have one of each.
HEALTH: Final = "health"
CHECK: Final = "check"


@dataclass(frozen=True)
class Outcome:
    """How one probe ended.

    `value` is the exit code, the HTTP status, or whether the connection was made; None
    where there is none (it timed out, could not be run, was killed).  `good` None: the
    probe was lost for a reason that is not the task's, and says nothing about it.
    """

    good: bool | None
    value: int | None
    text: str


class Verdict(NamedTuple):
    """What a health check's outcome comes to."""

    # Whether the framework is to be told, and what.
    report: bool
    healthy: bool
    kill: bool


class Health:
    """A health check's memory: whether the task is healthy, failures in a row."""

    __slots__ = ("_grace_until_s", "_plan", "failures", "healthy")

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._grace_until_s = 0.0
        self.failures = 0
        # None: no outcome has counted yet.
        self.healthy: bool | None = None

    def begin(self, now_s: float) -> None:
        """The task runs: its grace begins."""
        self._grace_until_s = now_s + self._plan.grace_s

    def lenient_for(self, seconds: float) -> None:
        """The agent could not look for so long: the grace is longer by that."""
        self._grace_until_s += seconds

    def judge(self, outcome: Outcome, now_s: float) -> Verdict:
        """Take an outcome into account that says something (`good` is not None)."""
        if outcome.good:
            news = self.healthy is not True
            self.healthy, self.failures = True, 0
            return Verdict(report=news, healthy=True, kill=False)
        if self.healthy is None and now_s < self._grace_until_s:
            return Verdict(report=False, healthy=False, kill=False)
        self.healthy = False
        self.failures += 1
        # Each failure is told, as Mesos does.
        return Verdict(report=True, healthy=False, kill=self.failures >= self._plan.failures)


@dataclass(slots=True)
class Check:
    """One check of a running task: where it is in its round of pause and probe."""

    # HEALTH or CHECK.
    kind: str
    # No other check in its container has this name.
    name: str
    plan: Plan
    # Of health checks.
    health: Health | None = None
    # Of checks: the last result.
    value: int | None = None
    # Of the probe in flight, or of the last one.
    number: int = 0
    in_flight: bool = False


def fill(status: pb.TaskStatus, checks: Iterable[Check]) -> None:
    """Put into a status of a running task what its checks say of it.

    A task with a check has a result in all its statuses, empty while there is none or
    when it does not run (Mesos).
    """
    runs = status.state == TASK_RUNNING
    for check in checks:
        if check.health is None:
            status.check_status.CopyFrom(
                check_status(check.plan.probe, check.value if runs else None)
            )
        elif runs and check.health.healthy is not None:
            status.healthy = check.health.healthy


def check_status(probe: Probe, value: int | None) -> pb.CheckStatusInfo:
    """The result of a check; without a value: that there is none."""
    if isinstance(probe, CommandProbe):
        command = pb.CheckStatusInfo.Command(exit_code=value)
        return pb.CheckStatusInfo(type=pb.CheckInfo.COMMAND, command=command)
    if isinstance(probe, HttpProbe):
        http = pb.CheckStatusInfo.Http(status_code=value)
        return pb.CheckStatusInfo(type=pb.CheckInfo.HTTP, http=http)
    tcp = pb.CheckStatusInfo.Tcp(succeeded=None if value is None else bool(value))
    return pb.CheckStatusInfo(type=pb.CheckInfo.TCP, tcp=tcp)
