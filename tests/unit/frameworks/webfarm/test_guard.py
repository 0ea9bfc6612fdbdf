"""A balancer that ends is started again, however often that takes."""

import asyncio

from frameworks.webfarm.core.report import Report
from frameworks.webfarm.guard import guard
from mesos_py.errors import PortInUse
from tests.kit.webfarm_others import ListBalancer


class Mortal(ListBalancer):
    """Ends so often; of its starts the first ones fail.  `done`: it has ended for the last time,
    and was started again."""

    def __init__(self, deaths, failures=0):
        super().__init__()
        self.deaths = deaths
        self.failures = failures
        self.starts = 0
        self.done = asyncio.Event()

    async def start(self):
        self.starts += 1
        if self.starts <= self.failures:
            raise PortInUse("somebody has port 80")
        return False

    async def died(self):
        # One that did not start is dead still.
        if 0 < self.starts <= self.failures:
            return
        if self.deaths:
            self.deaths -= 1
            return
        self.done.set()
        await super().died()


async def guarded(balancer):
    report = Report(1.0)
    task = asyncio.create_task(guard(balancer, report))
    async with asyncio.timeout(30):
        await balancer.done.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return report


async def test_each_end_is_counted():
    report = await guarded(Mortal(deaths=2))
    assert report.balancer_restarts == 2
    assert report.trouble == ""


async def test_the_time_in_which_it_does_not_start_counts_and_why_is_said():
    balancer = Mortal(deaths=1, failures=1)
    report = await guarded(balancer)
    assert balancer.starts == 2
    assert report.balancer_restarts == 1
    assert report.balancer_away_s > 0.1  # the pause before the second try
    assert "somebody has port 80" in report.trouble
