"""From the driver's callbacks to the engine's queue."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from typing import Protocol

from frameworks.mapreduce.tracker.tenure import Tenure
from mesos_py import InverseOffer, MasterInfo, Offer, Scheduler, SchedulerDriver, TaskStatus


class Leadership(Protocol):
    """Which of several trackers is the active one; from any thread."""

    def activated(self, driver: SchedulerDriver) -> None:
        """There is a subscription (again), and this tracker is the active one."""

    def stood_down(self, ahead: int) -> None:
        """Another one is."""

    def while_active(self, work: Callable[[Tenure], object]) -> None:
        """Have it done in the next round, if this tracker is the active one then."""


class TrackerScheduler(Scheduler):
    """Each callback returns at once: what it says is taken in with the next round.

    Updates are acknowledged by the tenure, once what they caused is written down.  Messages of
    the driver are kept by it only while they are shown, so what is kept of them here is copied.
    """

    def __init__(self, leadership: Leadership) -> None:
        self._leadership = leadership

    def registered(
        self, driver: SchedulerDriver, framework_id: str, master_info: MasterInfo
    ) -> None:
        self._leadership.activated(driver)

    def reregistered(self, driver: SchedulerDriver, master_info: MasterInfo) -> None:
        self._leadership.activated(driver)

    def disconnected(self, driver: SchedulerDriver) -> None:
        self._leadership.while_active(lambda tenure: tenure.unlinked())

    def standby(self, driver: SchedulerDriver, ahead: int) -> None:
        self._leadership.stood_down(ahead)

    def resource_offers(self, driver: SchedulerDriver, offers: Sequence[Offer]) -> None:
        listed = list(offers)
        self._leadership.while_active(lambda tenure: tenure.offers(listed))

    def inverse_offers(self, driver: SchedulerDriver, offers: Sequence[InverseOffer]) -> None:
        listed = list(offers)
        self._leadership.while_active(lambda tenure: tenure.asked_back(listed))

    def status_update(self, driver: SchedulerDriver, status: TaskStatus) -> None:
        self._leadership.while_active(lambda tenure: tenure.status(status))

    def framework_message(
        self, driver: SchedulerDriver, agent_id: str, executor_id: str, data: bytes
    ) -> None:
        self._leadership.while_active(lambda tenure: tenure.message(agent_id, executor_id, data))

    def agent_lost(self, driver: SchedulerDriver, agent_id: str) -> None:
        self._leadership.while_active(lambda tenure: tenure.agent_lost(agent_id))

    def executor_lost(
        self, driver: SchedulerDriver, agent_id: str, executor_id: str, status: int
    ) -> None:
        why = ended_how(status)
        self._leadership.while_active(lambda tenure: tenure.worker_lost(agent_id, executor_id, why))


def ended_how(status: int) -> str:
    """A wait status in words; -1: it is not known."""
    if status < 0:
        return "how is not known"
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


__all__ = ["Leadership", "TrackerScheduler", "ended_how"]
