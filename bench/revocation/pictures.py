"""Goodput and latency over time: with revocation, without, and alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from bench.report import Result
from bench.revocation.scenario import ARRIVES_S, END_S, SLOTS, Ran, Story

COLOURS: Final = {"with revocation": "tab:blue", "without": "tab:red", "alone": "0.6"}
_STEP_S: Final = 1.0


def draw(result: Result, directory: Path) -> list[Path]:
    """A picture for each reading and scenario, from the details of the result."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    paths = []
    for number, (reading, runs) in enumerate(result.details.items(), 1):
        for scenario in ARRIVES_S:
            stories = _stories(runs, scenario)
            figure, (goodput, latency) = plt.subplots(
                2, 1, figsize=(10, 7), sharex=True, layout="constrained"
            )
            _goodput(goodput, stories)
            _latency(latency, stories)
            latency.axvline(ARRIVES_S[scenario], color="0.8", zorder=0)
            goodput.axvline(ARRIVES_S[scenario], color="0.8", zorder=0)
            figure.suptitle(
                f"{scenario}: {reading}; {result.parameters['scale']:g} times as fast", fontsize=9
            )
            paths.append(directory / f"revocation-{number}{scenario}.png")
            figure.savefig(paths[-1], dpi=110)
            plt.close(figure)
    return paths


def _stories(runs: Mapping[str, Any], scenario: str) -> dict[str, Story]:
    return {
        kind: Story([Ran(**one) for one in runs[f"{scenario}, {kind}"]])
        for kind in COLOURS
        if f"{scenario}, {kind}" in runs
    }


def _goodput(panel: Any, stories: Mapping[str, Story]) -> None:
    """Slots that do work which will be finished."""
    moments = [step * _STEP_S for step in range(int(END_S / _STEP_S))]
    for kind, story in stories.items():
        mine = [story.goodput("reactive", at_s) for at_s in moments]
        all_of_it = [
            own + story.goodput("greedy", at_s) for own, at_s in zip(mine, moments, strict=True)
        ]
        panel.plot(moments, all_of_it, color=COLOURS[kind], linewidth=0.8, label=f"{kind}: both")
        panel.plot(
            moments, mine, color=COLOURS[kind], linewidth=1.4, linestyle="--", label="reactive"
        )
    panel.set_ylim(0, SLOTS + 0.5)
    panel.set_ylabel("goodput: slots with work\nthat will be finished")
    panel.legend(fontsize=7, ncols=3)


def _latency(panel: Any, stories: Mapping[str, Story]) -> None:
    for kind, story in stories.items():
        ran = story.reactive()
        panel.plot(
            [one.wanted_s for one in ran],
            [one.end_s - one.wanted_s for one in ran],
            color=COLOURS[kind],
            marker=".",
            markersize=4,
            linewidth=0.8,
            label=kind,
        )
    panel.set_ylim(0)
    panel.set_ylabel("latency of reactive tasks (s)")
    panel.set_xlabel("when they came (s)")
    panel.legend(fontsize=7)
