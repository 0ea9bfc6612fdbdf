"""Outputs of a job's maps: where they are, for reduces, and which are lost.

To reduces they are a list that only grows: a map whose output is lost gets another entry when
it is done again, and whoever has read up to some entry needs only those after it.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import Final

from frameworks.mapreduce.messages import MapOutput
from frameworks.mapreduce.work import MapDone, Segment

# Entries in one message: far below what a message may hold.
MOST_IN_ONE: Final = 2000
_FIELDS: Final = 4


@dataclass(frozen=True, slots=True)
class Output:
    """A map's output file.  segments: four numbers per partition, since there are many."""

    map: int
    attempt: str
    agent_id: str
    url: str
    path: str
    segments: array[int]

    def part(self, partition: int) -> MapOutput:
        at = partition * _FIELDS
        segment = Segment(*self.segments[at : at + _FIELDS])
        return MapOutput(self.map, self.attempt, self.agent_id, self.url, self.path, segment)


class Outputs:
    """reports: attempts whose output could not be fetched -> {agent of the reduce: times}."""

    def __init__(self, partitions: int) -> None:
        self._partitions = partitions
        self._list: list[Output] = []
        self._kept: dict[int, Output] = {}
        self.reports: dict[str, dict[str, int]] = {}

    def add(self, map: int, attempt: str, agent_id: str, done: MapDone) -> None:
        numbers = array("q")
        for segment in done.segments:
            numbers.extend((segment.offset, segment.length, segment.raw, segment.crc))
        self._keep(Output(map, attempt, agent_id, done.url, done.path, numbers))

    def add_nothing(self, map: int) -> None:
        """A map that has failed and may: reduces get nothing of it, and do not wait for it."""
        self._keep(Output(map, "", "", "", "", array("q", bytes(8 * _FIELDS * self._partitions))))

    def lose(self, map: int) -> None:
        lost = self._kept.pop(map, None)
        if lost is not None:
            self.reports.pop(lost.attempt, None)

    def attempt_of(self, map: int) -> str | None:
        found = self._kept.get(map)
        return None if found is None else found.attempt

    def on_agent(self, agent_id: str) -> list[Output]:
        return [output for output in self._kept.values() if output.agent_id == agent_id]

    def agents(self) -> set[str]:
        return {output.agent_id for output in self._kept.values()}

    def since(self, entry: int, partition: int) -> tuple[MapOutput, ...]:
        """Entries from this one on, as a reduce gets them; no more than go into a message."""
        return tuple(output.part(partition) for output in self._list[entry : entry + MOST_IN_ONE])

    def report(self, attempt: str, agent_id: str) -> dict[str, int]:
        """A reduce on that agent could not fetch it.  All reports of it until now."""
        reports = self.reports.setdefault(attempt, {})
        reports[agent_id] = reports.get(agent_id, 0) + 1
        return reports

    def clear(self) -> None:
        self._list.clear()
        self._kept.clear()
        self.reports.clear()

    def _keep(self, output: Output) -> None:
        self._list.append(output)
        self._kept[output.map] = output
