"""What the agent and the process that fetches tell each other: one JSON text per line.

The agent writes one job to the process's standard input and keeps that open: its end
means that the agent is gone.  The process writes what it has done to its standard
output, and its last word is either "done" or "failed".

Imported by the process: it must stay small (no mesos_py, no grpc).
"""

from __future__ import annotations

from typing import Literal, TypedDict


class Item(TypedDict):
    """One thing to fetch."""

    # Where it is; without a checksum's fragment.
    uri: str
    # The same for people: no passwords, no signatures.
    shown: str
    # Names beneath the sandbox.
    target: list[str]
    executable: bool
    extract: bool
    # What it must be: ("sha256", hexadecimal digits).
    checksum: tuple[str, str] | None
    # An open file that it is read from in place of the URI: the agent's cache.
    source: int | None


class Job(TypedDict):
    """What one process is to do."""

    items: list[Item]
    # Whom to become first: uid, gid, groups.  None: stay who we are.
    user: tuple[int, int, list[int]] | None
    # The sandbox as an open directory; None: the only item is written to `sink`.
    sandbox: int | None
    # An open file of the agent's cache that is to be filled.
    sink: int | None
    # The most that may be written in all: what is unpacked counts.
    max_bytes: int


class Word(TypedDict, total=False):
    """What the process says.

    "start" an item, "bytes" moved for it so far (of `total` if that is known), "got" it
    (`bytes` in all), "unpacked" it (`entries`, `bytes`); at the end "done" or "failed"
    with `why`.  `kind` of a failure: "source", "checksum", "refused" (an archive, a
    limit), "disk" or "other".
    """

    what: Literal["start", "bytes", "got", "unpacked", "done", "failed"]
    item: int
    bytes: int
    total: int
    entries: int
    kind: str
    why: str
