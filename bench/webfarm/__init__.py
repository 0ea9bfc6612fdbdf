"""A web farm whose load is ramped up and down: real haproxy, real Apache, real users.

The experiment that was published for Mesos (sessions per second at the balancer and at each
server, and the number of servers, over time), smaller: as much as one machine serves beside
those who ask.  Every answer that is missing or wrong is counted.  Then the load grows tenfold
at once; then all servers are replaced, again and again.

Whether the target is held is told by what users ask for, which is known without measuring: a
load of more than the target for each server that serves may last for one period, in which the
farm notices it, and for as long as the servers it then launches take to serve.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Final

from bench.processes import BenchFailed, Processes, processes
from bench.report import Result, Row
from bench.stats import Spread
from bench.webfarm.load import Load
from bench.webfarm.pictures import draw
from bench.webfarm.watch import Sample, Watch, farm_argv

TARGET: Final = 40.0
LOOK_S: Final = 0.2
# The farm's round, in which it does what a sample asks for, and ours.
ROUNDS_S: Final = 0.5 + LOOK_S


@dataclass(frozen=True)
class Plan:
    """Sessions per second and seconds.  period_s: the farm's."""

    peak: float
    agents: int
    up_s: float
    hold_s: float
    down_s: float
    step_s: float
    replacements: int
    calm_s: float
    period_s: float


FULL: Final = Plan(
    peak=260,
    agents=8,
    up_s=120,
    hold_s=30,
    down_s=150,
    step_s=40,
    replacements=50,
    calm_s=8,
    period_s=3,
)
QUICK: Final = Plan(
    peak=60,
    agents=3,
    up_s=4,
    hold_s=2,
    down_s=2,
    step_s=6,
    replacements=1,
    calm_s=1,
    period_s=1.5,
)


def run(quick: bool = False) -> Result:
    plan = QUICK if quick else FULL
    with processes() as running:
        return asyncio.run(_measured(running, plan))


async def _measured(running: Processes, plan: Plan) -> Result:
    _, master = running.daemon("master")
    for number in range(plan.agents):
        low = 23000 + 20 * number
        resources = f"cpus:1;mem:512;ports:[{low}-{low + 19}]"
        flags = ["--master", master, "--resources", resources, "--tasks-on-exit=end"]
        running.daemon(f"agent-{number}", *flags)
    watch = Watch(running)
    argv = farm_argv(running, master, "up", *watch.options, "--max", str(plan.agents))
    argv += ["--target-sessions", str(TARGET), "--period", f"{plan.period_s * 1000:.0f}ms"]
    calm, cool = f"{plan.calm_s * 1000:.0f}ms", f"{plan.calm_s * 500:.0f}ms"
    argv += ["--calm", calm, "--cool-down", cool]
    wrapper = running.start("webfarm", argv)
    load = Load(watch.port)
    users = asyncio.create_task(load.run())
    try:
        await watch.until(lambda sample: sample.serving == 1)
        samples = await _ramp(plan, load, watch)
        step = await _step(plan, load, watch)
        replaced_s = await _replace(running, master, plan, load, watch)
    finally:
        load.stop()
        await users
        running.finish("down", farm_argv(running, master, "down"), 90)
        wrapper.wait(30)
    in_use = sum("in use" in path.read_text(errors="replace") for path in watch.logs())
    return _result(plan, samples, step, replaced_s, load, watch, in_use)


async def _ramp(plan: Plan, load: Load, watch: Watch) -> list[Sample]:
    """Up, held, down again; what was seen."""
    begun_s, end_s = time.monotonic(), plan.up_s + plan.hold_s + plan.down_s
    samples = []
    while (now_s := time.monotonic() - begun_s) < end_s:
        down = max(0.0, now_s - plan.up_s - plan.hold_s) / plan.down_s
        load.per_s = max(5.0, plan.peak * (min(1.0, now_s / plan.up_s) - down))
        samples.append(watch.sample(now_s, load.per_s))
        await asyncio.sleep(LOOK_S)
    return samples


