"""A job in words: why it has failed, its counters, how far it is."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from frameworks.mapreduce.core.views import AttemptView, JobView, PhaseView, TaskView, Trouble
from frameworks.mapreduce.work import Counters

# So many siblings are named, the others counted.
_NAMED: Final = 8


def failure_lines(view: JobView, tasks: Iterable[TaskView]) -> list[str]:
    """Of a job that has failed: what its program said first, where that was, and what was
    stopped because of it."""
    lines: list[str] = []
    failure = view.failure
    if failure is None:
        return [f"{view.job_id} has failed: {view.why or 'nothing is known of why'}"]
    if failure.details.strip():
        lines += failure.details.rstrip("\n").split("\n")
        lines.append("")
    lines.append(f"{view.job_id} has failed: {failure.message}")
    for word, text in (
        ("input", failure.where),
        ("attempt", view.failed_attempt),
        ("host", view.failed_host),
        ("log", failure.log),
    ):
        if text:
            lines.append(f"  {word + ':':<9}{text}")
    stopped = stopped_because(view, tasks)
    if stopped:
        shown = ", ".join(each.attempt for each in stopped[:_NAMED])
        more = f" and {len(stopped) - _NAMED} more" if len(stopped) > _NAMED else ""
        lines.append(f"  stopped because of it: {shown}{more}")
    return lines


def stopped_because(view: JobView, tasks: Iterable[TaskView]) -> list[AttemptView]:
    """Attempts that were ended since the job had failed: they are no cause of anything."""
    return [
        attempt
        for task in tasks
        for attempt in task.attempts
        if attempt.state == "killed"
        and attempt.attempt != view.failed_attempt
        and (view.failed_attempt or "stopped because the job") in attempt.why
    ]


def failed_attempts(tasks: Iterable[TaskView]) -> Iterator[tuple[TaskView, AttemptView]]:
    """In the order of their ends."""
    found = [
        (task, attempt)
        for task in tasks
        for attempt in task.attempts
        if attempt.state == "failed" and attempt.failure is not None
    ]
    yield from sorted(found, key=lambda pair: pair[1].ended_s)


def counter_lines(counters: Counters, indent: str = "  ") -> list[str]:
    """Groups in order, and their counters in order."""
    lines = []
    for group in sorted(counters):
        if counters[group]:
            lines.append(f"{indent}{one_line(group)}")
            for name, count in sorted(counters[group].items()):
                lines.append(f"{indent * 2}{one_line(name)}={count}")
    return lines


def counter_total(counters: Counters) -> int:
    """How many counters there are."""
    return sum(len(group) for group in counters.values())


def one_line(text: str) -> str:
    """Without what would end a line."""
    return " ".join(text.splitlines()) if not text.isprintable() else text


def trouble_words(trouble: Trouble, now_s: float) -> str:
    """On one line."""
    tries = plural(trouble.tries, "try").replace("trys", "tries")
    facts = [f"{tries} since {clock(trouble.since_s)}"]
    facts.append(f"next in {max(0.0, trouble.next_s - now_s):.0f} s")
    if trouble.until_s:
        facts.append(f"given up after {clock(trouble.until_s)}")
    return one_line(f"{trouble.what} fails: {trouble.why} ({', '.join(facts)})")


def clock(at_s: float) -> str:
    """The time of a day, here."""
    return f"{datetime.datetime.fromtimestamp(at_s).astimezone():%H:%M:%S}"


def phase_words(phase: PhaseView) -> str:
    """As "12 of 40 done, 4 running, 1 attempt failed"."""
    parts = [f"{phase.done} of {phase.total} done"]
    if phase.running:
        parts.append(f"{phase.running} running")
    if phase.waiting and not phase.running:
        parts.append(f"{phase.waiting} waiting")
    if phase.attempts_failed:
        parts.append(plural(phase.attempts_failed, "attempt") + " failed")
    return ", ".join(parts)


def percent(progress: float) -> int:
    """Rounded down: 100 only when all is done."""
    return max(0, min(100, int(progress * 100 + 1e-9)))


def plural(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def hosts(attempts: Sequence[AttemptView]) -> str:
    """Where the last attempt is or was."""
    return attempts[-1].hostname if attempts else ""
