"""The executor's driver: callbacks on a thread, calls from any thread."""

from __future__ import annotations

from mesos_py.clock import Clock
from mesos_py.drivers import CallbackDriver
from mesos_py.errors import MesosPyError
from mesos_py.executor.aio import ExecutorClient
from mesos_py.executor.api import Executor
from mesos_py.executor.environment import ExecutorEnvironment
from mesos_py.executor.session import Disconnected, Item
from mesos_py.rpc import LINK_TIMEOUTS, LinkTimeouts
from mesos_py.v1.executor_pb2 import Event
from mesos_py.v1.types_pb2 import TaskStatus


class ExecutorDriver(CallbackDriver[Item]):
    """Runs an `Executor` for the agent that has started this process.

    ::

        if __name__ == "__main__":
            ExecutorDriver(MyExecutor()).run()

    It ends after `Executor.shutdown`, after `stop` or `abort`, when a callback raises and
    when the agent refuses it or was never there; in the last three cases `run` and `join`
    raise the reason.
    """

    def __init__(
        self,
        executor: Executor,
        environment: ExecutorEnvironment | None = None,
        *,
        timeouts: LinkTimeouts = LINK_TIMEOUTS,
        clock: Clock | None = None,
    ) -> None:
        """environment: None reads that of the process; InvalidValue if it is incomplete."""
        self._client = ExecutorClient(environment, timeouts=timeouts, clock=clock)
        super().__init__(f"executor {self._client.environment.executor_id}")
        self._executor = executor
        self._registered = False

    @property
    def environment(self) -> ExecutorEnvironment:
        """What the agent has told this executor at its start."""
        return self._client.environment

    # ---- Calls ---------------------------------------------------------------

    def send_status(self, status: TaskStatus) -> None:
        """Report a task's state; from any thread, at any time.

        A copy is completed (uuid, time, source, ids) and kept until the agent has it for
        good; it is sent again after a lost link.  Raises InvalidValue for a task that this
        executor never got and for TASK_STAGING, TooLarge for more than fits into a message,
        Unavailable after the driver has failed.
        """
        self._client.send_status(status)

    def send_framework_message(self, data: bytes) -> None:
        """Send `data` to the scheduler.  Best effort: without a link it is lost (and logged)."""
        self._client.send_framework_message(data)

    def stop(self) -> None:
        """End once all statuses are acknowledged, at the latest after the shutdown grace.

        Returns at once, `join` waits.  From any thread, also in a callback.  No callback
        is made any more.
        """
        self._quiet = True
        self._outside_callback(self._client.stop)

    def abort(self) -> None:
        """End at once; what was not acknowledged is lost."""
        self._quiet = True
        self._client.abort()

    # ---- The threads' work ---------------------------------------------------

    async def _link(self) -> None:
        async with self._client:
            async for batch in self._client.batches():
                await self._take_in(batch)

    def _dispatch(self, batch: list[Item]) -> None:
        try:
            for item in batch:
                if self._quiet:
                    break
                self._tell(item)
        finally:
            self._settle_callback()

    def _tell(self, item: Item) -> None:
        executor = self._executor
        if isinstance(item, Disconnected):
            if item.final:
                self._shut_down()
            else:
                executor.disconnected(self)
        elif item.type == Event.LAUNCH:
            executor.launch_task(self, item.launch.task)
        elif item.type == Event.LAUNCH_GROUP:
            executor.launch_group(self, list(item.launch_group.task_group.tasks))
        elif item.type == Event.KILL:
            grace_s = self._client.kill_grace_s(item.kill)
            executor.kill_task(self, item.kill.task_id.value, grace_s)
        elif item.type == Event.MESSAGE:
            executor.framework_message(self, item.message.data)
        elif item.type == Event.SHUTDOWN:
            self._shut_down()
        elif self._registered:
            executor.reregistered(self, item.subscribed.agent_info)
        else:
            self._registered = True
            subscribed = item.subscribed
            executor.registered(
                self, subscribed.executor_info, subscribed.framework_info, subscribed.agent_info
            )

    def _shut_down(self) -> None:
        self._executor.shutdown(self)
        self.stop()

    def _link_ended(self, error: BaseException | None) -> None:
        if error is not None:
            text = error.message if isinstance(error, MesosPyError) else repr(error)
            self._executor.error(self, text)
        self._client.failure = error

    def _cut(self) -> None:
        # What was reported before still goes out.
        self._client.failure = self._failure
        self._client.stop()

    def _interrupted(self) -> None:
        self.stop()


__all__ = ["ExecutorDriver"]
