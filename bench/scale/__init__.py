"""A full cluster of many agents: how long does a newcomer wait for its place, and what
does that cost the master?"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from bench.processes import BenchFailed, Processes, processes
from bench.report import Result, Row
from bench.scale.beside import measure_peer
from bench.scale.peers import Load
from bench.stats import Spread, margin, percentile

SIZES: Final = (1_000, 5_000, 10_000, 25_000, 50_000)
AIM_S: Final = 1.0
QUICK: Final = Load(
    agents=200,
    frameworks=8,
    roles=4,
    task_s=1.5,
    task_sd_s=0.5,
    together=50,
    probes=2,
    probe_s=0.5,
    fill_within_s=10,
    settle_s=0.5,
)


@dataclass(frozen=True)
class Choices:
    """What to measure; `peer` and `peer_load`: see beside.measure_peer."""

    sizes: Sequence[int] = SIZES
    front: str = "lean"
    peer: Path | None = None
    peer_load: Path | None = None


def run(quick: bool, choices: Choices | None = None) -> Result:
    chosen = choices if choices is not None else Choices()
    loads = [QUICK] if quick else [Load(agents=size) for size in chosen.sizes]
    rows: list[Row] = []
    details: dict[str, Any] = {}
    delays: list[float] = []
    for load in loads:
        found = measure(load, chosen.front)
        delays = [probe["finished"] - load.probe_s for probe in found["steady"]["probes"]]
        rows += _rows(load, found, delays)
        details[str(load.agents)] = found
        if chosen.peer is not None and chosen.peer_load is not None:
            theirs = _beside(chosen.peer, chosen.peer_load, load)
            rows += _rows_beside(theirs)
            details[str(load.agents)]["peer"] = theirs
    load = loads[-1]
    middle = sum(delays) / len(delays)
    return Result(
        name="scale",
        title=f"scale: full clusters, {load.frameworks} frameworks, tasks of {load.task_s:g} s; "
        f"front {chosen.front}",
        rows=rows,
        aim=f"under {AIM_S:g} s with {load.agents} agents",
        reached=f"{middle:.2f} s (± {margin(delays):.2f}) beyond its own length for a task of a "
        f"newcomer, {load.agents} agents",
        met=middle < AIM_S,
        parameters={"loads": [asdict(each) for each in loads], "front": chosen.front},
        details=details,
        notes=[
            f"{size} agents: what no sound run has: {found['complaints'][0]}"
            for size, found in details.items()
            if found["complaints"]
        ],
    )


def measure(load: Load, front: str) -> dict[str, Any]:
    """A master alone, with its registry in SQLite, and everybody else in one process."""
    with processes() as running:
        # What expires on a busy machine would be missing from a closed loop.
        process, address = running.daemon("master", "--front", front, "--offer-timeout", "0")
        return _play(running, load, address, process.pid)


def _beside(program: Path, load_program: Path, load: Load) -> dict[str, Any]:
    """What the peer does under this load; `failed` says why if it did not get through."""
    try:
        with processes() as running:
            found: dict[str, Any] = measure_peer(program, load_program, running, load)
            return found
    except BenchFailed as error:
        return {"failed": str(error)}


def _play(running: Processes, load: Load, address: str, pid: int) -> dict[str, Any]:
    argv = [sys.executable, "-m", "bench.scale.load", "--master", address]
    argv += ["--master-pid", str(pid), "--load", json.dumps(asdict(load))]
    within_s = load.register_within_s + load.fill_within_s + load.settle_s
    within_s += (load.probes + 1) * (load.probe_s + load.probe_within_s)
    found: dict[str, Any] = running.run("load", argv, within_s)
    return found


def _row(what: str, values: Sequence[float], unit: str, digits: int = 2, **more: Any) -> Row:
    return Row(what, Spread.of(values), unit, digits=digits, **more)


def _rows(load: Load, found: dict[str, Any], delays: list[float]) -> list[Row]:
    steady, registration, alone = found["steady"], found["registration"], found["alone"]
    seconds = steady["seconds"]
    mean = sum(delays) / len(delays)
    cycles, cycle_s = found["cycles"]
    messages = steady["to_master"] + steady["from_master"]
    busy = steady["running"] / (load.agents * load.slots)
    spread = f"mean {mean:.3f} ± {margin(delays):.3f}, 95th {percentile(delays, 95):.3f}"
    return [
        _row(f"{load.agents} agents: delay of a newcomer's task", delays, "s", 3, note=spread),
        _row(
            "  the same, nobody else there",
            [alone["finished"] - alone["asked"]],
            "s",
            3,
            floor=True,
        ),
        _row("  launches", [steady["launched"] / seconds], "1/s", 0, note=f"{busy:.0%} busy"),
        _row("  messages", [messages / seconds], "1/s", 0, note="both ways"),
        _row(
            "  master's CPU",
            [100 * steady["cpu_s"] / seconds],
            "%",
            0,
            note=f"load average {found['load_average']:.1f} before",
        ),
        _row("  CPU per task", [1e6 * steady["cpu_s"] / max(1, steady["launched"])], "µs", 0),
        _row("  master's memory", [steady["memory_bytes"] / 2**20], "MB", 0),
        _row(
            "  allocation cycle, mean",
            [1e3 * cycle_s / max(1, cycles)],
            "ms",
            1,
            note=f"{cycles / seconds:.0f} per second, longest since the start "
            f"{1e3 * found['longest_cycle_s']:.0f} ms",
        ),
        _row(
            "  all agents registered",
            [registration["seconds"]],
            "s",
            1,
            note=f"{1e3 * registration['cpu_s'] / load.agents:.2f} ms of CPU each",
        ),
    ]


def _rows_beside(theirs: dict[str, Any]) -> list[Row]:
    if "failed" in theirs:
        return [_row("  Apache Mesos: did not get through", [0.0], "1/s", 0, note=theirs["failed"])]
    delay = theirs["probe_total_minus_1s_ms"]
    if delay is None:
        return [_row("  Apache Mesos: no probe came through", [theirs["launches_per_s"]], "1/s", 0)]
    note = f"{theirs['launches_per_s']} launches/s, CPU {theirs['master_cpu_percent']} %, "
    note += f"{theirs['master_rss_mb']} MB, 95th {delay['p95'] / 1e3:.3f}"
    return [_row("  the same, Apache Mesos", [delay["p50"] / 1e3], "s", 3, note=note)]
