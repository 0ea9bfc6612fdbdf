"""Seconds over iterations, a line for each contender."""

from __future__ import annotations

import csv
from itertools import zip_longest
from pathlib import Path
from typing import Any

from bench.report import Result
from bench.stats import Spread


def draw(result: Result, directory: Path) -> list[Path]:
    """A picture (of which the second panel shows small differences), and a table of what it shows;
    nothing if the iterations were not measured."""
    lines = {name: _line(each["laps_s"]) for name, each in result.details["logistic"].items()}
    if not lines:
        return []
    import matplotlib as mpl

    mpl.use("Agg")
    # Words stay words in a drawing.
    mpl.rcParams["svg.fonttype"] = "none"
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
    for panel, scale in zip(panels, ("linear", "log"), strict=True):
        _panel(panel, lines, scale)
    panels[0].legend(fontsize=7)
    figure.suptitle(f"logistic regression\n{result.reached}", fontsize=9)
    paths = [directory / f"{result.name}-iterations.{ending}" for ending in ("png", "svg", "csv")]
    for path in paths[:2]:
        figure.savefig(path, dpi=110)
    plt.close(figure)
    _write_table(paths[2], lines)
    return paths


def _line(runs: list[list[float]]) -> list[float]:
    """The middle one of the runs, after each iteration."""
    return [Spread.of(laps).median for laps in zip(*runs, strict=True)]


def _panel(panel: Any, lines: dict[str, list[float]], scale: str) -> None:
    for name, line in lines.items():
        panel.plot(range(1, len(line) + 1), line, ".-", markersize=4, linewidth=1, label=name)
    panel.set_xlabel("iterations")
    panel.set_ylabel("s since the engine was there")
    panel.set_yscale(scale)
    if scale == "linear":
        panel.set_ylim(0)


def _write_table(path: Path, lines: dict[str, list[float]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["iterations", *lines])
        for at, row in enumerate(zip_longest(*lines.values()), 1):
            writer.writerow([at, *("" if each is None else f"{each:.3f}" for each in row)])
