"""The published scenarios: one agent of 8 slots, a greedy framework and a reactive one.

The greedy one has tasks of 180 seconds without end and takes whatever it is offered, from
the beginning.  The reactive one arrives later (A: after 150 s, B: after 30 s), with tasks
of 30 seconds.  The publication is not consistent about its load, so there are three
readings of it.  All times are those of the publication; a run may scale them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

SLOTS: Final = 8
GREEDY_S: Final = 180.0
REACTIVE_S: Final = 30.0
ARRIVES_S: Final = {"A": 150.0, "B": 30.0}
# What is measured would end by here, if nothing had to wait.
END_S: Final = 1080.0


@dataclass(frozen=True)
class Reading:
    """The reactive framework's load: `tasks` every `every_s`; it needs `need` slots."""

    tasks: int
    every_s: float
    need: int

    @property
    def name(self) -> str:
        return f"{self.tasks} per {self.every_s:g} s, need {self.need}"

    def arrivals(self, scenario: str) -> Iterator[float]:
        """When its tasks come."""
        at_s = ARRIVES_S[scenario]
        while at_s + REACTIVE_S <= END_S:
            for _ in range(self.tasks):
                yield at_s
            at_s += self.every_s


READINGS: Final = (Reading(2, 15, 4), Reading(1, 15, 2), Reading(2, 30, 2))


@dataclass(frozen=True)
class Expected:
    """Latency without revocation (least, mean, most); with it: kills, and the seconds for
    which the killed ones had run, in all."""

    without: tuple[float, float, float]
    kills: int
    lost_s: float


EXPECTED: Final = {
    ("A", READINGS[0]): Expected((45, 52.5, 60), 4, 630),
    ("B", READINGS[0]): Expected((165, 172.5, 180), 4, 150),
    ("A", READINGS[1]): Expected((30, 37.9, 60), 2, 315),
    ("B", READINGS[1]): Expected((30, 55.2, 180), 2, 75),
    ("A", READINGS[2]): Expected((30, 31, 60), 2, 300),
    ("B", READINGS[2]): Expected((30, 51.4, 180), 2, 60),
}


@dataclass(frozen=True)
class Ran:
    """One task: when it was wanted (reactive ones), ran and ended."""

    framework: str
    wanted_s: float
    start_s: float
    end_s: float
    killed: bool = False


@dataclass
class Story:
    """All that happened in one run."""

    ran: list[Ran] = field(default_factory=list)

    def reactive(self) -> list[Ran]:
        """Its tasks that ran to their end, in the order in which they came."""
        found = [one for one in self.ran if one.framework == "reactive" and not one.killed]
        return sorted(found, key=lambda one: one.wanted_s)

    def latencies(self) -> list[float]:
        """Of the reactive tasks, from when they were wanted to their end."""
        return [one.end_s - one.wanted_s for one in self.reactive()]

    def killed(self) -> list[Ran]:
        return [one for one in self.ran if one.killed]

    def lost_s(self) -> float:
        """Slot-seconds for which those that were killed had run."""
        return sum(one.end_s - one.start_s for one in self.killed())

    def goodput(self, framework: str, at_s: float) -> int:
        """Slots with a task of the framework that will run to its end."""
        return sum(
            one.framework == framework and not one.killed and one.start_s <= at_s < one.end_s
            for one in self.ran
        )
