"""The attempts of one task: their numbers, which run, and what counts against the limit."""

from __future__ import annotations

from typing import Final, Literal

# How an attempt ends without a result.  Only "failed" is the task's own fault: "lost" is its
# agent's or the network's, "preempted" and "killed" were decided by others.
How = Literal["failed", "lost", "preempted", "killed"]

NOBODY: Final[frozenset[str]] = frozenset()


class Attempts:
    """Numbers are given once, also over restarts (`seen`), since names and files have them.

    running: number -> agent of those that have not ended.
    failures: how many count against a limit.
    failed_on: agents on which one has failed: the next one is better tried elsewhere.
    """

    __slots__ = ("failed_on", "failures", "next", "running")

    def __init__(self) -> None:
        self.next = 0
        self.running: dict[int, str] = {}
        self.failures = 0
        self.failed_on: frozenset[str] = NOBODY

    def begin(self, agent_id: str) -> int:
        """Another attempt; its number."""
        number = self.next
        self.seen(number, agent_id)
        return number

    def seen(self, number: int, agent_id: str) -> None:
        """That attempt was begun, by a predecessor perhaps."""
        self.running[number] = agent_id
        self.next = max(self.next, number + 1)

    def ended(self, number: int, how: How | None, counts: bool = True) -> None:
        """`how` is None for one with a result.  Nothing if it is not running.

        counts: whether a failure is the task's own; if not it only makes it avoid the agent.
        """
        agent_id = self.running.pop(number, None)
        if agent_id is None or how != "failed":
            return
        self.failures += counts
        self.failed_on |= {agent_id}
