"""For tests of the scheduler's driver: a scheduler that notes what it is told."""

import contextlib
import queue
import threading
from collections.abc import Iterator
from typing import Any

from mesos_py.rpc import LinkTimeouts
from mesos_py.scheduler import Scheduler, SchedulerDriver
from mesos_py.testing.builders import make_framework

QUICK = LinkTimeouts(backoff_first_s=0.01, backoff_cap_s=0.02, connect_s=5)
PATIENCE_S = 60


# A kind of call that only a later protocol has.
LATER: Any = 4711


class Recorder(Scheduler):
    """Notes each callback as (name, what it got), and does what `on` says for its name."""

    def __init__(self, **on):
        self.notes: queue.Queue[tuple[str, tuple[Any, ...]]] = queue.Queue()
        self.on = on
        self.threads = set()

    def _note(self, name, driver, *args):
        self.threads.add(threading.current_thread().name)
        self.notes.put((name, args))
        if name in self.on:
            self.on[name](driver, *args)

    def next(self, name):
        """What the next callback got; it must be the one called `name`."""
        found, args = self.notes.get(timeout=PATIENCE_S)
        assert found == name
        return args


def _recording(name):
    def callback(self, driver, *args):
        self._note(name, driver, *args)

    return callback


for _name in [
    "registered",
    "needs_answered",
    "guarantee_changed",
    "reregistered",
    "disconnected",
    "standby",
    "resource_offers",
    "offer_rescinded",
    "inverse_offers",
    "inverse_offer_rescinded",
    "status_update",
    "operation_update",
    "framework_message",
    "agent_lost",
    "executor_lost",
    "call_refused",
    "error",
]:
    setattr(Recorder, _name, _recording(_name))


@contextlib.contextmanager
def drivers_on(master) -> Iterator[Any]:
    """Starts drivers on the fake master, registered unless told not to wait; ends them."""
    drivers = []

    def start(scheduler, wait=True, **options):
        options = {"timeouts": QUICK, **options}
        driver = SchedulerDriver(scheduler, make_framework(), master.address, **options)
        drivers.append(driver)
        driver.start()
        if wait:
            scheduler.next("registered")
        return driver

    yield start
    for driver in drivers:
        driver.abort()
        try:
            assert driver.join(PATIENCE_S)
        except Exception:
            assert not driver.connected  # the test has looked at the reason
