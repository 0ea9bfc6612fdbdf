"""For custom executors: what to implement, the driver that runs it, the asyncio client."""

from mesos_py.executor.aio import ExecutorClient
from mesos_py.executor.api import Executor
from mesos_py.executor.driver import ExecutorDriver
from mesos_py.executor.environment import ExecutorEnvironment

__all__ = ["Executor", "ExecutorClient", "ExecutorDriver", "ExecutorEnvironment"]
