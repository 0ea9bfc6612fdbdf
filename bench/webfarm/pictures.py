"""Sessions per second at the balancer and at each server, and the number of servers, over time."""

from __future__ import annotations

import csv
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench.report import Result


def draw(result: Result, directory: Path) -> list[Path]:
    """One picture for the ramp and one for the step, and for each a table of what it shows."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    paths = []
    for name in ("ramp", "step"):
        all_of_them = result.details[name]
        samples = changes(all_of_them)
        figure, panels = plt.subplots(3, 1, figsize=(10, 8), sharex=True, layout="constrained")
        at_s = [each["at_s"] for each in samples]
        _balancer(panels[0], at_s, samples)
        _servers(panels[1], at_s, samples, result.parameters["target"])
        _numbers(panels[2], at_s, samples)
        figure.suptitle(f"{result.title}: {name}\n{result.reached}", fontsize=9)
        paths.append(directory / f"webfarm-{name}.png")
        figure.savefig(paths[-1], dpi=110)
        plt.close(figure)
        paths.append(directory / f"webfarm-{name}.csv")
        write_table(paths[-1], all_of_them)
    return paths


def changes(samples: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those in which the farm shows something new, the first and the last: it is looked at more
    often than it measures."""

    def shown(each: dict[str, Any]) -> list[Any]:
        return [each[name] for name in ("rate", "wanted", "serving", "rates")]

    new = [after for before, after in pairwise(samples) if shown(after) != shown(before)]
    return [*samples[:1], *new, *samples[-1:]]


def write_table(path: Path, samples: list[dict[str, Any]]) -> None:
    """A line for each sample; rates of servers are in the order of their launches."""
    most = max((len(each["rates"]) for each in samples), default=0)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        names = ["at_s", "offered", "rate", "wanted", "serving"]
        writer.writerow([*names, *(f"server_{number}" for number in range(1, most + 1))])
        for each in samples:
            writer.writerow([_cell(value) for value in [*(each[n] for n in names), *each["rates"]]])


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _balancer(panel: Any, at_s: list[float], samples: list[dict[str, Any]]) -> None:
    panel.plot(at_s, [each["offered"] for each in samples], color="0.6", label="asked by users")
    rates = [float("nan") if each["rate"] is None else each["rate"] for each in samples]
    panel.step(at_s, rates, where="post", color="tab:blue", label="at the balancer")
    panel.set_ylabel("sessions/s")
    panel.set_ylim(0)
    panel.legend(fontsize=7)


def _servers(panel: Any, at_s: list[float], samples: list[dict[str, Any]], target: float) -> None:
    points = [(at, rate) for at, each in zip(at_s, samples, strict=True) for rate in each["rates"]]
    panel.plot(*zip(*points, strict=True) if points else ([], []), ".", markersize=3)
    panel.axhline(target, color="tab:red", linewidth=0.8, label="target")
    panel.set_ylabel("sessions/s at each server")
    panel.set_ylim(0)
    panel.legend(fontsize=7)


def _numbers(panel: Any, at_s: list[float], samples: list[dict[str, Any]]) -> None:
    for key, colour in (("wanted", "0.6"), ("serving", "tab:green")):
        values = [each[key] for each in samples]
        panel.step(at_s, values, where="post", color=colour, label=key)
    panel.set_ylabel("servers")
    panel.set_xlabel("s")
    panel.set_ylim(0)
    panel.legend(fontsize=7)


__all__ = ["changes", "draw", "write_table"]
