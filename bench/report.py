"""What a bench found: printed as a table, kept as JSON and as a picture."""

from __future__ import annotations

import json
import os
import platform
import time
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.stats import Spread


@dataclass(frozen=True)
class Row:
    """One measured figure; `floor`: it is what the row above cannot beat."""

    what: str
    value: Spread
    unit: str
    floor: bool = False
    note: str = ""
    digits: int = 1


@dataclass
class Result:
    """Everything about one bench's runs.

    `reached` compares the figure with its floor, in the unit that `aim` speaks of;
    `met` says whether the aim was.
    """

    name: str
    title: str
    rows: list[Row]
    aim: str
    reached: str
    met: bool
    parameters: dict[str, Any] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def machine() -> dict[str, Any]:
    """Where and when: figures mean nothing without."""
    return {
        "date": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "load_average_before": [round(load, 2) for load in os.getloadavg()],
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "grpcio": metadata.version("grpcio"),
        "protobuf": metadata.version("protobuf"),
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((x.partition(":")[2].strip() for x in lines if x.startswith("model name")), "")


def show(result: Result, console: Console) -> None:
    table = Table(title=result.title, title_justify="left", title_style="bold")
    table.add_column("")
    table.add_column("median (lowest-highest)", justify="right")
    table.add_column("unit")
    table.add_column("")
    for row in result.rows:
        style = "dim" if row.floor else ""
        note = (
            f"floor; {row.note}" if row.floor and row.note else "floor" if row.floor else row.note
        )
        table.add_row(row.what, row.value.text(row.digits), row.unit, note, style=style)
    console.print(table)
    word = "[green]met[/]" if result.met else "[yellow]not met[/]"
    console.print(f"{result.reached}; aim: {result.aim}: {word}")
    for note in result.notes:
        console.print(note, style="dim", highlight=False)
    console.print()


def save(result: Result, where: dict[str, Any], directory: Path) -> Path:
    """Write `<name>.json`; what is there is replaced."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{result.name}.json"
    content = {"machine": where, **asdict(result)}
    path.write_text(json.dumps(content, indent=2) + "\n")
    return path
