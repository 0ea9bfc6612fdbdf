"""A framework that needs something beside one that has everything: what taking back
gains, and what it costs."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import Final

from bench.processes import processes
from bench.report import Result, Row
from bench.revocation import pictures
from bench.revocation.real import KINDS, LAUNCH_S, Kind, play, start
from bench.revocation.scenario import (
    ARRIVES_S,
    EXPECTED,
    REACTIVE_S,
    READINGS,
    SLOTS,
    Reading,
    Story,
)
from bench.stats import Spread

SCALE: Final = 20.0
QUICK_SCALE: Final = 100.0
WITHIN: Final = 1.1

# By scenario and kind.
Stories = dict[tuple[str, str], Story]


def run(quick: bool) -> Result:
    scale = QUICK_SCALE if quick else SCALE
    found = {reading: _measure(reading, scale) for reading in READINGS[2 if quick else 0 :]}
    rows = [row for reading, stories in found.items() for row in _rows(reading, stories)]
    misses = [miss for reading, stories in found.items() for miss in _misses(reading, stories)]
    return Result(
        name="revocation",
        title=f"revocation: the published scenarios, {scale:g} times as fast; times as published",
        rows=rows,
        aim="latency within 10 % of alone, kills and loss within one task, none after the first",
        reached="all of it" if not misses else "; ".join(misses),
        met=not misses,
        parameters={"scale": scale, "slots": SLOTS, "less_per_task_s": LAUNCH_S},
        details={
            reading.name: {
                f"{scenario}, {kind}": [asdict(one) for one in story.ran]
                for (scenario, kind), story in stories.items()
            }
            for reading, stories in found.items()
        },
    )


def draw(result: Result, directory: Path) -> None:
    """Goodput and latency over time, beside the bars that every bench has."""
    pictures.draw(result, directory)


def _measure(reading: Reading, scale: float) -> Stories:
    """All scenarios and kinds at once: each has a cluster of its own, which is idle nearly
    all of the time."""
    cases = [(scenario, kind) for scenario in ARRIVES_S for kind in KINDS]
    with processes() as running:
        addresses = [
            start(running, f"{number}", kind, scale) for number, (_, kind) in enumerate(cases)
        ]
        stories = asyncio.run(_play_all(cases, addresses, reading, scale))
    return {
        (scenario, kind.name): one for (scenario, kind), one in zip(cases, stories, strict=True)
    }


async def _play_all(
    cases: list[tuple[str, Kind]], addresses: list[str], reading: Reading, scale: float
) -> list[Story]:
    plays = [
        play(address, scenario, reading, kind, scale)
        for address, (scenario, kind) in zip(addresses, cases, strict=True)
    ]
    return await asyncio.gather(*plays)


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _rows(reading: Reading, stories: Stories) -> list[Row]:
    rows = []
    for scenario in ARRIVES_S:
        expected = EXPECTED[scenario, reading]
        for kind in KINDS:
            story = stories[scenario, kind.name]
            values = story.latencies()
            spread = Spread(mean(values), min(values), max(values), len(values))
            what = f"{scenario}, {reading.name}: {kind.name}"
            note = "mean"
            if not kind.revocation:
                note += ", expected {1:g} ({0:g}-{2:g})".format(*expected.without)
            elif kind.greedy:
                note += f", {len(story.killed())} killed (expected {expected.kills})"
                note += f", {story.lost_s():.0f} slot-seconds lost ({expected.lost_s:g})"
            rows.append(Row(what, spread, "s", floor=not kind.greedy, note=note))
    return rows


def _misses(reading: Reading, stories: Stories) -> list[str]:
    """What is not as it should be."""
    found = []
    for scenario in ARRIVES_S:
        expected = EXPECTED[scenario, reading]
        story, alone = stories[scenario, KINDS[0].name], stories[scenario, KINDS[2].name]
        where = f"{scenario}, {reading.name}"
        ratio = mean(story.latencies()) / mean(alone.latencies())
        if ratio > WITHIN:
            found.append(f"{where}: {ratio:.2f} of the latency alone")
        killed = story.killed()
        if abs(len(killed) - expected.kills) > 1:
            found.append(f"{where}: {len(killed)} killed instead of {expected.kills}")
        task_s = max((one.end_s - one.start_s for one in killed), default=0.0)
        if abs(story.lost_s() - expected.lost_s) > task_s:
            found.append(f"{where}: {story.lost_s():.0f} slot-seconds lost")
        # The first round is over when as many of its tasks as it needs have come.
        over_s = list(reading.arrivals(scenario))[reading.need - 1] + REACTIVE_S / 2
        late = [one for one in killed if one.end_s > over_s]
        if late:
            found.append(f"{where}: {len(late)} killed after the first round")
    return found
