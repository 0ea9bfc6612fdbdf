"""When a job has ended, and how: told of ranks, tasks and the launcher.  Pure.

The rule.  A job ends well when the launcher has ended with 0 and every rank was seen to end
with 0.  It is ended, all of it, when

- a rank ends with another code, or by a signal;
- a proxy (a task) ends before its ranks, or is lost, or its agent is;
- the launcher ends, by itself or by force;
- not all ranks have started within the start time-out;
- a rank has ended with 0, is known not to have left MPI in peace (MPI_Finalize), and some
  other still runs after the start time-out: it has left before MPI_Init, where the others
  wait for it.  A rank that has finalized may end as long before the others as it likes.
"""

from __future__ import annotations

import signal
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from frameworks.mpi.core.streams import Report
from mesos_py import (
    TASK_DROPPED,
    TASK_FINISHED,
    TASK_GONE,
    TASK_GONE_BY_OPERATOR,
    TASK_KILLED,
    TASK_LOST,
    TASK_RUNNING,
    TASK_UNREACHABLE,
    TaskStatus,
    is_preempted,
    is_terminal,
    short_name,
)

# Reports come by another way than the task's end does.
REPORTS_LATE_S: Final = 5.0

LOST: Final = 4
# The exit code of a proxy's task when a rank's keeper has vanished.
VANISHED: Final = 81
_NAMED: Final = 5


class _Cause(IntEnum):
    """What has failed, the part that explains most first.

    Who is killed from outside takes ranks elsewhere along, which miss it and may be heard of
    first; an agent is missed seconds after it has gone.
    """

    KILLED = 0
    AGENT = 1
    RANK = 2
    TOLD = 3
    PROXY = 4
    LAUNCHER = 5


# A part that fails takes others with it: what came first may be heard of last.  After so long
# what is known by then counts.
SETTLE_S: Final = dict.fromkeys(_Cause, 1.0) | {_Cause.TOLD: 2.5, _Cause.LAUNCHER: 2.5}
# When the launcher has ended tasks do too: so long for all of them to be heard of.
LAST_WORDS_S: Final = 2.5

_AGENT_GONE: Final = (
    TaskStatus.REASON_AGENT_REMOVED,
    TaskStatus.REASON_AGENT_REMOVED_BY_OPERATOR,
)
# What ends nothing but by someone's will, as exit codes of shells.
_BY_FORCE: Final = (VANISHED, 128 + signal.SIGKILL, 128 + signal.SIGTERM)
_LIMITS: Final = (
    TaskStatus.REASON_CONTAINER_LIMITATION,
    TaskStatus.REASON_CONTAINER_LIMITATION_DISK,
    TaskStatus.REASON_CONTAINER_LIMITATION_MEMORY,
)


@dataclass(frozen=True)
class Host:
    """Where ranks run: one task, a proxy, on one agent."""

    agent_id: str
    hostname: str
    task_id: str
    slots: int


@dataclass(frozen=True)
class Verdict:
    """The job is over.  why: what to tell, "" if all is well.  again: nothing has begun to
    run, for want of an offer or since a proxy could not begin; it can be tried once more."""

    code: int
    why: str = ""
    again: bool = False


@dataclass
class _Rank:
    host: Host
    started: bool = False
    code: int | None = None
    entered: bool = False
    finished: bool | None = None
    ended_s: float = 0.0

    def left_early(self, told: bool) -> bool:
        """Whether it has ended and is known not to have left MPI in peace.

        told: the launcher tells who comes to MPI_Init, and looks after all who have.
        """
        if self.code != 0:
            return False
        return self.finished is False or (told and self.finished is None and not self.entered)


@dataclass
class _Task:
    host: Host
    first_rank: int
    running: bool = False
    ended_s: float | None = None
    # It has failed, and that has not ended the job: its ranks were done.
    excused: Verdict | None = None


