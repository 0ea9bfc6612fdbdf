"""A service with a state, of which there is one: it counts, and goes on where it was.

    mesos-py local --agents 2 -- python -m examples.counter --state counter.json

The counter is a task that keeps its number in a persistent volume.  The first time the
scheduler reserves what the task needs, makes the volume of it and launches the task, in
one call.  From then on the place is its own: kill the task, its agent or this scheduler,
and the next task runs on the same agent and finds the number.

    mesos-py volume list
    mesos-py logs counter
    python -m examples.counter --state counter.json --remove

What the scheduler has to know when it is started again is in a small file: its framework's
id, the agent on which its place is, and how many tasks there were.  It is written before
anything is done that it tells of.  All else is asked of the cluster.
"""

from __future__ import annotations

import json
import os
import signal
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click

import mesos_py
from mesos_py import (
    FrameworkInfo,
    MasterInfo,
    MesosPyError,
    Offer,
    OperationStatus,
    Resources,
    Room,
    SchedulerDriver,
    TaskStatus,
)
from mesos_py.v1 import types_pb2

NEED = Resources.of(cpus=0.1, mem=32)
DISK = Resources.of(disk=16)
VOLUME = "counter"
LABELS = {"for": "counter"}
# Everything is renamed into its place: whoever is killed leaves a whole number.
COMMAND = """
cd data
n=$(cat number 2>/dev/null || echo 0)
echo "$$ begins at $n" | tee -a history
while :; do
    n=$((n + 1))
    echo $n > new && mv new number
    sleep 0.2
done
"""
# The operation did nothing, and will not.
UNDONE = frozenset(
    {
        types_pb2.OPERATION_ERROR,
        types_pb2.OPERATION_DROPPED,
        types_pb2.OPERATION_UNKNOWN,
        types_pb2.OPERATION_GONE_BY_OPERATOR,
    }
)
MAX_FAILURES = 10


@dataclass
class Notes:
    """What must be known again; in a file."""

    file: Path
    framework_id: str
    agent_id: str = ""
    attempt: int = 0
    # Whether the volume is known to have been there.
    made: bool = False

    @classmethod
    def read(cls, file: Path) -> Notes:
        if file.exists():
            return cls(file, **json.loads(file.read_text()))
        return cls(file, f"counter-{uuid.uuid4()}")

    def write(self, **changes: object) -> None:
        for name, value in changes.items():
            setattr(self, name, value)
        fields = {name: value for name, value in asdict(self).items() if name != "file"}
        new = self.file.with_suffix(".new")
        with new.open("w") as out:
            json.dump(fields, out)
            out.flush()
            os.fsync(out.fileno())
        new.replace(self.file)


