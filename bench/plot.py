"""The pictures: each figure beside its floor."""

from __future__ import annotations

from pathlib import Path

from bench.report import Result


def draw(result: Result, path: Path) -> None:
    """Bars with the spread of the runs; one panel per unit in which there is a floor."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    units = list(dict.fromkeys(row.unit for row in result.rows if row.floor))
    groups = [[row for row in result.rows if row.unit == unit] for unit in units]
    sizes = [len(group) for group in groups]
    figure, panels = plt.subplots(
        len(groups),
        1,
        figsize=(9, 1.5 + 0.35 * sum(sizes)),
        height_ratios=sizes,
        squeeze=False,
        layout="constrained",
    )
    for panel, unit, rows in zip(panels[:, 0], units, groups, strict=True):
        middle = [row.value.median for row in rows]
        spread = [
            [row.value.median - row.value.low for row in rows],
            [row.value.high - row.value.median for row in rows],
        ]
        colours = ["0.7" if row.floor else "tab:blue" for row in rows]
        panel.barh(range(len(rows)), middle, xerr=spread, capsize=3, color=colours)
        panel.set_yticks(range(len(rows)), [row.what.strip() for row in rows])
        panel.invert_yaxis()
        panel.set_xlabel(f"{unit}; grey: floors")
    figure.suptitle(f"{result.title}\n{result.reached}", fontsize=9)
    figure.savefig(path, dpi=120)
    plt.close(figure)
