"""A framework in the test's hands: the SDK's driver, and waiting for what it is told."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self, TypeAlias

from mesos_py import Scheduler, SchedulerDriver
from mesos_py.errors import MesosPyError
from mesos_py.resources import EMPTY, Resources
from mesos_py.rpc import LinkTimeouts
from mesos_py.states import TASK_RUNNING, TaskState, is_terminal, short_name
from mesos_py.tasks import Command, command_task
from mesos_py.v1.scheduler_pb2 import Event
from mesos_py.v1.types_pb2 import (
    FrameworkInfo,
    InverseOffer,
    MasterInfo,
    Offer,
    OperationStatus,
    TaskInfo,
    TaskStatus,
)
from tests.kit.faces import seen_by_frameworks
from tests.kit.recorder import PATIENCE_S, Recorder

State: TypeAlias = TaskState.ValueType

# A master that comes back is found soon.
TIMEOUTS: Final = LinkTimeouts(connect_s=5.0, backoff_first_s=0.05, backoff_cap_s=0.3)
Capability: Final = FrameworkInfo.Capability


@dataclass(frozen=True)
class Seen:
    """One callback: its name and what it was given."""

    kind: str
    what: Any


class Framework(Scheduler):
    """Notes each callback, does nothing by itself; use it in a `with` block.

    Offers are held until the test uses them.  The end of the block tears the framework
    down, unless the test has ended it.
    """

    def __init__(
        self,
        master: str,
        name: str = "test",
        *,
        framework_id: str = "",
        roles: Sequence[str] = (),
        priority: int = 0,
        failover_s: float = 3600.0,
        partition_aware: bool = True,
        reports_killing: bool = False,
        driver: dict[str, Any] | None = None,
    ) -> None:
        self.info = FrameworkInfo(name=name, failover_timeout=failover_s, roles=roles)
        self.info.priority = priority
        if framework_id:
            self.info.id.value = framework_id
        if partition_aware:
            self.info.capabilities.add(type=Capability.PARTITION_AWARE)
        if reports_killing:
            self.info.capabilities.add(type=Capability.TASK_KILLING_STATE)
        options = {"timeouts": TIMEOUTS, **(driver or {})}
        self.driver = SchedulerDriver(self, self.info, seen_by_frameworks(master), **options)
        self.seen: Recorder[Seen] = Recorder()
        self._used: set[str] = set()
        self._numbers = itertools.count(1)

    # ---- Life ------------------------------------------------------------

    def __enter__(self) -> Self:
        self.driver.start()
        self.wait_for("registered")
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self, failover: bool = False) -> None:
        """Stop and wait; what the driver failed with is not raised here."""
        self.driver.stop(failover)
        try:
            assert self.driver.join(PATIENCE_S), "the driver does not end"
        except MesosPyError:
            pass

    def failure(self) -> MesosPyError:
        """What the driver ends with."""
        try:
            ended = self.driver.join(PATIENCE_S)
        except MesosPyError as error:
            return error
        raise AssertionError("the driver ended in peace" if ended else "the driver goes on")

    @property
    def id(self) -> str:
        return self.driver.framework_id

    # ---- Waiting ---------------------------------------------------------

    def wait_for(
        self,
        kind: str,
        where: Callable[[Any], object] = lambda _: True,
        count: int = 1,
    ) -> Any:
        """What the `count`-th callback of this kind was given, of those that `where` wants."""

        def look(seen: list[Seen]) -> list[Any] | None:
            found = [each.what for each in seen if each.kind == kind and where(each.what)]
            return found if len(found) >= count else None

        return self.seen.wait(look, f"{count} x {kind}")[count - 1]

    def all(self, kind: str) -> list[Any]:
        return [each.what for each in self.seen.all() if each.kind == kind]

    def live_offers(self) -> list[Offer]:
        """The offers that can be used now."""
        return self._live(self.seen.all())

    def _live(self, seen: list[Seen]) -> list[Offer]:
        live: dict[str, Offer] = {}
        for each in seen:
            if each.kind == "offers":
                live.update({offer.id.value: offer for offer in each.what})
            elif each.kind == "rescinded":
                live.pop(each.what, None)
            elif each.kind in ("registered", "reregistered", "disconnected"):
                live.clear()
        return [offer for offer_id, offer in live.items() if offer_id not in self._used]

    def offer(self, host: str = "", *, has: str | Resources = "") -> Offer:
        """A live offer of this host with at least these resources; nobody gets it twice."""
        wanted = _wanted(has)

        def look(seen: list[Seen]) -> Offer | None:
            for offer in self._live(seen):
                if host in ("", offer.hostname) and what(offer).contains(wanted):
                    return offer
            return None

        found = self.seen.wait(look, f"an offer of {host or 'any host'} with {has!r}")
        self._used.add(found.id.value)
        return found

    def give_back(self) -> None:
        """Decline all live offers, for no time: what is free comes back in one piece."""
        for offer in self.live_offers():
            self._used.add(offer.id.value)
            self.driver.decline_offers(offer, filters=0)

    def gather(self, has: str | Resources) -> Offer:
        """As `offer`; what is offered in pieces is given back until it comes as one."""
        wanted = _wanted(has)
        end = time.monotonic() + PATIENCE_S
        while True:
            count = len(self.all("offers"))
            for offer in self.live_offers():
                if what(offer).contains(wanted):
                    self._used.add(offer.id.value)
                    return offer
            assert time.monotonic() < end, f"no offer with {wanted}"
            self.give_back()
            self.wait_for("offers", count=count + 1)

    def statuses(self, task_id: str) -> list[TaskStatus]:
        return [status for status in self.all("update") if status.task_id.value == task_id]

    def states(self, task_id: str) -> list[str]:
        """The states that were told, in order, one after the other without repetition."""
        names = [short_name(status.state) for status in self.statuses(task_id)]
        return [name for name, _ in itertools.groupby(names)]

    def status(
        self, task_id: str, state: State, where: Callable[[TaskStatus], object] = lambda _: True
    ) -> TaskStatus:
        """The task's first status in this state; fails at once if it ends otherwise."""

        def look(seen: list[Seen]) -> TaskStatus | None:
            for each in seen:
                if each.kind != "update" or each.what.task_id.value != task_id:
                    continue
                status: TaskStatus = each.what
                if status.state == state and where(status):
                    return status
                if is_terminal(status.state) and status.state != state and status.uuid:
                    raise AssertionError(f"not {short_name(state)}: {status}")
            return None

        return self.seen.wait(look, f"{task_id} {short_name(state)}")

    def outcome(self, operation_id: str) -> OperationStatus:
        """What became of an operation."""
        found: OperationStatus = self.wait_for(
            "operation", lambda status: status.operation_id.value == operation_id
        )
        return found

    # ---- Doing -----------------------------------------------------------

    def task(self, command: Command, offer: Offer, **options: Any) -> TaskInfo:
        """A small command task; its id is made unless given as `task_id`."""
        task_id = options.pop("task_id", None) or f"t{next(self._numbers)}"
        name = options.pop("name", task_id)
        return command_task(name, task_id, offer, command, **{"cpus": 0.1, "mem": 16, **options})

    def launch(self, command: Command, *, host: str = "", has: str = "", **options: Any) -> str:
        """Launch a command on some offer; the task's id.  The rest is offered again at once."""
        offer = self.offer(host, has=has)
        task = self.task(command, offer, **options)
        self.driver.launch_tasks(offer, task, filters=0)
        return task.task_id.value

    def run(self, command: Command, **options: Any) -> TaskStatus:
        """Launch a command and wait until it runs: that status."""
        return self.status(self.launch(command, **options), TASK_RUNNING)

    # ---- Callbacks -------------------------------------------------------

    def registered(
        self, driver: SchedulerDriver, framework_id: str, master_info: MasterInfo
    ) -> None:
        self._note("registered", framework_id)

    def reregistered(self, driver: SchedulerDriver, master_info: MasterInfo) -> None:
        self._note("reregistered", master_info)

    def disconnected(self, driver: SchedulerDriver) -> None:
        self._note("disconnected", None)

    def standby(self, driver: SchedulerDriver, ahead: int) -> None:
        self._note("standby", ahead)

    def resource_offers(self, driver: SchedulerDriver, offers: Sequence[Offer]) -> None:
        self._note("offers", list(offers))

    def offer_rescinded(self, driver: SchedulerDriver, offer_id: str) -> None:
        self._note("rescinded", offer_id)

    def inverse_offers(self, driver: SchedulerDriver, offers: Sequence[InverseOffer]) -> None:
        self._note("inverse offers", list(offers))

    def needs_answered(self, driver: SchedulerDriver, answer: Event.Needs) -> None:
        self._note("needs", answer)

    def guarantee_changed(self, driver: SchedulerDriver, share: Resources) -> None:
        self._note("guarantee", share)

    def inverse_offer_rescinded(self, driver: SchedulerDriver, offer_id: str) -> None:
        self._note("inverse rescinded", offer_id)

    def status_update(self, driver: SchedulerDriver, status: TaskStatus) -> None:
        self._note("update", status)

    def operation_update(self, driver: SchedulerDriver, status: OperationStatus) -> None:
        self._note("operation", status)

    def framework_message(
        self, driver: SchedulerDriver, agent_id: str, executor_id: str, data: bytes
    ) -> None:
        self._note("message", (agent_id, executor_id, data))

    def agent_lost(self, driver: SchedulerDriver, agent_id: str) -> None:
        self._note("agent lost", agent_id)

    def executor_lost(
        self, driver: SchedulerDriver, agent_id: str, executor_id: str, status: int
    ) -> None:
        self._note("executor lost", (agent_id, executor_id, status))

    def call_refused(self, driver: SchedulerDriver, refusal: Event.Refused) -> None:
        self._note("refused", refusal)

    def error(self, driver: SchedulerDriver, message: str) -> None:
        self._note("error", message)

    def _note(self, kind: str, what: Any) -> None:
        self.seen.note(Seen(kind, what))


def _wanted(has: str | Resources) -> Resources:
    if isinstance(has, Resources):
        return has
    return Resources.parse(has) if has else EMPTY


def what(offer: Offer) -> Resources:
    """What is on offer."""
    return Resources.from_proto("offer", offer.resources)


def pid_of(status: TaskStatus) -> int:
    """The pid of a command task, from its RUNNING."""
    return status.container_status.executor_pid
