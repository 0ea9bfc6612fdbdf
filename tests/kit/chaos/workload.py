"""A framework that keeps a cluster busy, and writes down all it needs to prove a fault.

`python -m tests.kit.chaos.workload plan.json` runs its scheduler.  It may be killed at
any moment: the next one is the same framework and goes on from the ledger.

Kinds of entries in the ledger: `registered` (framework, epoch of the scheduler's life),
`disconnected`, `offers` (how many came), `launch` (work, task, agent, its host: about to
be accepted), `update` (task, state, uuid, reason, message), `refused`, `enough`, `done`
(nothing is left to do).

Each run of a task makes its marks in one file: "task run start|end seconds pid".
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from mesos_py import logs
from mesos_py.enums import name_of
from mesos_py.files import write_atomically
from mesos_py.matching import Room
from mesos_py.resources import Resources
from mesos_py.rpc import LinkTimeouts
from mesos_py.scheduler.aio import SchedulerClient
from mesos_py.scheduler.session import Disconnected, Item
from mesos_py.tasks import command_task
from mesos_py.v1.scheduler_pb2 import Event
from mesos_py.v1.types_pb2 import FrameworkInfo, Offer, TaskInfo, TaskStatus
from tests.kit.chaos import book
from tests.kit.chaos.ledger import Entry, LedgerFile, boottime_s, read
from tests.kit.chaos.marks import long_command, short_command

TIMEOUTS: Final = LinkTimeouts(connect_s=3.0, backoff_first_s=0.05, backoff_cap_s=1.0)
# From where these modules are found.
ROOT: Final = Path(__file__).parents[3]
FAILOVER_S: Final = 600.0
# How often to look at files and for tasks of which nothing was heard.
_LOOK_S: Final = 0.25
# What was not heard of for so long is asked for.
_ASK_AFTER_S: Final = 5.0
_MEM_MB: Final = 8
# What is left of an offer, or not used, comes again after so many seconds.
_REFUSE_S: Final = 0.2


@dataclass(frozen=True)
class Plan:
    """What a workload is.  All its files are in `directory`, also those of one's orders:
    `release` lets long tasks end, `enough` stops new work."""

    master: str
    directory: str
    short: int = 100
    long: int = 2
    # How long a short task takes, and how many cpus it asks for.
    seconds: float = 1.0
    cpus: float = 0.5
    port_file: str = ""

    def write(self) -> Path:
        path = self.path("plan.json")
        path.write_text(json.dumps(asdict(self)))
        return path

    def path(self, name: str) -> Path:
        return Path(self.directory) / name

    @property
    def ledger(self) -> Path:
        return self.path("ledger")

    @property
    def marks(self) -> Path:
        return self.path("marks")

    @property
    def release(self) -> Path:
        return self.path("release")

    @property
    def enough(self) -> Path:
        return self.path("enough")


class Workload:
    """The scheduler."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._file = LedgerFile(plan.ledger)
        self._book = book.Book(book.works(plan.short, plan.long))
        self._book.enter(read(plan.ledger))
        info = FrameworkInfo(name="chaos", failover_timeout=FAILOVER_S, checkpoint=True)
        info.capabilities.add(type=FrameworkInfo.Capability.PARTITION_AWARE)
        # Given by us and written down first, so that it is never lost, and no second
        # framework can come of a first registration that was not heard.
        info.id.value = self._book.framework_id or f"chaos-{uuid.uuid4()}"
        if not self._book.framework_id:
            self._note({"kind": "registered", "framework": info.id.value})
        self._client = SchedulerClient(
            info, plan.master, implicit_acknowledgements=False, timeouts=TIMEOUTS
        )
        self._needs = True
        self._said_done = False
        self._asked_s = 0.0

    async def run(self) -> None:
        """Until SIGTERM, which ends the framework and all its tasks."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._client.stop)
        async with self._client:
            looking = asyncio.create_task(self._look())
            try:
                async for batch in self._client.batches():
                    self._handle(batch)
            finally:
                looking.cancel()
        self._file.close()

    def _note(self, *entries: Entry) -> None:
        """In the ledger and the book when this returns."""
        self._file.write([self._enter(entry) for entry in entries])

    def _enter(self, entry: Entry) -> Entry:
        stamped = {"at": round(boottime_s(), 3), **entry}
        self._book.enter([stamped])
        return stamped

    # ---- What is told ------------------------------------------------------------

    def _handle(self, batch: Iterable[Item]) -> None:
        entries: list[Entry] = []
        statuses: list[TaskStatus] = []
        offers: dict[str, Offer] = {}
        for item in batch:
            if isinstance(item, Disconnected):
                entries.append({"kind": "disconnected", "reason": item.reason})
                offers.clear()
            elif item.type == Event.UPDATE:
                statuses.append(item.update.status)
                entries.append(_update(item.update.status))
            elif item.type == Event.OFFERS:
                offers.update({offer.id.value: offer for offer in item.offers.offers})
            elif item.type == Event.RESCIND:
                offers.pop(item.rescind.offer_id.value, None)
            elif item.type == Event.REFUSED:
                entries.append({"kind": "refused", "message": item.refused.message})
            elif item.type == Event.SUBSCRIBED:
                entries.append(self._subscribed(item.subscribed))
        if offers:
            entries.append({"kind": "offers", "count": len(offers)})
        self._note(*entries)
        self._client.acknowledge(statuses)
        for offer in offers.values():
            self._use(offer)
        self._settle()

    def _subscribed(self, subscribed: Event.Subscribed) -> Entry:
        """Registered, perhaps anew: what runs is asked for before anything is launched."""
        master = subscribed.master_info
        if self._plan.port_file:
            # Says that the scheduler is ready; it has no port.
            write_atomically(Path(self._plan.port_file), "0\n")
        self._ask(boottime_s())
        return {
            "kind": "registered",
            "framework": subscribed.framework_id.value,
            "master": master.id,
            "pid": os.getpid(),
        }

    # ---- What is done --------------------------------------------------------------

    def _use(self, offer: Offer) -> None:
        """As many attempts as fit, written down before they are sent."""
        room = Room(offer)
        need = Resources.of(None, cpus=self._plan.cpus, mem=_MEM_MB)
        tasks: list[TaskInfo] = []
        entries: list[Entry] = []
        while self._book.wants_offers and room.take(need):
            work, task_id = self._book.next_work()
            tasks.append(self._task(work, task_id, offer))
            launch = {"kind": "launch", "work": work, "task": task_id, "host": offer.hostname}
            entries.append(self._enter({**launch, "agent": offer.agent_id.value}))
        self._file.write(entries)
        self._client.launch_tasks(offer, tasks, filters=_REFUSE_S)

    def _task(self, work: str, task_id: str, offer: Offer) -> TaskInfo:
        plan = self._plan
        if book.is_long(work):
            command = long_command(task_id, plan.marks, plan.release)
        else:
            command = short_command(task_id, plan.marks, plan.seconds)
        return command_task(work, task_id, offer, command, cpus=plan.cpus, mem=_MEM_MB)

    def _settle(self) -> None:
        """Say whether there is anything left to do."""
        if self._book.wants_offers != self._needs:
            self._needs = self._book.wants_offers
            self._client.set_needs_offers(self._needs)
        if self._book.finished and not self._said_done:
            self._said_done = True
            self._note({"kind": "done"})

    async def _look(self) -> None:
        enough = False
        while True:
            await asyncio.sleep(_LOOK_S)
            if not enough and self._plan.enough.exists():
                enough = True
                self._note({"kind": "enough"})
                self._settle()
            now = boottime_s()
            if self._client.connected and now - self._asked_s > _ASK_AFTER_S:
                self._ask(now - _ASK_AFTER_S)

    def _ask(self, before_s: float) -> None:
        """Reconcile the attempts of which nothing was heard since then."""
        self._asked_s = boottime_s()
        if unheard := self._book.unheard(before_s):
            self._client.reconcile_tasks(unheard)


def _update(status: TaskStatus) -> Entry:
    entry: dict[str, Any] = {
        "kind": "update",
        "task": status.task_id.value,
        "state": book.state_name(status.state),
        "source": name_of(TaskStatus.Source, status.source).removeprefix("SOURCE_"),
        "agent": status.agent_id.value,
    }
    if status.uuid:
        entry["uuid"] = status.uuid.hex()
    if status.reason:
        entry["reason"] = name_of(TaskStatus.Reason, status.reason).removeprefix("REASON_")
    if status.message:
        entry["message"] = status.message
    return entry


def main(argv: Sequence[str]) -> None:
    """The scheduler of the plan in the file that is named."""
    logs.setup("info")
    plan = Plan(**json.loads(Path(argv[0]).read_text()))
    asyncio.run(Workload(plan).run())


if __name__ == "__main__":
    main(sys.argv[1:])
