"""The leader is killed: how long until all agents and frameworks are back and offers flow."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from bench.failover import elected, peer
from bench.failover.peers import Load
from bench.failover.rounds import BarePair, Pair, Servers, measure
from bench.processes import processes
from bench.report import Result, Row
from bench.stats import Spread, margin

SIZES: Final = (200, 1_000, 4_000)
AIM_S: Final = 3.0
QUICK: Final = Load(agents=20, frameworks=4, roles=2, rounds=1, rest_s=0.2)
BESIDE: Final = Load(agents=peer.AGENTS, frameworks=1, roles=1, idle=True, rest_s=1.0)

Rounds = list[dict[str, Any]]
Measured = tuple[Load, Rounds, Rounds]


def run(quick: bool, program: Path | None = None) -> Result:
    """`program` runs an Apache Mesos to be measured as well: see peer.PeerCluster."""
    loads = [QUICK] if quick else [Load(agents=size) for size in SIZES]
    measured = [(load, *_measured(load)) for load in loads]
    rows = [row for each in measured for row in _rows(*each)]
    details = {str(x.agents): {"rounds": y, "floors": z} for x, y, z in measured}
    if program is not None:
        rows += _beside(program, replace(BESIDE, rounds=loads[0].rounds), details)
    return _result(measured, rows, details)


def _measured(load: Load) -> tuple[Rounds, Rounds]:
    with processes() as running:
        rounds = measure(running, _masters(), load)
    with processes() as running:
        floors = measure(running, BarePair(), replace(load, rest_s=min(load.rest_s, 0.5)))
    return rounds, floors


def _masters() -> Servers:
    return elected.Elected() if elected.available() else Pair()


def _beside(program: Path, load: Load, details: dict[str, Any]) -> list[Row]:
    with processes() as running:
        ours = [x["flowing_s"] for x in measure(running, _masters(), load)]
    with processes() as running:
        theirs = peer.measure_peer(program, running, elected.SESSION_S, load.rounds, load.rest_s)
    details["peer"] = theirs
    return [
        _row(f"{load.agents} idle agents: until the next offer", ours),
        _row("  the same, Apache Mesos", theirs),
    ]


def _result(measured: list[Measured], rows: list[Row], details: dict[str, Any]) -> Result:
    load, rounds, _ = measured[-1]
    values = [found["flowing_s"] for found in rounds]
    middle = sum(values) / len(values)
    how = (
        f"elected through ZooKeeper, sessions of {elected.SESSION_S:g} s"
        if elected.available()
        else "told at once, since there is no ZooKeeper here"
    )
    return Result(
        name="failover",
        title=f"failover: leader killed, {load.frameworks} frameworks; the next is {how}",
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
        details=details,
    )


def _row(what: str, values: list[float], unit: str = "s", floor: bool = False) -> Row:
    note = f"mean {sum(values) / len(values):.2f} ± {margin(values):.2f}"
    return Row(what, Spread.of(values), unit, floor, note, 2)


def _rows(load: Load, rounds: Rounds, floors: Rounds) -> list[Row]:
    peers = load.agents + load.frameworks
    return [
        _row(f"{load.agents} agents: until offers flow", [x["flowing_s"] for x in rounds]),
        _row("  the next leader is known", [x["named_s"] for x in rounds]),
        _row("  from there until all are back", [_returning(x) for x in rounds]),
        _row("  the same, bare grpc.aio server", [_returning(x) for x in floors], floor=True),
        _row("  from there to the next offer", [x["flowing_s"] - x["back_s"] for x in rounds]),
        _row("CPU per peer, new leader", [_cpu_ms(x, peers) for x in rounds], "ms"),
        _row("CPU per peer, bare server", [_cpu_ms(x, peers) for x in floors], "ms", floor=True),
    ]


def _returning(found: dict[str, Any]) -> float:
    return float(found["back_s"] - found["named_s"])


def _cpu_ms(found: dict[str, Any], peers: int) -> float:
    return float(found["server_cpu_s"] / peers * 1000)
