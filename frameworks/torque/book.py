"""What the wrapper has to know after its own end: its framework and its nodes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from frameworks.torque.core.records import Size
from mesos_py import MesosPyError
from mesos_py.files import write_atomically


@dataclass(frozen=True, slots=True)
class Entry:
    """A node for which a task was launched, or was about to be; its name is its task's id."""

    name: str
    agent_id: str
    hostname: str
    size: Size
    address: str


@dataclass(slots=True)
class Book:
    """Kept in a file as it is after each `save`.

    framework_id: empty before the first subscription.
    last: number of the last node that was begun; numbers are used once.
    """

    path: Path
    framework_id: str = ""
    last: int = 0
    nodes: dict[str, Entry] = field(default_factory=dict)

    def save(self) -> None:
        """Raises OSError; what was there is there then."""
        content = {
            "framework_id": self.framework_id,
            "last": self.last,
            "nodes": [asdict(entry) for entry in self.nodes.values()],
        }
        write_atomically(self.path, json.dumps(content, indent=1) + "\n")


def read(path: Path) -> Book:
    """An empty one if there is no file.  Raises MesosPyError for what is no book: nodes that may
    run must not be forgotten."""
    book = Book(path)
    try:
        content: Any = json.loads(path.read_text())
        book.framework_id = str(content["framework_id"])
        book.last = int(content["last"])
        for each in content["nodes"]:
            size = Size(int(each["size"]["cpus"]), int(each["size"]["mem_mb"]))
            entry = Entry(
                str(each["name"]),
                str(each["agent_id"]),
                str(each["hostname"]),
                size,
                str(each["address"]),
            )
            book.nodes[entry.name] = entry
    except FileNotFoundError:
        return book
    except (ValueError, KeyError, TypeError) as error:
        raise MesosPyError(f"{path} is damaged ({error!r}): mend it or remove it") from error
    return book


__all__ = ["Book", "Entry", "read"]
