"""For schedulers: what to implement, the driver that runs it, the asyncio client."""

from mesos_py.scheduler.aio import SchedulerClient
from mesos_py.scheduler.api import Scheduler
from mesos_py.scheduler.calls import SchedulerCalls
from mesos_py.scheduler.driver import SchedulerDriver
from mesos_py.scheduler.session import Disconnected

__all__ = ["Disconnected", "Scheduler", "SchedulerCalls", "SchedulerClient", "SchedulerDriver"]
