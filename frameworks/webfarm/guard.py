"""Has a balancer run again whenever it has ended."""

from __future__ import annotations

import asyncio
from typing import Final

from frameworks.webfarm.core.balancer import Balancer
from frameworks.webfarm.core.report import Report
from mesos_py import logs
from mesos_py.errors import MesosPyError

log = logs.get("webfarm.guard")

# Of one that ends again and again; not when it had lived for so long.
PAUSES_S: Final = (0.0, 0.2, 1.0, 5.0)
LIVED_S: Final = 60.0


async def guard(balancer: Balancer, report: Report) -> None:
    """For ever, of one that runs.  How often it was started again, and for how long nobody was
    served, goes into the report, and why it does not start."""
    loop = asyncio.get_running_loop()
    failures, started_s = 0, loop.time()
    died_s: float | None = None
    while True:
        await balancer.died()
        died_s = loop.time() if died_s is None else died_s
        if loop.time() - started_s > LIVED_S:
            failures = 0
        await asyncio.sleep(PAUSES_S[min(failures, len(PAUSES_S) - 1)])
        failures += 1
        try:
            await balancer.start()
        except MesosPyError as error:
            report.trouble = str(error)
            log.error("balancer does not start", why=str(error))
        else:
            away_s = round(loop.time() - died_s, 3)
            report.balancer_restarts += 1
            report.balancer_away_s += away_s
            died_s = None
            log.warning("balancer ended and was started again", away_s=away_s)
        started_s = loop.time()


__all__ = ["guard"]
