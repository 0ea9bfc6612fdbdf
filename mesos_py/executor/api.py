"""What a custom executor implements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mesos_py.v1.types_pb2 import AgentInfo, ExecutorInfo, FrameworkInfo, TaskInfo

if TYPE_CHECKING:
    # Only the name of a type: the driver is built on this module.
    from mesos_py.executor.driver import ExecutorDriver


class Executor:
    """Override what you need; everything does nothing by default.

    All methods are called on one thread, the driver's callback thread, one at a time
    and in the order in which the agent sent things.  While one runs, no other does: a
    `launch_task` that runs its task to the end keeps every `kill_task` waiting.  So
    long work belongs on a thread or in a process of your own, which may call the
    driver (`send_status`) at any time.

    What a method raises is logged with its traceback, ends the driver and is raised by
    `ExecutorDriver.run` and `join`.
    """

    def registered(
        self,
        driver: ExecutorDriver,
        executor_info: ExecutorInfo,
        framework_info: FrameworkInfo,
        agent_info: AgentInfo,
    ) -> None:
        """The agent knows this executor.  Called once, before any other method."""

    def reregistered(self, driver: ExecutorDriver, agent_info: AgentInfo) -> None:
        """The link to the agent is there again, after `disconnected`."""

    def disconnected(self, driver: ExecutorDriver) -> None:
        """The link to the agent is lost.

        For a framework with checkpointing the agent is waited for (MESOS_RECOVERY_TIMEOUT)
        and tasks should go on; otherwise, and if it does not come, `shutdown` follows.
        """

    def launch_task(self, driver: ExecutorDriver, task: TaskInfo) -> None:
        """Start a task and report it: at least one status when it runs and one when it has
        ended.  Not called twice for one launch, whatever happens to the link.
        """

    def launch_group(self, driver: ExecutorDriver, tasks: Sequence[TaskInfo]) -> None:
        """Start tasks that were launched as a group: together, and none without the others.

        What the end of one means for the others is for the executor to decide.  Calls
        `launch_task` for each unless overridden.
        """
        for task in tasks:
            self.launch_task(driver, task)

    def kill_task(self, driver: ExecutorDriver, task_id: str, grace_s: float | None) -> None:
        """End a task, gently at first, and report how it ended (TASK_KILLED).

        `grace_s` is how long it may take before force is used; None: as you see fit.
        May come twice, and for a task that has just ended: then do nothing.
        """

    def framework_message(self, driver: ExecutorDriver, data: bytes) -> None:
        """The scheduler has sent `data`.  Best effort: it may be lost, never altered."""

    def shutdown(self, driver: ExecutorDriver) -> None:
        """End all tasks, report them, and return: the driver stops after this.

        Called when the framework or the agent wants no more of this executor, and when
        the agent has gone for good.  All is killed after the shutdown grace (5 s unless
        ExecutorInfo says otherwise, counted from when the agent asked).
        """

    def error(self, driver: ExecutorDriver, message: str) -> None:
        """The driver cannot go on: the agent refused this executor.

        Called at most once, as the last method; `run` and `join` raise the same.
        """


__all__ = ["Executor"]
