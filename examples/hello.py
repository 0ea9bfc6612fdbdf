"""The smallest useful framework: a few tasks that say hello, and then the end.

mesos-py local --agents 2 -- python -m examples.hello
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import mesos_py
from mesos_py import FrameworkInfo, Offer, Resources, SchedulerDriver, TaskStatus

NEED = Resources.of(cpus=0.1, mem=32)


class Hello(mesos_py.Scheduler):
    """Says hello `count` times, wherever there is room."""

    def __init__(self, count: int) -> None:
        self.waiting = [f"hello-{number}" for number in range(count)]
        self.running: set[str] = set()

    def resource_offers(self, driver: SchedulerDriver, offers: Sequence[Offer]) -> None:
        placed, self.waiting = mesos_py.match_offers(offers, self.waiting, lambda _: NEED)
        for offer, names in placed:
            tasks = [
                mesos_py.command_task(
                    name, name, offer, f"echo hello from {offer.hostname}", resources=NEED
                )
                for name in names
            ]
            self.running.update(names)
            # No tasks for this offer: that declines it.
            driver.launch_tasks(offer, tasks)

    def status_update(self, driver: SchedulerDriver, status: TaskStatus) -> None:
        name, state = status.task_id.value, mesos_py.short_name(status.state)
        print(f"{name}: {state} on {status.agent_id.value} {status.message}".rstrip())
        if mesos_py.is_terminal(status.state):
            self.running.discard(name)
            if not self.waiting and not self.running:
                driver.stop()


if __name__ == "__main__":
    master = os.environ.get("MESOS_PY_MASTER", "127.0.0.1:5060")
    SchedulerDriver(Hello(5), FrameworkInfo(name="hello"), master, connect_timeout_s=10).run()
