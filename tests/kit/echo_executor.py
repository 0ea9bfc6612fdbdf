"""A custom executor that does what a test tells it, by task data and by message.

Run by an agent: `python echo_executor.py`.  A task's data: "finish", "fail", or "run"
until it is killed.  A message is answered by itself backwards, "exit N" is obeyed.
"""

from __future__ import annotations

import os
from pathlib import Path

from mesos_py import Executor, ExecutorDriver, TaskInfo, task_status
from mesos_py.states import TASK_FAILED, TASK_FINISHED, TASK_KILLED, TASK_RUNNING


class EchoExecutor(Executor):
    def __init__(self) -> None:
        self._running: dict[str, TaskInfo] = {}

    def launch_task(self, driver: ExecutorDriver, task: TaskInfo) -> None:
        with Path("tasks").open("a") as file:
            file.write(f"{task.task_id.value}\n")
        driver.send_status(task_status(task, TASK_RUNNING, data=str(os.getpid()).encode()))
        if task.data == b"finish":
            driver.send_status(task_status(task, TASK_FINISHED, message="as asked"))
        elif task.data == b"fail":
            driver.send_status(task_status(task, TASK_FAILED, message="as asked"))
        else:
            self._running[task.task_id.value] = task

    def kill_task(self, driver: ExecutorDriver, task_id: str, grace_s: float | None) -> None:
        if task_id in self._running:
            task = self._running.pop(task_id)
            driver.send_status(task_status(task, TASK_KILLED, message=f"grace {grace_s}"))

    def framework_message(self, driver: ExecutorDriver, data: bytes) -> None:
        if data.startswith(b"exit "):
            os._exit(int(data.split()[1]))
        driver.send_framework_message(data[::-1])

    def shutdown(self, driver: ExecutorDriver) -> None:
        Path("shutdown").touch()
        for task in self._running.values():
            driver.send_status(task_status(task, TASK_KILLED, message="shut down"))


if __name__ == "__main__":
    ExecutorDriver(EchoExecutor()).run()
