"""The pictures: each figure beside its floor."""

from __future__ import annotations

from pathlib import Path

from bench.report import Result


def draw(result: Result, path: Path) -> None:
    """Bars with the spread of the runs; one panel per unit that has a floor."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    units = list(dict.fromkeys(row.unit for row in result.rows if row.floor))
    figure, panels = plt.subplots(
        1, max(1, len(units)), figsize=(5 * max(1, len(units)), 4), squeeze=False
    )
    for panel, unit in zip(panels[0], units, strict=False):
        rows = [row for row in result.rows if row.unit == unit]
        for place, row in enumerate(rows):
            value = row.value
            error = [[value.median - value.low], [value.high - value.median]]
            colour = "0.7" if row.floor else "tab:blue"
            panel.bar(place, value.median, yerr=error, capsize=4, color=colour)
        panel.set_xticks(range(len(rows)), [row.what for row in rows], rotation=20, ha="right")
        panel.set_ylabel(unit)
    figure.suptitle(f"{result.title}\n{result.reached}", fontsize=9)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)
