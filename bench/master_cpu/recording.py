"""What went over the streams of one window, as the peers of the master saw it.

Kept per stream and in order, so that a server without any logic can receive and send
the very same messages again.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mesos_py.v1 import agent_pb2, scheduler_pb2

AGENT: Final = "agent"
FRAMEWORK: Final = "framework"
# By kind of stream: how what the master receives, and what it sends, is read.
IN: Final[dict[str, Callable[[bytes], Any]]] = {
    AGENT: agent_pb2.Calls.FromString,
    FRAMEWORK: scheduler_pb2.Calls.FromString,
}
OUT: Final[dict[str, Callable[[bytes], Any]]] = {
    AGENT: agent_pb2.Events.FromString,
    FRAMEWORK: scheduler_pb2.Events.FromString,
}


@dataclass
class Script:
    """The messages of one stream: (towards the master?, the message)."""

    kind: str
    entries: list[tuple[bool, Any]] = field(default_factory=list)

    def rotated(self) -> Script:
        """The same, beginning with a message to the master: its sender sets the pace."""
        first = next((n for n, (inward, _) in enumerate(self.entries) if inward), 0)
        return Script(self.kind, self.entries[first:] + self.entries[:first])


@dataclass
class Traffic:
    """How much it was."""

    messages_in: int = 0
    messages_out: int = 0
    entries_in: int = 0
    entries_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0

    def add(self, inward: bool, entries: int, size: int) -> None:
        if inward:
            self.messages_in += 1
            self.entries_in += entries
            self.bytes_in += size
        else:
            self.messages_out += 1
            self.entries_out += entries
            self.bytes_out += size


def save(scripts: list[Script], path: Path) -> dict[str, Traffic]:
    """Write the scripts; the traffic by kind of stream."""
    traffic = {AGENT: Traffic(), FRAMEWORK: Traffic()}
    packed = []
    for script in scripts:
        entries = []
        for inward, message in script.entries:
            data = message.SerializeToString()
            count = len(message.calls if inward else message.events)
            traffic[script.kind].add(inward, count, len(data))
            entries.append((inward, data))
        packed.append((script.kind, entries))
    path.write_bytes(pickle.dumps(packed))
    return traffic


def load(path: Path) -> list[Script]:
    """The scripts with their messages made, those without a message to the master left out."""
    scripts = []
    for kind, entries in pickle.loads(path.read_bytes()):
        made = [(inward, (IN if inward else OUT)[kind](data)) for inward, data in entries]
        if any(inward for inward, _ in made):
            scripts.append(Script(kind, made).rotated())
    return scripts