class Counter(mesos_py.Scheduler):
    """Keeps one task going, where its volume is; with `remove`, takes both away."""

    def __init__(self, notes: Notes, role: str, remove: bool) -> None:
        self.notes = notes
        self.role = role
        self.remove = remove
        # None: it may run, and has not been heard of.
        self.running: bool | None = None
        # Of operations, since we were started.
        self.failures = 0

    @property
    def task_id(self) -> str:
        return f"counter-{self.notes.attempt}"

    # ---- From the cluster ----------------------------------------------------

    def registered(
        self, driver: SchedulerDriver, framework_id: str, master_info: MasterInfo
    ) -> None:
        if not self.notes.agent_id:
            self._look_for_a_place(driver)
        self._ask(driver)

    def reregistered(self, driver: SchedulerDriver, master_info: MasterInfo) -> None:
        self._ask(driver)

    def _ask(self, driver: SchedulerDriver) -> None:
        """What became of what was said before: an answer may have been lost with a link."""
        if not self.notes.agent_id:
            return
        driver.reconcile_tasks([(self.task_id, self.notes.agent_id)])
        if not self.notes.made:
            driver.reconcile_operations([(f"make-{self.notes.attempt}", self.notes.agent_id)])

    def resource_offers(self, driver: SchedulerDriver, offers: Sequence[Offer]) -> None:
        if self.running is None:
            # A master that has just begun to lead cannot answer before the agent is back.
            self._ask(driver)
        for offer in offers:
            operations = [] if self.running is not False else self._use(offer)
            if operations:
                driver.accept_offers(offer, operations)
            else:
                driver.decline_offers(offer, 1.0 if self.running is None else None)

    def status_update(self, driver: SchedulerDriver, status: TaskStatus) -> None:
        if status.task_id.value != self.task_id:
            return  # of an earlier attempt
        self._say(f"{self.task_id}: {mesos_py.short_name(status.state)} {status.message}")
        ended = mesos_py.is_terminal(status.state) or status.state == mesos_py.TASK_UNKNOWN
        self.running = not ended
        driver.set_needs_offers(ended)
        if self.running and self.remove:
            driver.kill_task(self.task_id, grace_s=0)
        if status.state == mesos_py.TASK_GONE_BY_OPERATOR:
            # With all that was there.
            self._look_for_a_place(driver)

    def operation_update(self, driver: SchedulerDriver, status: OperationStatus) -> None:
        name, done = status.operation_id.value, status.state == types_pb2.OPERATION_FINISHED
        if name == f"remove-{self.failures}":
            if done:
                self._removed(driver)
            elif status.state in UNDONE:
                self._failed(driver, status)
        elif name == f"make-{self.notes.attempt}" and not self.notes.made:
            if done:
                self.notes.write(made=True)
            elif status.state in UNDONE:
                self._failed(driver, status)
                self._look_for_a_place(driver)

    def _failed(self, driver: SchedulerDriver, status: OperationStatus) -> None:
        """Mostly an offer that was gone: another one will do."""
        self.failures += 1
        self._say(f"{status.operation_id.value}: not done: {status.message}")
        if self.failures == MAX_FAILURES:
            raise MesosPyError(f"{status.operation_id.value}: not done: {status.message}")
        driver.set_needs_offers(True)

    def _look_for_a_place(self, driver: SchedulerDriver) -> None:
        self.notes.write(agent_id="", made=False)
        self.running = False
        driver.set_needs_offers(True)
        if self.remove:
            self._removed(driver)

    # ---- On an offer ---------------------------------------------------------

    def _use(self, offer: Offer) -> list[Offer.Operation]:
        """What is to be done with it; nothing: it is not the place."""
        room = Room(offer)
        if not self.notes.agent_id:
            return self._make(offer) if room.take(NEED + DISK) else []
        if offer.agent_id.value != self.notes.agent_id:
            return []
        volume = mesos_py.volumes_in(room.left, self.role).get(VOLUME)
        place = mesos_py.reserved_in(room.left, self.role, labels=LABELS)
        if self.remove:
            return self._give_back(volume, place)
        if volume is None:
            return []
        self.notes.write(attempt=self.notes.attempt + 1, made=True)
        return [self._launch(offer, place + volume)]

    def _give_back(self, volume: Resources | None, place: Resources) -> list[Offer.Operation]:
        operations = []
        if volume is not None:
            operations = [mesos_py.destroy_volume(volume)]
            place = place + mesos_py.disk_of_volume(volume)
        if place:
            name = f"remove-{self.failures}"
            operations.append(mesos_py.unreserve(place, operation_id=name))
        return operations

    def _make(self, offer: Offer) -> list[Offer.Operation]:
        self.notes.write(agent_id=offer.agent_id.value, attempt=self.notes.attempt + 1)
        place = mesos_py.reserved_for(NEED, self.role, labels=LABELS)
        disk = mesos_py.reserved_for(DISK, self.role, labels=LABELS)
        made = f"make-{self.notes.attempt}"
        return [
            mesos_py.reserve(NEED + DISK, self.role, labels=LABELS),
            mesos_py.create_volume(disk, VOLUME, "data", operation_id=made),
            self._launch(offer, place + mesos_py.volume_on(disk, VOLUME, "data")),
        ]

    def _launch(self, offer: Offer, resources: Resources) -> Offer.Operation:
        self.running = True
        self._say(f"{self.task_id}: launched on {offer.hostname}")
        task = mesos_py.command_task("counter", self.task_id, offer, COMMAND, resources=resources)
        return mesos_py.launch(task)

    def _removed(self, driver: SchedulerDriver) -> None:
        self.notes.file.unlink(missing_ok=True)
        self._say("removed")
        driver.stop()

    def _say(self, what: str) -> None:
        print(what.strip(), flush=True)


@click.command()
@click.option("--master", envvar="MESOS_PY_MASTER", required=True, metavar="HOST:PORT,...|zk://")
@click.option("--state", type=click.Path(path_type=Path), required=True, help="What it notes.")
@click.option("--role", default="counter", show_default=True)
@click.option("--remove", is_flag=True, help="Take the counter away, with its number.")
def main(master: str, state: Path, role: str, remove: bool) -> None:
    """Count, and go on counting, whatever is killed."""
    try:
        notes = Notes.read(state)
        notes.write()
    except (OSError, ValueError, TypeError) as error:
        raise click.ClickException(f"--state {state}: {error}") from error
    framework = FrameworkInfo(name="counter", roles=[role])
    framework.id.value = notes.framework_id
    # So that a task on an agent that is cut off is not taken for one that is gone.
    framework.capabilities.add(type=FrameworkInfo.Capability.PARTITION_AWARE)
    driver = SchedulerDriver(Counter(notes, role, remove), framework, master)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: driver.stop(failover=True))
    try:
        driver.run()
    except MesosPyError as error:
        raise click.ClickException(str(error)) from error


if __name__ == "__main__":
    main()
