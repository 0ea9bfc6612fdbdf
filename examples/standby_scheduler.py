"""A scheduler that survives: several instances, one of them active, their state in ZooKeeper.

    # On each of three machines, all with the same list of shell commands:
    python -m examples.standby_scheduler jobs.txt --state zk1:2181,zk2:2181,zk3:2181/nightly

Each job of the list is run once, whatever becomes of the instances: kill the active one
in the middle, and the next goes on.  How that works is told in docs/schedulers.md; in
short, what is intended is written before it is done, who has been replaced cannot write
any more, and who takes over asks what has become of every task before it launches one.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import click
from kazoo.client import KazooClient, TransactionRequest
from kazoo.exceptions import NodeExistsError

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

# The task does not exist and never will: its job may be launched again, under another id.
NOT_THERE = frozenset(
    {
        mesos_py.TASK_DROPPED,
        mesos_py.TASK_LOST,
        mesos_py.TASK_UNKNOWN,
        mesos_py.TASK_GONE,
        mesos_py.TASK_GONE_BY_OPERATOR,
    }
)
NEED = Resources.of(cpus=0.1, mem=32)
ANSWER_S = 10.0


class Deposed(RuntimeError):
    """Another instance has taken over: nothing of ours is written any more."""


@dataclass
class Job:
    """One command, as it is kept.  `state`: "waiting", "launched" or "done"."""

    number: int
    command: str
    state: str = "waiting"
    # A new task id for each attempt: what comes late of an old one fits no job.
    attempt: int = 0
    agent_id: str = ""
    result: str = ""
    # Of its node in ZooKeeper, as we have read or written it.
    version: int = field(default=0, compare=False)

    @property
    def task_id(self) -> str:
        return f"job-{self.number}-{self.attempt}"


class Store:
    """The jobs in ZooKeeper, below `path`: written by who reigns, and by nobody else.

    /framework   the framework's id, chosen by whichever instance came first
    /reign       raised by each takeover; a write names the version that it knows, and
                 ZooKeeper does not carry it out if there is a newer one
    /jobs/0001   a job
    """

    def __init__(self, client: KazooClient, path: str) -> None:
        self._client = client
        self._framework, self._reign, self._jobs = (
            f"{path}/{name}" for name in ("framework", "reign", "jobs")
        )
        self._client.ensure_path(self._jobs)
        self._client.ensure_path(self._reign)
        self.reign = -1

    def framework_id(self) -> str:
        try:
            self._client.create(self._framework, str(uuid.uuid4()).encode())
        except NodeExistsError:
            pass
        return str(self._client.get(self._framework)[0].decode())

    def begin_reign(self, name: str) -> None:
        """From now on no other instance can write."""
        self.reign = self._client.set(self._reign, name.encode()).version

    def add(self, commands: Sequence[str]) -> None:
        """The jobs of the list that are not there yet."""
        known = {job.number for job in self.jobs()}
        for number, command in enumerate(commands, start=1):
            if number not in known:
                step = self._step()
                step.create(self._node(number), _packed(Job(number, command)))
                self._commit(step)

    def jobs(self) -> list[Job]:
        found = []
        for name in sorted(self._client.get_children(self._jobs)):
            data, stat = self._client.get(f"{self._jobs}/{name}")
            found.append(Job(**json.loads(data), version=stat.version))
        return found

    def write(self, job: Job) -> None:
        step = self._step()
        step.set_data(self._node(job.number), _packed(job), job.version)
        job.version = self._commit(step)[-1].version

    def finished(self) -> bool:
        jobs = self.jobs()
        return bool(jobs) and all(job.state == "done" for job in jobs)

    def _node(self, number: int) -> str:
        return f"{self._jobs}/{number:04}"

    def _step(self) -> TransactionRequest:
        step = self._client.transaction()
        step.check(self._reign, self.reign)
        return step

    def _commit(self, step: TransactionRequest) -> list[Any]:
        # Whatever goes wrong here ends this instance, and the next one reads what is true:
        # an answer that was lost is no reason to guess.
        results: list[Any] = step.commit_async().get(timeout=ANSWER_S)
        if any(isinstance(result, Exception) for result in results):
            raise Deposed(f"reign {self.reign} is over: {results}")
        return results


def _packed(job: Job) -> bytes:
    values = asdict(job)
    del values["version"]
    return json.dumps(values).encode()


class Jobs(mesos_py.Scheduler):
    """Runs the jobs while it is the active instance; else it knows nothing."""

    def __init__(self, store: Store, commands: Sequence[str], name: str) -> None:
        self.store = store
        self.commands = commands
        self.name = name
        self.active = False
        self.jobs: dict[str, Job] = {}
        # Tasks of which we have not heard since we took over.
        self.unheard: set[str] = set()

    # ---- Who is active -------------------------------------------------------

    def registered(
        self, driver: SchedulerDriver, framework_id: str, master_info: MasterInfo
    ) -> None:
        self._take_over(driver)

    def reregistered(self, driver: SchedulerDriver, master_info: MasterInfo) -> None:
        # Another instance may have been active meanwhile: what we remember proves nothing.
        self._take_over(driver)

    def standby(self, driver: SchedulerDriver, ahead: int) -> None:
        self._forget()
        self._say(f"standing by, {ahead} ahead")

    def disconnected(self, driver: SchedulerDriver) -> None:
        self._forget()
        self._say("disconnected")

    def _take_over(self, driver: SchedulerDriver) -> None:
        with self._unless_deposed():
            self.store.begin_reign(self.name)
            self.store.add(self.commands)
            self._begin(driver, self.store.jobs())

    def _begin(self, driver: SchedulerDriver, found: list[Job]) -> None:
        self.active = True
        self.jobs = {job.task_id: job for job in found}
        self.unheard = {job.task_id for job in found if job.state == "launched"}
        states = [job.state for job in found]
        counts = ", ".join(f"{states.count(s)} {s}" for s in ("waiting", "launched", "done"))
        self._say(f"active: {len(found)} jobs: {counts}")
        self._ask(driver)
        self._stop_when_done(driver)

    def _forget(self) -> None:
        self.active = False
        self.jobs = {}
        self.unheard = set()

    @contextmanager
    def _unless_deposed(self) -> Iterator[None]:
        """What was sent to us before another one took over may come to our ears after it.
        The driver will say so in a moment; until then there is nothing for us to do."""
        try:
            yield
        except Deposed as error:
            self._forget()
            self._say(str(error))

    # ---- From the cluster ----------------------------------------------------

    def resource_offers(self, driver: SchedulerDriver, offers: Sequence[Offer]) -> None:
        if not self.active:
            return  # the offers are dead, too
        with self._unless_deposed():
            self._use(driver, offers)

    def status_update(self, driver: SchedulerDriver, status: TaskStatus) -> None:
        # Acknowledged only when it has been written: else it comes once more, to
        # whoever is active then.
        if not self.active:
            return
        with self._unless_deposed():
            self._note(driver, status)
            driver.acknowledge(status)
            self._stop_when_done(driver)

    def _use(self, driver: SchedulerDriver, offers: Sequence[Offer]) -> None:
        if self.unheard:
            # A job that seems to wait may run: launch nothing before that is known.
            self._ask(driver)
            for offer in offers:
                driver.decline_offers(offer, filters=1.0)
            return
        waiting = [job for job in self.jobs.values() if job.state == "waiting"]
        placed, _ = mesos_py.match_offers(offers, waiting, lambda _: NEED)
        for offer, jobs in placed:
            driver.launch_tasks(offer, [self._intend(job, offer) for job in jobs])

    def _note(self, driver: SchedulerDriver, status: TaskStatus) -> None:
        job = self.jobs.get(status.task_id.value)
        if job is None or job.state != "launched":
            return
        name = mesos_py.short_name(status.state)
        self._say(f"job {job.number}: {name}")
        if status.state in NOT_THERE:
            job.state = "waiting"
            self.store.write(job)
        elif mesos_py.is_terminal(status.state):
            job.state, job.result = "done", name
            self.store.write(job)
        if job.task_id in self.unheard:
            self.unheard.remove(job.task_id)
            if not self.unheard:
                driver.set_needs_offers(True)  # those declined meanwhile as well

    def _intend(self, job: Job, offer: Offer) -> mesos_py.TaskInfo:
        """Write that the job is launched, before it is."""
        del self.jobs[job.task_id]
        job.attempt += 1
        job.state, job.agent_id = "launched", offer.agent_id.value
        self.jobs[job.task_id] = job
        self.store.write(job)
        self._say(f"job {job.number}: launch as {job.task_id}")
        return mesos_py.command_task(
            job.command[:60], job.task_id, offer, job.command, resources=NEED
        )

    def _ask(self, driver: SchedulerDriver) -> None:
        asked = [(task_id, self.jobs[task_id].agent_id) for task_id in sorted(self.unheard)]
        if asked:  # an empty list would ask for everything
            self._say(f"asking for {', '.join(task_id for task_id, _ in asked)}")
            driver.reconcile_tasks(asked)

    def _stop_when_done(self, driver: SchedulerDriver) -> None:
        if self.jobs and all(job.state == "done" for job in self.jobs.values()):
            self._say("all done")
            driver.stop()

    def _say(self, what: str) -> None:
        print(f"{self.name}: reign {self.store.reign}: {what}", flush=True)


def run(store: Store, commands: Sequence[str], master: str, name: str) -> None:
    framework = FrameworkInfo(name="survivor", failover_timeout=7 * 86400)
    framework.id.value = store.framework_id()
    # So that a task on an agent that is cut off is not taken for one that is gone.
    framework.capabilities.add(type=FrameworkInfo.Capability.PARTITION_AWARE)
    driver = SchedulerDriver(
        Jobs(store, commands, name),
        framework,
        master,
        standby=True,
        implicit_acknowledgements=False,
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: driver.stop(failover=True))
    driver.start()
    driver.join()


@click.command()
@click.argument("jobs", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--master", envvar="MESOS_PY_MASTER", required=True, metavar="HOST:PORT,...|zk://")
@click.option("--state", required=True, metavar="HOST:PORT,.../PATH", help="In ZooKeeper.")
@click.option("--name", default=f"{socket.gethostname()}-{os.getpid()}", help="Of this instance.")
def main(jobs: Path, master: str, state: str, name: str) -> None:
    """Run the shell commands in the file JOBS, one a line, each of them once."""
    commands = [line.strip() for line in jobs.read_text().splitlines() if line.strip()]
    hosts, _, path = state.partition("/")
    client = KazooClient(hosts=hosts)
    client.start(timeout=ANSWER_S)
    try:
        store = Store(client, f"/{path}")
        try:
            run(store, commands, master, name)
        except MesosPyError as error:
            # When the list is done, the active instance ends the framework, and so us.
            if not store.finished():
                raise click.ClickException(str(error)) from error
    finally:
        client.stop()
        client.close()


if __name__ == "__main__":
    main()
