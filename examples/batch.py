"""A batch runner: a file of shell commands, one a line, run on the cluster.

    mesos-py local --agents 3 -- python -m examples.batch commands.txt --cpus 0.5 --retries 2

Each command gets the cpus and memory given, a time limit, and a new attempt when it
fails or its agent is lost.  In the end the commands are listed with how they ended; the
exit code is 0 if all have succeeded.  Empty lines and lines that begin with # are
passed over.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

import mesos_py
from mesos_py import (
    FrameworkInfo,
    MasterInfo,
    MesosPyError,
    Offer,
    Resources,
    SchedulerDriver,
    TaskStatus,
)

# How the cluster, not the command, can end an attempt: these do not use up a retry.
NOT_ITS_FAULT = frozenset(
    {
        mesos_py.TASK_LOST,
        mesos_py.TASK_DROPPED,
        mesos_py.TASK_GONE,
        mesos_py.TASK_GONE_BY_OPERATOR,
    }
)


@dataclass
class Job:
    """One command and how it has fared."""

    number: int
    command: str
    attempts: int = 0
    failures: int = 0
    task_id: str = ""
    agent_id: str = ""
    ended: str = ""
    message: str = ""
    started_s: float | None = None
    seconds: float = 0.0
    timed_out: bool = False


class Batch(mesos_py.Scheduler):
    """Runs jobs on whatever is offered, several at a time, until all have ended."""

    def __init__(
        self, jobs: Sequence[Job], need: Resources, retries: int, limit_s: float | None
    ) -> None:
        self.jobs = jobs
        self.need = need
        self.retries = retries
        self.limit_s = limit_s
        self.waiting = deque(jobs)
        self.running: dict[str, Job] = {}

    # ---- From the cluster ----------------------------------------------------

    def registered(
        self, driver: SchedulerDriver, framework_id: str, master_info: MasterInfo
    ) -> None:
        self._state_needs(driver)

    def reregistered(self, driver: SchedulerDriver, master_info: MasterInfo) -> None:
        # What happened while the link was down comes as status updates.
        driver.reconcile_tasks((job.task_id, job.agent_id) for job in self.running.values())

    def resource_offers(self, driver: SchedulerDriver, offers: Sequence[Offer]) -> None:
        placed, left = mesos_py.match_offers(offers, self.waiting, lambda _: self.need)
        self.waiting = deque(left)
        for offer, jobs in placed:
            driver.launch_tasks(offer, [self._task(job, offer) for job in jobs])
        self._state_needs(driver)

    def status_update(self, driver: SchedulerDriver, status: TaskStatus) -> None:
        job = self.running.get(status.task_id.value)
        if job is None:
            return  # an earlier attempt, or one that was reported already
        if status.state == mesos_py.TASK_RUNNING and job.started_s is None:
            job.started_s = time.monotonic()
            self._watch_limit(driver, job)
        if mesos_py.is_terminal(status.state):
            self._ended(driver, job, status)

    # ---- Jobs ----------------------------------------------------------------

    def _task(self, job: Job, offer: Offer) -> mesos_py.TaskInfo:
        job.attempts += 1
        # A new id for each attempt: what is late of an old one cannot be mistaken.
        job.task_id = f"job-{job.number}-{job.attempts}"
        job.agent_id = offer.agent_id.value
        job.started_s = None
        job.timed_out = False
        self.running[job.task_id] = job
        return mesos_py.command_task(
            job.command[:60],
            job.task_id,
            offer,
            job.command,
            resources=self.need,
            env={"BATCH_JOB": str(job.number), "BATCH_ATTEMPT": str(job.attempts)},
        )

    def _watch_limit(self, driver: SchedulerDriver, job: Job) -> None:
        if self.limit_s is None:
            return

        def too_late(task_id: str) -> None:
            # On a thread of its own: calls are for any thread, the job's fields are not.
            driver.kill_task(task_id, grace_s=1)

        timer = threading.Timer(self.limit_s, too_late, [job.task_id])
        timer.daemon = True
        timer.start()

    def _ended(self, driver: SchedulerDriver, job: Job, status: TaskStatus) -> None:
        del self.running[job.task_id]
        if job.started_s is not None:
            job.seconds = time.monotonic() - job.started_s
        job.timed_out = (
            self.limit_s is not None
            and status.state == mesos_py.TASK_KILLED
            and job.seconds >= self.limit_s
        )
        job.ended = "TIMED OUT" if job.timed_out else mesos_py.short_name(status.state)
        job.message = status.message
        if status.state != mesos_py.TASK_FINISHED and self._may_try_again(job, status):
            self.waiting.append(job)
            # Offers were declined, or not wanted at all, while nothing was waiting.
            driver.set_needs_offers(True)
        self._state_needs(driver)
        if not self.waiting and not self.running:
            driver.stop()

    def _may_try_again(self, job: Job, status: TaskStatus) -> bool:
        if status.state in NOT_ITS_FAULT or mesos_py.is_preempted(status):
            return True
        if status.state == mesos_py.TASK_ERROR:
            return False  # the cluster will not have it, however often it is asked
        job.failures += 1
        return job.failures <= self.retries

    def _state_needs(self, driver: SchedulerDriver) -> None:
        """What waits, so that `mesos-py explain` can say why nothing fits; and whether
        offers are wanted at all."""
        driver.state_waiting([("batch job", self.need, len(self.waiting))] if self.waiting else [])
        if not self.waiting:
            driver.set_needs_offers(False)


def read_jobs(path: Path) -> list[Job]:
    lines = [line.strip() for line in path.read_text().splitlines()]
    commands = [line for line in lines if line and not line.startswith("#")]
    return [Job(number, command) for number, command in enumerate(commands, start=1)]


def summary(jobs: Sequence[Job]) -> Table:
    table = Table("job", "command", "ended", "attempts", "seconds", "agent", "message")
    for job in jobs:
        table.add_row(
            str(job.number),
            job.command if len(job.command) <= 40 else f"{job.command[:39]}…",
            job.ended or "not run",
            str(job.attempts),
            f"{job.seconds:.1f}",
            job.agent_id,
            job.message,
        )
    return table


@click.command()
@click.argument("commands", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--master", envvar="MESOS_PY_MASTER", required=True, metavar="HOST:PORT")
@click.option("--cpus", type=float, default=0.1, show_default=True, help="For each command.")
@click.option("--mem", type=float, default=32, show_default=True, help="MB for each command.")
@click.option("--retries", type=click.IntRange(0), default=1, show_default=True)
@click.option("--limit", type=click.FloatRange(0), help="Seconds for each attempt.")
def main(
    commands: Path, master: str, cpus: float, mem: float, retries: int, limit: float | None
) -> None:
    """Run the shell commands in the file COMMANDS, one a line, on a cluster."""
    jobs = read_jobs(commands)
    if not jobs:
        raise click.ClickException(f"{commands} has no commands")
    try:
        batch = Batch(jobs, Resources.of(cpus=cpus, mem=mem), retries, limit)
        SchedulerDriver(batch, FrameworkInfo(name="batch"), master, connect_timeout_s=10).run()
    except MesosPyError as error:
        raise click.ClickException(str(error)) from error
    finally:
        Console().print(summary(jobs))
    failed = sum(job.ended != "FINISHED" for job in jobs)
    print(f"{len(jobs) - failed} of {len(jobs)} commands succeeded")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
