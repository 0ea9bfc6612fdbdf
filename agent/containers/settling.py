"""What became of the containers of the agent's earlier run, as far as anybody knows.

First the warden is asked, which knows all; has it ended in peace, it has left a file.
Was it lost as well, the processes themselves are looked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from agent.containers import adrift
from agent.containers.warden_client import Attached, left_word
from agent.core.recovery import SavedContainer
from agent.core.volume_uses import without_volumes
from agent.isolation.base import Recovered
from mesos_py import logs

log = logs.get("agent.containers")

LOST_AT_START: Final = (
    "the process that starts tasks ended just then: it is not known whether this one ran"
)
NEVER_STARTED: Final = "the agent was started anew before it was started"
UNSEEN: Final = "the process that waited for it ended before"


@dataclass(frozen=True)
class Knowledge:
    """What a warden knows.  `alive`: pids by container; None: it does not live itself."""

    alive: dict[str, int] | None
    # Its messages about containers that have ended or were not started.
    results: dict[str, list[Any]] = field(default_factory=dict)


def asked(attached: Attached) -> tuple[Knowledge, list[list[Any]]]:
    """Of a warden that was found; and what it has said since."""
    messages = attached.messages
    ready = next(n for n, message in enumerate(messages) if message[0] == "ready")
    before = messages[:ready]
    return Knowledge(
        alive={message[1]: message[2] for message in before if message[0] == "have"},
        results={message[1]: message for message in before if message[0] != "have"},
    ), messages[ready + 1 :]


def read(work_dir: str) -> Knowledge:
    """Of one that has ended."""
    try:
        return Knowledge(None, {message[1]: message for message in left_word(work_dir)})
    except (OSError, ValueError) as error:
        log.error("what the last warden has left to tell cannot be read", error=error)
        return Knowledge(None)


@dataclass(frozen=True)
class Alive:
    pid: int
    # It has no warden any more.
    adrift: adrift.Found | None = None


@dataclass(frozen=True)
class Told:
    """A message of the warden says it."""

    message: list[Any]


@dataclass(frozen=True)
class Failed:
    text: str


@dataclass(frozen=True)
class EndedUnseen:
    pass


Outcome: TypeAlias = Alive | Told | Failed | EndedUnseen


def settle(
    saved: Iterable[SavedContainer],
    known: Knowledge,
    has_begun: Callable[[tuple[str, ...]], bool],
) -> dict[str, Outcome]:
    """`has_begun`: whether there are traces of a start in a sandbox.  Looks at processes."""
    return {each.container_id: _outcome(each, known, has_begun) for each in saved}


def _outcome(
    each: SavedContainer, known: Knowledge, has_begun: Callable[[tuple[str, ...]], bool]
) -> Outcome:
    if known.alive is not None and each.container_id in known.alive:
        return Alive(known.alive[each.container_id])
    if each.container_id in known.results:
        return Told(known.results[each.container_id])
    if each.pid is None and not has_begun(each.sandbox):
        return Failed(NEVER_STARTED)
    found = adrift.find(each.container_id, each.pid, each.start_ticks)
    if found is not None:
        return Alive(found.pid, found)
    return Failed(LOST_AT_START) if each.pid is None else EndedUnseen()


def recovered(saved: Iterable[SavedContainer], outcomes: Mapping[str, Outcome]) -> list[Recovered]:
    """What isolators are told: the containers that are alive."""
    return [
        Recovered(
            container_id=each.container_id,
            framework_id=each.framework_id,
            executor_id=each.executor_id,
            pid=outcome.pid,
            resources=without_volumes(each.resources),
            info=each.info,
        )
        for each in saved
        if isinstance(outcome := outcomes[each.container_id], Alive)
    ]
