"""A custom executor and its scheduler in one file.

    mesos-py local --agents 2 -- python -m examples.custom_executor

An executor is a process of the framework's own on an agent; many tasks share it, and
with it what it has loaded.  Here each task is a number to look for primes below, done by
a thread of the executor.  The answer comes with the last status; while it works, the
executor tells of its progress by messages, and in the end the scheduler asks each
executor how many tasks it has done.

The same file is started twice: as the scheduler, and with the argument `executor` by the
agents.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Sequence

import mesos_py
from mesos_py import (
    Executor,
    ExecutorDriver,
    FrameworkInfo,
    MasterInfo,
    Offer,
    Resources,
    Scheduler,
    SchedulerDriver,
    TaskInfo,
    TaskStatus,
)

NUMBERS = [20_000, 40_000, 60_000, 80_000, 100_000, 120_000]
TASK_NEEDS = Resources.of(cpus=0.2, mem=32)
EXECUTOR_NEEDS = Resources.of(cpus=0.1, mem=64)


# ---- On the agents -----------------------------------------------------------


def primes_below(limit: int, stop: threading.Event) -> int | None:
    """How many there are; None if it was stopped."""
    sieve = bytearray([1]) * limit
    sieve[:2] = b"\0\0"
    for number in range(2, int(limit**0.5) + 1):
        if stop.is_set():
            return None
        if sieve[number]:
            sieve[number * number :: number] = bytes(len(range(number * number, limit, number)))
    return sum(sieve)


class PrimeExecutor(Executor):
    """Counts primes, each task on a thread, so that kills and messages come through."""

    def __init__(self) -> None:
        self.stops: dict[str, threading.Event] = {}
        self.threads: list[threading.Thread] = []
        self.done = 0

    def launch_task(self, driver: ExecutorDriver, task: TaskInfo) -> None:
        stop = self.stops[task.task_id.value] = threading.Event()
        thread = threading.Thread(target=self.work, args=(driver, task, stop))
        self.threads.append(thread)
        thread.start()

    def work(self, driver: ExecutorDriver, task: TaskInfo, stop: threading.Event) -> None:
        driver.send_status(mesos_py.task_status(task, mesos_py.TASK_RUNNING))
        limit = json.loads(task.data)
        driver.send_framework_message(f"counting the primes below {limit:,}".encode())
        count = primes_below(limit, stop)
        if count is None:
            end = mesos_py.task_status(task, mesos_py.TASK_KILLED)
        else:
            answer = json.dumps({"below": limit, "primes": count}).encode()
            end = mesos_py.task_status(task, mesos_py.TASK_FINISHED, data=answer)
        self.done += 1
        driver.send_status(end)

    def kill_task(self, driver: ExecutorDriver, task_id: str, grace_s: float | None) -> None:
        if task_id in self.stops:
            self.stops[task_id].set()

    def framework_message(self, driver: ExecutorDriver, data: bytes) -> None:
        if data == b"how many?":
            driver.send_framework_message(f"has done {self.done} tasks".encode())

    def shutdown(self, driver: ExecutorDriver) -> None:
        for stop in self.stops.values():
            stop.set()
        for thread in self.threads:
            thread.join()


# ---- The scheduler -----------------------------------------------------------


class PrimeScheduler(Scheduler):
    """One task per number, one executor per agent."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self.waiting = list(numbers)
        self.running: dict[str, int] = {}
        self.answers: dict[int, int] = {}
        # Agents whose executor has tasks of ours, and those that have yet to say how many.
        self.executors: dict[str, str] = {}
        self.unanswered: set[str] = set()

    def resource_offers(self, driver: SchedulerDriver, offers: Sequence[Offer]) -> None:
        for offer in offers:
            driver.launch_tasks(offer, self.tasks_for(offer))
        driver.set_needs_offers(bool(self.waiting))

    def tasks_for(self, offer: Offer) -> list[TaskInfo]:
        """As many as fit, though no more than an equal share, so that all agents work."""
        room = mesos_py.Room(offer)
        # The executor is charged once, with its first task on the agent.
        if offer.agent_id.value not in self.executors and not room.take(EXECUTOR_NEEDS):
            return []
        tasks: list[TaskInfo] = []
        while self.waiting and len(tasks) < len(NUMBERS) // 2 and room.take(TASK_NEEDS):
            tasks.append(self.task(self.waiting.pop(0), offer))
        return tasks

    def task(self, number: int, offer: Offer) -> TaskInfo:
        task_id = f"primes-{number}-{len(self.running)}"
        self.running[task_id] = number
        self.executors[offer.agent_id.value] = f"primes-on-{offer.agent_id.value}"
        executor = mesos_py.custom_executor(
            self.executors[offer.agent_id.value],
            [sys.executable, __file__, "executor"],
            cpus=None,
            mem=None,
            resources=EXECUTOR_NEEDS,
            env={"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )
        data = json.dumps(number).encode()
        return mesos_py.executor_task(
            task_id, task_id, offer, executor, data=data, resources=TASK_NEEDS
        )

    def status_update(self, driver: SchedulerDriver, status: TaskStatus) -> None:
        number = self.running.get(status.task_id.value)
        if number is None or not mesos_py.is_terminal(status.state):
            return
        del self.running[status.task_id.value]
        if status.state == mesos_py.TASK_FINISHED:
            self.answers[number] = json.loads(status.data)["primes"]
        else:
            print(f"{status.task_id.value}: {mesos_py.short_name(status.state)}: {status.message}")
            self.waiting.append(number)
            driver.set_needs_offers(True)
        if not self.waiting and not self.running:
            self.unanswered = set(self.executors)
            for agent_id, executor_id in self.executors.items():
                driver.send_framework_message(executor_id, agent_id, b"how many?")

    def framework_message(
        self, driver: SchedulerDriver, agent_id: str, executor_id: str, data: bytes
    ) -> None:
        print(f"{executor_id}: {data.decode()}")
        if data.startswith(b"has done"):
            self.unanswered.discard(agent_id)
            if not self.unanswered:
                driver.stop()

    def reregistered(self, driver: SchedulerDriver, master_info: MasterInfo) -> None:
        # A message may have been lost with the link: ask again.
        for agent_id in self.unanswered:
            driver.send_framework_message(self.executors[agent_id], agent_id, b"how many?")

    def executor_lost(
        self, driver: SchedulerDriver, agent_id: str, executor_id: str, status: int
    ) -> None:
        # Its tasks come as status updates; it will not answer any more.
        print(f"{executor_id}: has ended with wait status {status}")
        self.executors.pop(agent_id, None)
        was_asked = bool(self.unanswered)
        self.unanswered.discard(agent_id)
        if was_asked and not self.unanswered:
            driver.stop()


def main() -> None:
    """Be the scheduler or, for the agents, an executor."""
    if sys.argv[1:] == ["executor"]:
        ExecutorDriver(PrimeExecutor()).run()
        return
    scheduler = PrimeScheduler(NUMBERS)
    master = os.environ.get("MESOS_PY_MASTER", "127.0.0.1:5060")
    framework = FrameworkInfo(name="primes")
    SchedulerDriver(scheduler, framework, master, connect_timeout_s=10).run()
    for number, count in sorted(scheduler.answers.items()):
        print(f"{count:,} primes below {number:,}")


if __name__ == "__main__":
    main()