async def _step(plan: Plan, load: Load, watch: Watch) -> list[Sample]:
    """Ten times the load at once, when one server has had a tenth of it."""
    load.per_s = min(plan.peak, 10 * TARGET) / 10
    await watch.until(lambda sample: sample.serving == sample.wanted <= 1)
    load.per_s *= 10
    begun_s, samples = time.monotonic(), []
    while (now_s := time.monotonic() - begun_s) < plan.step_s:
        samples.append(watch.sample(now_s, load.per_s))
        await asyncio.sleep(LOOK_S)
    return samples


async def _replace(
    running: Processes, master: str, plan: Plan, load: Load, watch: Watch
) -> list[float]:
    """Seconds for each replacement of the one server that there is."""
    load.per_s = 20.0
    await watch.until(lambda sample: sample.serving == sample.wanted <= 1)
    took = []
    site = running.directory / "site"
    site.mkdir()
    (site / "index.html").write_text("another page")
    for turn in range(plan.replacements):
        argv = farm_argv(running, master, "deploy", f"{site}/")
        begun_s = time.monotonic()
        await asyncio.to_thread(running.finish, f"deploy-{turn}", argv, 90)
        took.append(time.monotonic() - begun_s)
    return took


def _result(
    plan: Plan,
    samples: list[Sample],
    step: list[Sample],
    replaced_s: list[float],
    load: Load,
    watch: Watch,
    in_use: int,
) -> Result:
    if not any(sample.per_server is not None for sample in samples):
        raise BenchFailed("the farm has measured no load")
    most = max(sample.serving for sample in samples)
    ramp = longest(samples, lambda s: s.serving < servers_for(s.offered))
    held = longest(step, lambda s: s.serving < servers_for(s.offered))
    start_s = max(longest(part, lambda s: s.serving < s.wanted) for part in (samples, step))
    within_s = plan.period_s + start_s + ROUNDS_S
    rows = [
        Row("servers at the peak", Spread.of([most]), "servers", digits=0),
        Row(
            "  load divided by target",
            Spread.of([servers_for(plan.peak)]),
            "servers",
            floor=True,
            digits=0,
        ),
        Row("ramp: longest time above the target", Spread.of([ramp]), "s"),
        Row("tenfold load: time above the target", Spread.of([held]), "s"),
        Row("  a period, and the longest start", Spread.of([within_s]), "s", floor=True),
        Row("one replacement", Spread.of(replaced_s), "s"),
        Row("requests", Spread.of([load.asked]), "requests", digits=0),
        Row("requests lost", Spread.of([len(load.lost)]), "requests", digits=0),
        Row("ports in use", Spread.of([in_use]), "instances", digits=0),
    ]
    return Result(
        name="webfarm",
        title="A web farm under a load that grows and shrinks",
        rows=rows,
        aim="no request lost, no port in use, above the target for no longer than a period"
        " and the start of a server",
        reached=f"{len(load.lost)} of {load.asked} requests lost; {len(replaced_s)} replacements,"
        f" {in_use} ports in use; above the target for {max(ramp, held):.1f} s at most, of which"
        f" servers started for {start_s:.1f} s (period: {plan.period_s:g} s)",
        met=not load.lost and not in_use and max(ramp, held) <= within_s,
        parameters={**asdict(plan), "target": TARGET},
        details={
            "ramp": [asdict(sample) for sample in samples],
            "step": [asdict(sample) for sample in step],
            "lost": load.lost[:100],
            "retries": watch.retries,
        },
        notes=["Who asks, balancer, servers and cluster share this machine."],
    )


def longest(samples: list[Sample], is_so: Callable[[Sample], bool]) -> float:
    """Seconds of the longest stretch of samples of which it is so, the last one until the next."""
    most_s, since_s = 0.0, None
    for sample in samples:
        if not is_so(sample):
            since_s = None
            continue
        since_s = sample.at_s if since_s is None else since_s
        most_s = max(most_s, sample.at_s + LOOK_S - since_s)
    return most_s


def servers_for(load: float) -> int:
    """The fewest on which none gets more than the target."""
    return max(1, math.ceil(load / TARGET - 1e-9))


__all__ = ["draw", "longest", "run", "servers_for"]
