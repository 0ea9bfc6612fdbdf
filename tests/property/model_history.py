"""Random histories: played, repeated, made shorter, told.

A history is a list of numbers, each of which is the seed of one step: what the step
does depends on that number and the state of the world alone.  So a history can be
repeated, and made shorter by leaving steps out.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from tests.property.model_run import Run

# What some twenty histories must meet, and what a hundred, lest they prove nothing.
MEANT: Final = (
    *("agents_registered", "agents_reregistered", "agents_removed", "agents_unreachable"),
    *("frameworks_subscribed", "frameworks_removed", "tasks_launched", "tasks_invalid"),
    *("offers_accepted", "offers_declined", "offers_expired", "offers_rescinded"),
    *(f"seen {state}" for state in ("STARTING", "RUNNING", "FINISHED", "FAILED", "KILLED")),
    *(f"seen {state}" for state in ("STAGING", "LOST", "DROPPED", "ERROR")),
    *(f"dropped/{what}" for what in ("call-accept", "call-decline", "subscription-refused")),
    *(f"dropped/{what}" for what in ("acknowledge-agent-away", "agent-silent")),
)
RARE: Final = (
    *(f"seen {state}" for state in ("UNREACHABLE", "GONE", "UNKNOWN")),
    *(f"dropped/update-{what}" for what in ("after-the-end", "framework-away", "without-uuid")),
    *(f"dropped/update-{what}" for what in ("unknown-framework", "impossible-state")),
    *(f"dropped/agent-{what}" for what in ("refused", "registered-twice", "call-unknown")),
    *(f"dropped/{what}" for what in ("late-wake-up", "call-before-subscribe")),
)


def history(seed: int, length: int) -> list[int]:
    rng = random.Random(seed)
    return [rng.getrandbits(32) for _ in range(length)]


def play(seed: int, numbers: Sequence[int], run: Run | None = None) -> Run:
    """The whole history and its end.  Raises what goes wrong."""
    run = run if run is not None else Run(seed)
    for number in numbers:
        run.step(number)
    run.settle()
    return run


def failure(seed: int, numbers: Sequence[int], kind: type[Run] = Run) -> str:
    """What goes wrong in the history, without its particulars; "" if nothing does."""
    try:
        play(seed, numbers, kind(seed))
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:24]}"
    return ""


def shortened(seed: int, numbers: Sequence[int], tries: int, kind: type[Run] = Run) -> list[int]:
    """Fewer steps in which the same goes wrong; leaves out ever smaller pieces."""
    steps = list(numbers)
    wanted = failure(seed, steps, kind)
    size = len(steps) // 2
    while size and tries > 0:
        start = 0
        while start < len(steps) and tries > 0:
            tries -= 1
            fewer = steps[:start] + steps[start + size :]
            if failure(seed, fewer, kind) == wanted:
                steps = fewer
            else:
                start += size
        size //= 2
    return steps


def told(seed: int, numbers: Sequence[int], kind: type[Run] = Run) -> str:
    """The history in words, up to where it goes wrong."""
    run = kind(seed)
    run.trace = []
    try:
        play(seed, numbers, run)
    except Exception as error:
        run.trace.append(f"{type(error).__name__}: {error}")
    return "\n".join(run.trace)
