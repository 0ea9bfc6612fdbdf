"""How lists are shown: JSON, a table for a terminal, aligned text for a pipe.

In a pipe nothing is shortened or wrapped, so that `grep` and `awk` see whole ids.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from rich.table import Table

Row = Mapping[str, Any]
NOTHING: Final = "-"

_STATE_STYLES: Final = {
    "RUNNING": "green",
    "FINISHED": "green",
    "FAILED": "red",
    "ERROR": "red",
    "LOST": "red",
    "DROPPED": "red",
    "GONE": "red",
    "GONE_BY_OPERATOR": "red",
    "UNREACHABLE": "red",
    "KILLED": "yellow",
    "KILLING": "yellow",
    "healthy": "green",
    "unhealthy": "red",
    "connected": "green",
    "active": "green",
    "inactive": "yellow",
    "deactivated": "yellow",
    "draining": "yellow",
    "drained": "yellow",
    "gone": "red",
    "down": "red",
    "disconnected": "yellow",
    "unreachable": "red",
}


@dataclass(frozen=True)
class Column:
    """One column of a table.

    `text` makes a cell of a row.  `narrow` does the same for a terminal, where it may
    be shorter.  Cells of a `loose` column are cut there when there is no room; those
    of others are folded, never cut.
    """

    title: str
    text: Callable[[Row], str]
    narrow: Callable[[Row], str] | None = None
    right: bool = False
    loose: bool = False


def show(rows: Sequence[Row], columns: Sequence[Column], *, as_json: bool, empty: str) -> None:
    """Print `rows`; for people, and if there are none, the word `empty` on stderr."""
    if as_json:
        show_json(rows)
    elif not rows:
        click.echo(empty, err=True)
    elif on_terminal():
        show_table(rows, columns)
    else:
        click.echo("\n".join(aligned(rows, columns)))


def tell_ordered(what: str) -> None:
    """Say what the master has done, and has told an agent that may not be able to."""
    click.echo(f"ordered: {what}; if the agent cannot, its log says why")


def discard_stdout() -> None:
    """Who read our output has gone: what is buffered and what is to come has no reader."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def on_terminal() -> bool:
    return sys.stdout.isatty()


def show_json(rows: Sequence[Row]) -> None:
    click.echo(json.dumps(list(rows), indent=2, ensure_ascii=False))


def aligned(rows: Sequence[Row], columns: Sequence[Column]) -> list[str]:
    """The lines of a table of plain text, columns two spaces apart."""
    cells = [[column.title for column in columns]]
    cells += [[_cell(column.text(row)) for column in columns] for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    lines = []
    for line in cells:
        padded = [
            text.rjust(width) if column.right else text.ljust(width)
            for text, width, column in zip(line, widths, columns, strict=True)
        ]
        lines.append("  ".join(padded).rstrip())
    return lines


def show_table(rows: Sequence[Row], columns: Sequence[Column]) -> None:
    """A table for a terminal of any width."""
    from rich.console import Console

    Console(highlight=False).print(table(rows, columns))


def table(rows: Sequence[Row], columns: Sequence[Column]) -> Table:
    """The rows as rich shows them."""
    from rich.table import Table
    from rich.text import Text

    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        made.add_column(
            column.title,
            justify="right" if column.right else "left",
            overflow="ellipsis" if column.loose else "fold",
            no_wrap=column.loose or column.right,
        )
    for row in rows:
        texts = [_cell((column.narrow or column.text)(row)) for column in columns]
        # As Text, since "[1-9]" in a string is markup to rich.
        made.add_row(*(Text(text, style=_STATE_STYLES.get(text, "")) for text in texts))
    return made


def _cell(text: str) -> str:
    """On one line, and without characters that would move the cursor."""
    if not text:
        return NOTHING
    return text if text.isprintable() else " ".join(_printable(text).split())


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)


def age(since: float | None, now: float) -> str:
    """How long ago, in one unit: "12s", "3m", "2h", "5d"."""
    if since is None:
        return ""
    seconds = max(0, int(now - since))
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def amount(value: object) -> str:
    """A scalar as people write it: 2.0 -> "2", 0.5 -> "0.5"."""
    if value is None:
        return ""
    return f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def amounts(resources: Mapping[str, object]) -> str:
    """Resources in one cell: "cpus:2;mem:512;ports:[1-9]"."""
    return ";".join(f"{name}:{amount(value)}" for name, value in resources.items())
