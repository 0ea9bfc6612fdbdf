"""An instance of a scheduler as a process: says what its driver tells, a line each.

python -m tests.kit.standby_instance MASTER FRAMEWORK_ID
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from mesos_py import (
    FrameworkInfo,
    MasterInfo,
    Offer,
    Scheduler,
    SchedulerDriver,
    TaskStatus,
    short_name,
)
from tests.kit.framework import TIMEOUTS


class Speaker(Scheduler):
    def registered(self, driver: SchedulerDriver, framework_id: str, master: MasterInfo) -> None:
        say("registered")
        driver.reconcile_tasks()

    def reregistered(self, driver: SchedulerDriver, master: MasterInfo) -> None:
        say("reregistered")

    def standby(self, driver: SchedulerDriver, ahead: int) -> None:
        say(f"standby {ahead}")

    def disconnected(self, driver: SchedulerDriver) -> None:
        say("disconnected")

    def resource_offers(self, driver: SchedulerDriver, offers: Sequence[Offer]) -> None:
        say("offers")

    def status_update(self, driver: SchedulerDriver, status: TaskStatus) -> None:
        say(f"{status.task_id.value} {short_name(status.state)}")

    def error(self, driver: SchedulerDriver, message: str) -> None:
        say(f"error {message}")


def say(what: str) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


def main(master: str, framework_id: str) -> None:
    framework = FrameworkInfo(name="instances")
    framework.id.value = framework_id
    SchedulerDriver(Speaker(), framework, master, standby=True, timeouts=TIMEOUTS).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
