"""Answers in limited time: what is known when it is over, and how far off it may be."""

from __future__ import annotations

import math
import queue
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Final

from frameworks.rdd.statcounter import StatCounter
from mesos_py.errors import InvalidValue

if TYPE_CHECKING:
    from frameworks.rdd.jobs import Jobs
    from frameworks.rdd.nodes import Node


_AGAIN_S: Final = 0.1


class BoundedFloat(float):
    """A number that lies between `low` and `high` with this confidence."""

    confidence: float
    low: float
    high: float

    def __new__(cls, mean: float, confidence: float, low: float, high: float) -> BoundedFloat:
        made = super().__new__(cls, mean)
        made.confidence, made.low, made.high = confidence, low, high
        return made

    def __getnewargs__(self) -> tuple[float, float, float, float]:  # type: ignore[override]
        return float(self), self.confidence, self.low, self.high


def checked(timeout_ms: float, confidence: float) -> None:
    if timeout_ms < 0:
        raise InvalidValue("timeout", timeout_ms, "must not be negative")
    if not 0 <= confidence <= 1:
        raise InvalidValue("confidence", confidence, "must be between 0 and 1")


def within(
    ctx: Jobs,
    node: Node,
    function: Callable[[int, Iterator[Any]], Any],
    timeout_ms: float,
) -> list[Any]:
    """The results of those partitions that were done in time; the job is cancelled then.

    Raises what the job raises within that time.
    """
    arrived: queue.Queue[Any] = queue.Queue()
    group = f"approximate-{uuid.uuid4().hex}"

    def run() -> None:
        try:
            for _, value in ctx.results(node, function):
                arrived.put((value,))
            arrived.put(None)
        except BaseException as error:
            arrived.put(error)

    with ctx.in_group(group, "an approximate answer"):
        job = threading.Thread(target=ctx.inherited(run), name="rdd-approximate", daemon=True)
        job.start()
    found: list[Any] = []
    until = time.monotonic() + timeout_ms / 1000
    try:
        while True:
            try:
                came = arrived.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                return found
            if came is None:
                return found
            if isinstance(came, BaseException):
                raise came
            found.append(came[0])
    finally:
        # More than once: the job may not have begun when it is cancelled first.
        while job.is_alive():
            ctx.runner.cancel(group, "its time is over")
            job.join(_AGAIN_S)


def total(stats: StatCounter, done: int, of: int, confidence: float) -> BoundedFloat:
    """The sum, of `done` of `of` partitions: count and mean are both uncertain."""
    if done == of:
        return BoundedFloat(stats.sum(), 1.0, stats.sum(), stats.sum())
    if not stats.n or not done:
        return BoundedFloat(0.0, 0.0, -math.inf, math.inf)
    share = done / of
    expected = stats.n / share
    count_variance = expected * (1 - share) / share
    mean_variance = stats.sampleVariance() / stats.n if stats.n > 1 else math.inf
    variance = (
        mean_variance * count_variance
        + mean_variance * expected**2
        + count_variance * stats.mean() ** 2
    )
    return _bounded(expected * stats.mean(), variance, confidence)


def mean(stats: StatCounter, done: int, of: int, confidence: float) -> BoundedFloat:
    """The mean, of `done` of `of` partitions."""
    if done == of:
        return BoundedFloat(stats.mean(), 1.0, stats.mean(), stats.mean())
    if not stats.n:
        return BoundedFloat(0.0, 0.0, -math.inf, math.inf)
    variance = stats.sampleVariance() / stats.n if stats.n > 1 else math.inf
    return _bounded(stats.mean(), variance, confidence)


def _bounded(value: float, variance: float, confidence: float) -> BoundedFloat:
    if confidence >= 1 or math.isinf(variance):
        return BoundedFloat(value, confidence, -math.inf, math.inf)
    factor = NormalDist().inv_cdf(0.5 + confidence / 2)
    off = factor * math.sqrt(variance)
    return BoundedFloat(value, confidence, value - off, value + off)
