"""How long an allocation cycle takes, for each allocator, without a daemon around it.

The cluster is full (two tasks on each agent, 200 frameworks in 20 roles); then one agent
changes, or a hundred do, or everything is free.  The same is measured on clusters of a
half and a quarter of the size: what does not depend on the size stays as it was.
"""

from __future__ import annotations

import gc
import itertools
import time
import tracemalloc
from collections.abc import Callable
from typing import Any, Final

from bench.report import Result, Row
from bench.stats import Spread, percentile
from master.core.ledger import Holder
from master.core.tenants import TenantLedger
from master.term import ALLOCATORS
from mesos_py import plugins
from mesos_py.allocation import (
    AgentChanged,
    AgentRow,
    Allocator,
    AllocatorOptions,
    ClusterView,
    FrameworkChanged,
    FrameworkRow,
    Freed,
    Grant,
    Need,
)
from mesos_py.constraints import Host
from mesos_py.resources import Resources

SIZES: Final = (12_500, 25_000, 50_000)
FRAMEWORKS: Final = 200
ROLES: Final = 20
TASK: Final = Resources.of(cpus=1, mem=128)
AGENT: Final = Resources.of(cpus=2, mem=256)
CHANGED: Final = 100
REPEATS: Final = 50
MEASURED_AGENTS: Final = 5_000
PENDING: Final = 50_000
NEEDS_EACH: Final = 1_000
# Growth of what is to be in step with what changed, from a quarter of the cluster on.
AIM_GROWTH: Final = 2.0
AIM_PASS_MS: Final = 200.0


class Cluster:
    """An allocator with its account; what is granted is used at once, as two tasks."""

    def __init__(self, name: str) -> None:
        factory = plugins.resolve("mesos_py.allocators", ALLOCATORS, name, "allocator")
        self.allocator: Allocator = factory(AllocatorOptions())
        self.view = TenantLedger({})
        self.now_s = 1000.0
        self._numbers = itertools.count()
        self.holders: dict[str, list[Holder]] = {}

    def agents(self, count: int) -> None:
        for number in range(count):
            agent_id = f"agent-{number}"
            self.view.put_agent(agent_id, AGENT, {})
            self.holders[agent_id] = []
            row = AgentRow(agent_id, Host(f"host-{number}", {}), AGENT)
            self.allocator.tell(AgentChanged(row))

    def framework(self, name: str, role: str, needs: tuple[Need, ...] = ()) -> None:
        self.allocator.tell(FrameworkChanged(FrameworkRow(name, name, (role,), needs=needs)))

    def cycle(self) -> tuple[float, list[Grant]]:
        """The seconds of CPU that it took, and what was granted."""
        self.now_s += 0.01
        view: ClusterView = self.view
        began_s = time.thread_time()
        grants = self.allocator.allocate(view, self.now_s)
        return time.thread_time() - began_s, grants

    def use(self, grants: list[Grant]) -> None:
        for grant in grants:
            offer_id = f"offer-{next(self._numbers)}"
            self.view.offer(
                grant.agent_id, offer_id, grant.framework_id, grant.role, grant.resources
            )
            claims, left = [], grant.resources
            while left.contains(TASK):
                name = f"task-{next(self._numbers)}"
                holder = Holder(grant.framework_id, grant.role, "task", name)
                claims.append((holder, TASK))
                left = left - TASK
            self.view.claim(grant.agent_id, claims, [offer_id])
            self.holders[grant.agent_id] += [holder for holder, _ in claims]

    def fill(self) -> tuple[list[float], int]:
        """Cycles until nothing is left; how long each took, and how much was granted."""
        seconds: list[float] = []
        count = 0
        while True:
            took_s, grants = self.cycle()
            if not grants:
                return seconds, count
            seconds.append(took_s)
            count += len(grants)
            self.use(grants)

    def end_task(self, agent_id: str) -> None:
        self.view.release(agent_id, self.holders[agent_id].pop(0))
        self.allocator.tell(Freed(agent_id))


