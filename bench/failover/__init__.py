"""The leader is killed: how long until all agents and frameworks are back and offers flow."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any, Final

from bench.failover.peers import Load
from bench.failover.rounds import BarePair, Pair, measure
from bench.processes import processes
from bench.report import Result, Row
from bench.stats import Spread, margin

SIZES: Final = (200, 1_000, 4_000)
AIM_S: Final = 3.0
QUICK: Final = Load(agents=20, frameworks=4, roles=2, rounds=2, rest_s=0.2)


def run(quick: bool) -> Result:
    loads = [QUICK] if quick else [Load(agents=size) for size in SIZES]
    measured = []
    for load in loads:
        with processes() as running:
            rounds = measure(running, Pair(), load)
        with processes() as running:
            floors = measure(running, BarePair(), replace(load, rest_s=0.5))
        measured.append((load, rounds, floors))
    return result(measured)


Rounds = list[dict[str, Any]]


def result(measured: list[tuple[Load, Rounds, Rounds]]) -> Result:
    rows = [row for load, rounds, floors in measured for row in _rows(load, rounds, floors)]
    load, rounds, _ = measured[-1]
    values = [found["flowing_s"] for found in rounds]
    middle = sum(values) / len(values)
    return Result(
        name="failover",
        title=f"failover: leader killed, {load.frameworks} frameworks, tasks of 20 s",
        rows=rows,
        aim=f"under {AIM_S:g} s with {load.agents} agents (published: 4-8 s)",
        reached=f"{middle:.2f} s (± {margin(values):.2f}) with {load.agents} agents",
        met=middle < AIM_S,
        parameters={"loads": [asdict(load) for load, _, _ in measured]},
        notes=[
            f"{each.agents} agents: what no sound run has: {found['complaints'][0]}"
            for each, rounds, _ in measured
            for found in rounds
            if found["complaints"]
        ],
        details={str(x.agents): {"rounds": y, "floors": z} for x, y, z in measured},
    )


def _rows(load: Load, rounds: Rounds, floors: Rounds) -> list[Row]:
    def row(what: str, values: list[float], unit: str = "s", floor: bool = False) -> Row:
        note = f"mean {sum(values) / len(values):.2f} ± {margin(values):.2f}"
        return Row(what, Spread.of(values), unit, floor, note, 2)

    peers = load.agents + load.frameworks
    return [
        row(f"{load.agents} agents: until offers flow", [x["flowing_s"] for x in rounds]),
        row("  a new leader can be reached", [x["contact_s"] for x in rounds]),
        row("  from there until all are back", [_returning(x) for x in rounds]),
        row("  the same, bare grpc.aio server", [_returning(x) for x in floors], floor=True),
        row("  from there to the next offer", [x["flowing_s"] - x["back_s"] for x in rounds]),
        row("CPU per peer, new leader", [_cpu_ms(x, peers) for x in rounds], "ms"),
        row("CPU per peer, bare server", [_cpu_ms(x, peers) for x in floors], "ms", floor=True),
    ]


def _returning(found: dict[str, Any]) -> float:
    return float(found["back_s"] - found["contact_s"])


def _cpu_ms(found: dict[str, Any], peers: int) -> float:
    return float(found["server_cpu_s"] / peers * 1000)
