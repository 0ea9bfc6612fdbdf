"""A job, its maps and its reduces: what is known, and where it stands."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final

from frameworks.common.blame import Blame
from frameworks.common.commits import Commits
from frameworks.common.delay import Delay
from frameworks.mapreduce.core.outputs import Outputs
from frameworks.mapreduce.core.rules import JobRules, PhaseRules
from frameworks.mapreduce.core.tasks import Attempt, Task
from frameworks.mapreduce.core.views import JobState, Trouble
from frameworks.mapreduce.core.waiting import Waiting
from frameworks.mapreduce.job import JobSpec, Split
from frameworks.mapreduce.names import Kind
from frameworks.mapreduce.work import Counters, Failure

# So many of the latest times of tasks say how long the next ones will take.
_TIMES: Final = 1000


class Phase:
    """The maps or the reduces.

    durations: (agent, seconds) of attempts that have finished, the latest.
    twins: tasks that are to get a second attempt, the most urgent first, but not on
        `slow_agents`.
    cramped_s: since when nothing of it runs and nothing could be started, although it was its
        turn; None if that is not so.
    """

    def __init__(self, kind: Kind, total: int, rules: PhaseRules, splits: Sequence[Split]) -> None:
        self.kind: Kind = kind
        self.total = total
        self.rules = rules
        self.splits = splits
        self.tasks: dict[int, Task] = {}
        self.waiting = Waiting(total, self.hosts)
        self.commits = Commits()
        self.failed = 0
        self.live: dict[str, Attempt] = {}
        self.durations: deque[tuple[str, float]] = deque(maxlen=_TIMES)
        self.twins: list[int] = []
        self.slow_agents: set[str] = set()
        self.cramped_s: float | None = None
        self.ended = {"failed": 0, "lost": 0, "preempted": 0, "killed": 0}
        self.levels = {"host": 0, "rack": 0, "any": 0}
        self.launched = 0
        self.twin_count = 0
        self.lost_outputs = 0
        for number in range(total):
            self.waiting.add(number)

    def hosts(self, task: int) -> tuple[str, ...]:
        return self.splits[task].hosts if self.splits else ()

    def task(self, number: int) -> Task:
        found = self.tasks.get(number)
        if found is None:
            found = self.tasks[number] = Task(number)
        return found

    @property
    def done(self) -> int:
        return self.commits.confirmed_count

    @property
    def settled(self) -> bool:
        """Nothing is left to be done."""
        return self.done + self.failed == self.total


class Job:
    """number: by the order of submission.

    missing: maps whose output is lost, and that are not done again since no reduce needs them.
    starved_since_s: since when its maps have waited while reduces hold room.
    troubles: with its output, by what was to be done.
    lacking: agents (with their host names) on which a program was missing, by its name.
    why_not: what the last offers were not used for, in words.
    """

    def __init__(
        self, number: int, spec: JobSpec, splits: Sequence[Split], rules: JobRules, window_s: float
    ) -> None:
        self.number = number
        self.job_id = spec.job_id
        self.spec = spec
        self.rules = rules
        self.maps = Phase("map", len(splits), rules.maps, splits)
        self.reduces = Phase("reduce", spec.reduces, rules.reduces, ())
        self.outputs = Outputs(spec.reduces)
        self.missing: set[int] = set()
        self.delay = Delay(rules.wait_host_s, rules.wait_rack_s)
        self.blame = Blame(rules.failures_per_agent, window_s)
        self.state: JobState = "waiting"
        self.submitted_s = 0.0
        self.started_s = 0.0
        self.ended_s = 0.0
        self.stopping_s = 0.0
        self.outcome: JobState = "failed"
        self.failure: Failure | None = None
        self.failed_attempt = ""
        self.why = ""
        self.why_not = ""
        self.lacking: dict[str, dict[str, str]] = {}
        self.troubles: dict[str, Trouble] = {}
        self.starved_since_s: float | None = None
        self.counters: dict[str, dict[str, int]] = {}
        self.held_milli = 0
        self.agents: set[str] = set()

    @property
    def active(self) -> bool:
        """Its outcome is open."""
        return self.state in ("waiting", "running")

    @property
    def ended(self) -> bool:
        return self.state in ("succeeded", "failed", "killed")

    @property
    def last(self) -> Phase:
        """The phase whose parts are the output."""
        return self.reduces if self.spec.reduces else self.maps

    def phase(self, kind: Kind) -> Phase:
        return self.maps if kind == "map" else self.reduces

    def phases(self) -> tuple[Phase, Phase]:
        return self.maps, self.reduces

    def live(self) -> Iterator[Attempt]:
        yield from self.maps.live.values()
        yield from self.reduces.live.values()

    def running(self) -> bool:
        return bool(self.maps.live or self.reduces.live)

    @property
    def outputs_needed(self) -> bool:
        """Whether any reduce may yet fetch outputs: one that is being committed does not."""
        return self.reduces.total > self.reduces.commits.chosen_count

    def reduces_may_start(self) -> bool:
        """Not while a map waits: it gets the room first."""
        if not self.reduces.waiting.count or self.maps.waiting.count:
            return False
        return self.maps.settled or self.maps.done + self.maps.failed >= self.start_reduces_at

    @property
    def start_reduces_at(self) -> int:
        return self.rules.start_reduces_at

    def count(self, counters: Counters) -> None:
        add_counters(self.counters, counters)


def add_counters(to: dict[str, dict[str, int]], counters: Counters) -> None:
    for group, named in counters.items():
        sums = to.setdefault(group, {})
        for name, amount in named.items():
            sums[name] = sums.get(name, 0) + amount