def run(quick: bool) -> Result:
    sizes = tuple(size // 100 for size in SIZES) if quick else SIZES
    repeats = 5 if quick else REPEATS
    rows: list[Row] = []
    details: dict[str, Any] = {}
    growths, longest_ms = [], 0.0
    for name in ALLOCATORS:
        found = {size: measure(name, size, repeats) for size in sizes}
        rows += _rows(name, found)
        memory = measure_memory(name, 50 if quick else MEASURED_AGENTS)
        what = f"{name}: memory per agent, tasks included"
        rows.append(Row(what, Spread.of([memory]), "bytes", digits=0))
        details[name] = {str(size): each for size, each in found.items()}
        first, last = found[sizes[0]], found[sizes[-1]]
        growths += [_middle(last, key) / _middle(first, key) for key in ("one", "hundred")]
        pending = measure_pending(name, PENDING // 100 if quick else PENDING, repeats)
        rows += _rows_of_pending(name, pending)
        details[name]["pending"] = pending
        longest_ms = max(longest_ms, 1e3 * max(pending["passes"]))
    worst = max(growths)
    return Result(
        name="allocation",
        title=f"allocation: one cycle for {FRAMEWORKS} frameworks in {ROLES} roles",
        rows=rows,
        aim=f"what one change costs grows at most {AIM_GROWTH:g} times when the cluster does 4 "
        f"times; a pass over {PENDING} waiting tasks within {AIM_PASS_MS:g} ms",
        reached=f"{worst:.2f} times at worst; {longest_ms:.0f} ms at worst",
        met=worst <= AIM_GROWTH and longest_ms <= AIM_PASS_MS,
        parameters={"sizes": sizes, "frameworks": FRAMEWORKS, "roles": ROLES},
        details=details,
    )


def measure(name: str, agents: int, repeats: int) -> dict[str, Any]:
    cluster = _competing(name)
    cluster.agents(agents)
    filling, grants = cluster.fill()

    def changed(count: int) -> float:
        for place in range(count):
            cluster.end_task(f"agent-{(place * 7919) % agents}")
        took_s, found = cluster.cycle()
        cluster.use(found)
        # Not all may have been for this cycle.
        cluster.fill()
        return took_s

    return {
        "none": [cluster.cycle()[0] for _ in range(repeats)],
        "one": _repeated(repeats, lambda: changed(1)),
        "hundred": _repeated(repeats, lambda: changed(min(CHANGED, agents))),
        "filling": filling,
        "per_grant": sum(filling) / grants,
    }


def _competing(name: str) -> Cluster:
    cluster = Cluster(name)
    for number in range(FRAMEWORKS):
        cluster.framework(f"framework-{number}", f"role-{number % ROLES}")
    return cluster


def measure_memory(name: str, agents: int) -> float:
    """Bytes of allocator and account for each agent with its two tasks."""
    cluster = _competing(name)

    def grow() -> None:
        cluster.agents(agents)
        cluster.fill()

    return _grown(grow) / agents


def _grown(step: Callable[[], object]) -> int:
    gc.collect()
    tracemalloc.start()
    try:
        step()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def measure_pending(name: str, tasks: int, repeats: int) -> dict[str, Any]:
    """Frameworks that need room for so many tasks in all, on one agent of two cpus."""
    cluster = Cluster(name)
    cluster.agents(1)
    each = min(NEEDS_EACH, tasks)

    def state() -> None:
        for number in range(tasks // each):
            needs = tuple(Need(f"role-{number}", TASK, name=f"task-{n}") for n in range(each))
            cluster.framework(f"framework-{number}", f"role-{number}", needs)

    memory = _grown(state) / tasks
    passes, _ = cluster.fill()

    def ended() -> float:
        cluster.end_task("agent-0")
        took_s, found = cluster.cycle()
        cluster.use(found)
        return took_s

    return {"passes": passes + _repeated(repeats, ended), "memory": memory}


def _repeated(times: int, step: Callable[[], float]) -> list[float]:
    step()
    return [step() for _ in range(times)]


def _middle(found: dict[str, Any], key: str) -> float:
    return percentile(found[key], 50)


def _rows(name: str, found: dict[int, dict[str, Any]]) -> list[Row]:
    rows = []
    for size, each in found.items():
        for key, what in (
            ("one", f"{name}, {size} agents: one has changed"),
            ("hundred", f"  {CHANGED} have changed"),
            ("none", "  nothing has changed"),
        ):
            ms = [1e3 * value for value in each[key]]
            rows.append(Row(what, Spread.of(ms), "ms", key == "none", digits=3))
        ms = [1e3 * value for value in each["filling"]]
        note = (
            f"{len(ms)} cycles, {sum(ms):.0f} ms in all, {1e6 * each['per_grant']:.1f} µs a grant"
        )
        rows.append(Row("  all is free", Spread.of(ms), "ms", note=note, digits=1))
    return rows


def _rows_of_pending(name: str, found: dict[str, Any]) -> list[Row]:
    ms = [1e3 * value for value in found["passes"]]
    return [
        Row(f"{name}: a pass beside {PENDING} waiting tasks", Spread.of(ms), "ms", digits=1),
        Row("  memory per waiting task", Spread.of([found["memory"]]), "bytes", digits=0),
    ]