class Job:
    """One launch, from its tasks to its verdict."""

    def __init__(
        self,
        hosts: Sequence[Host],
        *,
        start_timeout_s: float,
        now_s: float,
        orphaned: Collection[int] = (),
        unbegun: Collection[int] = (),
        told: bool = False,
    ) -> None:
        """orphaned: exit codes of proxies that have lost the launcher; unbegun: of those that
        could not begin, and have started no rank.  told: the launcher tells
        which ranks have come to MPI_Init (`entered`)."""
        self._told = told
        self._orphaned = orphaned
        self._unbegun = unbegun
        self._start_timeout_s = start_timeout_s
        self._start_until_s = now_s + start_timeout_s
        self._ranks: list[_Rank] = []
        self._tasks: dict[str, _Task] = {}
        for host in hosts:
            self._tasks[host.task_id] = _Task(host, len(self._ranks))
            self._ranks += [_Rank(host) for _ in range(host.slots)]
        # What failed first, and until when something that explains it better may come.
        self._failure: Verdict | None = None
        self._failure_until_s = 0.0
        self._cause = _Cause.LAUNCHER
        # The task that has failed, if it is one.
        self._failed_task: _Task | None = None
        self._launcher_code: int | None = None
        self._lost_agents: set[str] = set()
        # The launcher has failed, and nobody knows why: look whether agents are there.
        self.unexplained = False
        self.verdict: Verdict | None = None

    # ---- What is known ---------------------------------------------------

    def rank_name(self, rank: int) -> str:
        return f"rank {rank} on {self._ranks[rank].host.hostname}"

    @property
    def live_tasks(self) -> list[Host]:
        """Those that were launched and have not ended, as far as was heard."""
        return [task.host for task in self._tasks.values() if task.ended_s is None]

    @property
    def awaited_tasks(self) -> list[Host]:
        """Those of them that will still be heard of: not those on agents that are lost."""
        return [host for host in self.live_tasks if host.agent_id not in self._lost_agents]

    # ---- What happens ----------------------------------------------------

    def reported(self, report: Report, now_s: float) -> None:
        """A keeper's word has come."""
        if not 0 <= report.rank < len(self._ranks):
            return
        rank = self._ranks[report.rank]
        rank.started = True
        if report.finished is not None:
            rank.finished = report.finished
        if report.code is None or rank.code is not None:
            return
        rank.code, rank.ended_s = report.code, now_s
        if report.code:
            what = f"{self.rank_name(report.rank)} {ended_words(report.code)}"
            self._failed(Verdict(report.code, what), now_s, _Cause.RANK)

    def told_failed(self, rank: int, now_s: float) -> None:
        """A rank has failed, says a launcher that tells; its keeper may not come to word."""
        if 0 <= rank < len(self._ranks):
            what = f"{self.rank_name(rank)} has failed"
            self._failed(Verdict(1, what), now_s, _Cause.TOLD)

    def entered(self, rank: int) -> None:
        """A rank has come to MPI_Init, says a launcher that tells."""
        if 0 <= rank < len(self._ranks):
            self._ranks[rank].entered = True

    def status(self, status: TaskStatus, now_s: float) -> None:
        """A task's update has come; others' are passed over."""
        task = self._tasks.get(status.task_id.value)
        if task is None or task.ended_s is not None:
            return
        if status.state == TASK_UNREACHABLE or status.reason in _AGENT_GONE:
            self.agent_lost(task.host.agent_id, f"is lost: {status.message}", now_s)
        elif is_terminal(status.state):
            self._task_ended(task, status, now_s)
        if is_terminal(status.state):
            task.ended_s = now_s
        elif status.state == TASK_RUNNING:
            task.running = True

    def agent_lost(self, agent_id: str, why: str, now_s: float) -> None:
        """An agent is not there any more, or does not answer."""
        self._lost_agents.add(agent_id)
        for task in self._tasks.values():
            if task.host.agent_id == agent_id and task.ended_s is None:
                words = f"agent {task.host.hostname} ({agent_id}) {why}"
                self._failed(Verdict(LOST, words), now_s, _Cause.AGENT)

    def launcher_ended(self, code: int, now_s: float) -> None:
        """The launcher has ended, and all that it has written was taken in.  code: as
        subprocess has it."""
        if self.verdict is not None:
            return
        self._launcher_code = code
        if self._failure is not None:
            if self._cause is _Cause.TOLD and code > 0:
                why = self._failure.why.removesuffix("has failed") + ended_words(code)
                self._failure = Verdict(code, why)
            self._failure_until_s = now_s + LAST_WORDS_S
        elif code:
            self._launcher_failed(code, now_s)
        else:
            self.verdict = self._end()

    def _launcher_failed(self, code: int, now_s: float) -> None:
        shown = 128 - code if code < 0 else code
        gone = [n for n, rank in enumerate(self._ranks) if rank.left_early(self._told)]
        after = f", after {self._names(gone)} had left without MPI_Finalize" if gone else ""
        excused = [task.excused for task in self._tasks.values() if task.excused is not None]
        why = f"the launcher {ended_words(shown)}{after}"
        # It may have seen a proxy go of which we have not heard yet.
        self._failed(excused[0] if excused else Verdict(shown, why), now_s, _Cause.LAUNCHER)
        self.unexplained = code > 0 and not excused
        if code < 0:
            self.verdict = self._failure

    def look(self, now_s: float) -> None:
        """Time has passed: has it come to an end?"""
        if self.verdict is not None:
            return
        for task in self._tasks.values():
            if task.ended_s is not None and now_s >= task.ended_s + REPORTS_LATE_S:
                self._ended_before_its_ranks(task, now_s)
        self._not_started(now_s)
        self._left_early(now_s)
        if self._failure is None:
            return
        all_said = (
            self._launcher_code is not None and not self.awaited_tasks and not self.unexplained
        )
        if now_s >= self._failure_until_s or all_said:
            self._judge()

    # ---- Judging ---------------------------------------------------------

    def _task_ended(self, task: _Task, status: TaskStatus, now_s: float) -> None:
        if status.state == TASK_FINISHED:
            return  # `look` waits for what its ranks say
        if status.exit_status.exit_code in self._orphaned:
            return  # it is the launcher that has gone
        words = f"the proxy on {task.host.hostname}: {_words(status)}"
        again = not task.running and status.state in (TASK_DROPPED, TASK_LOST)
        if status.exit_status.exit_code in self._unbegun:
            again = not any(rank.started for rank in self._ranks)
        cause = _Cause.KILLED if _by_force(status) else _Cause.PROXY
        self._failed(Verdict(LOST, words, again=again), now_s, cause, task)

    def _failed(
        self, verdict: Verdict, now_s: float, cause: _Cause, task: _Task | None = None
    ) -> None:
        """What comes first counts, unless what comes after it explains it."""
        until_s = now_s + SETTLE_S[cause]
        if self._failure is None:
            self._failure_until_s = until_s
        elif cause >= self._cause:
            return
        self._failure_until_s = min(self._failure_until_s, until_s)
        self._failure, self._cause, self._failed_task = verdict, cause, task
        self.unexplained = False

    def _judge(self) -> None:
        task = self._failed_task
        if self._cause is _Cause.PROXY and task is not None and self._is_done(task):
            # Some stumble on their way out.  If it matters to the others the launcher fails.
            task.excused, self._failure = self._failure, None
            if self._launcher_code is not None:
                self.verdict = self._end() if self._launcher_code == 0 else task.excused
        else:
            self.verdict = self._failure

    def _end(self) -> Verdict:
        """The launcher is content."""
        unseen = [number for number, rank in enumerate(self._ranks) if rank.code is None]
        if not unseen:
            return Verdict(0)
        why = f"the launcher has ended, and nobody saw the end of {self._names(unseen)}"
        return Verdict(LOST, why)

    def _is_done(self, task: _Task) -> bool:
        """Whether its ranks have all ended with 0."""
        ranks = self._ranks[task.first_rank : task.first_rank + task.host.slots]
        return all(rank.code == 0 for rank in ranks)

    def _ended_before_its_ranks(self, task: _Task, now_s: float) -> None:
        numbers = range(task.first_rank, task.first_rank + task.host.slots)
        unseen = [number for number in numbers if self._ranks[number].code is None]
        if unseen:
            why = f"the proxy on {task.host.hostname} has ended before {self._names(unseen)}"
            self._failed(Verdict(LOST, why), now_s, _Cause.PROXY)

    def _not_started(self, now_s: float) -> None:
        if now_s < self._start_until_s:
            return
        missing = [number for number, rank in enumerate(self._ranks) if not rank.started]
        if missing:
            waiting = sorted({self._ranks[number].host.hostname for number in missing})
            tasks = [t for t in self._tasks.values() if not t.running and t.ended_s is None]
            hint = (
                "; not running yet: " + ", ".join(t.host.hostname for t in tasks)
                if tasks
                else f"; can {', '.join(waiting)} reach the launcher (--address)?"
            )
            within = f"within {self._start_timeout_s:g} s"
            why = f"{self._names(missing)} did not start {within}{hint}"
            self._failed(Verdict(LOST, why), now_s, _Cause.PROXY)

    def _left_early(self, now_s: float) -> None:
        if all(rank.code is not None for rank in self._ranks):
            return
        for number, rank in enumerate(self._ranks):
            if not rank.left_early(self._told):
                continue
            if now_s >= rank.ended_s + self._start_timeout_s:
                why = (
                    f"{self.rank_name(number)} has ended (exit code 0) without MPI_Finalize, and "
                    f"others still run after {self._start_timeout_s:g} s (--start-timeout)"
                )
                self._failed(Verdict(1, why), now_s, _Cause.RANK)
                return

    def _names(self, numbers: Sequence[int]) -> str:
        shown = ", ".join(self.rank_name(number) for number in numbers[:_NAMED])
        more = len(numbers) - _NAMED
        return f"{shown} and {more} more" if more > 0 else shown


def ended_words(code: int) -> str:
    """How something has ended, by its code as shells have it."""
    if code > 128:
        try:
            return f"was ended by {signal.Signals(code - 128).name}"
        except ValueError:
            pass
    if code == 127:
        return "could not be started: no such program there (exit code 127)"
    if code == 126:
        return "could not be started (exit code 126)"
    return f"has ended with exit code {code}"


def _by_force(status: TaskStatus) -> bool:
    """Whether somebody has ended it, or a limit."""
    return (
        is_preempted(status)
        or status.state in (TASK_KILLED, TASK_GONE, TASK_GONE_BY_OPERATOR)
        or status.reason in _LIMITS
        or status.exit_status.exit_code in _BY_FORCE
    )


def _words(status: TaskStatus) -> str:
    if status.exit_status.exit_code == VANISHED:
        return "what a rank runs under was killed there"
    words = "taken back for another framework" if is_preempted(status) else status.message
    name = short_name(status.state)
    return f"{name}: {words}" if words else name
