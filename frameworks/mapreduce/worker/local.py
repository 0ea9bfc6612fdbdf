"""A whole job without a cluster: the same attempts, several at once, on this machine.

Of the rules of the cluster it keeps those that a user sees: retries, who is to blame, parts
that are renamed by one arbiter, `_SUCCESS` last, an output that is there already refused.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from frameworks.mapreduce import conf as properties
from frameworks.mapreduce import names, records
from frameworks.mapreduce.data import files, splits
from frameworks.mapreduce.data.parts import output_codec, part_name
from frameworks.mapreduce.job import JobSpec, Split
from frameworks.mapreduce.messages import FetchFailed, MapOutput, Maps, Running, WantMaps
from frameworks.mapreduce.names import AttemptName, Kind
from frameworks.mapreduce.work import Counters, Failure, MapDone, ReduceDone, Segment, Work
from frameworks.mapreduce.worker.host import Finished, Host, Outcome, Reported
from frameworks.mapreduce.worker.place import Place, removed
from frameworks.mapreduce.worker.reports import Tally
from mesos_py.errors import AlreadyExists

# How many map outputs go into one answer.
_ANSWER: Final = 500
_POLL_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Planned:
    maps: int
    reduces: int


@dataclass(frozen=True, slots=True)
class Started:
    attempt: str


@dataclass(frozen=True, slots=True)
class Moved:
    attempt: str
    running: Running


@dataclass(frozen=True, slots=True)
class AttemptEnded:
    """outcome: None if it was killed because of another one's failure."""

    attempt: str
    outcome: Outcome | None
    seconds: float


LocalEvent = Planned | Started | Moved | AttemptEnded


@dataclass(frozen=True, slots=True)
class LocalOutcome:
    """failure: None if all went well; else the first that failed the job, of `attempt`.
    maps_given_up: whose input is not in the output (mapreduce.map.failures.maxpercent).
    map_s, reduce_s: from the first attempt's start to the last one's end."""

    counters: Counters
    maps: int
    reduces: int
    maps_given_up: int
    map_s: float
    reduce_s: float
    attempt: str = ""
    failure: Failure | None = None


def run_local(
    spec: JobSpec,
    parallel: int | None = None,
    on_event: Callable[[LocalEvent], None] | None = None,
    *,
    directory: Path | None = None,
) -> LocalOutcome:
    """Run the job to its end.

    parallel: attempts at once; None: as many as there are processors.  directory: where what is
    between maps and reduces lies; None: a new one for temporary files.  Nothing stays in either
    but, when the job has failed, the logs of its attempts; and no output stays then.

    Raises InvalidValue and NotFound (input, properties), AlreadyExists (the output), OSError.
    What `on_event` raises, and KeyboardInterrupt, end the job.
    """
    planned = splits.plan(spec)
    output = _Output(spec)
    root = Path(tempfile.mkdtemp(prefix=f"mesos-py-{spec.job_id}-", dir=directory))
    logs = None
    succeeded = False
    try:
        output.make()
        job = _LocalJob(spec, planned, output, root, parallel or os.cpu_count() or 1, on_event)
        outcome = job.run()
        if outcome.failure is None:
            output.succeed()
            succeeded = True
        else:
            logs = root / "logs"
        return outcome
    finally:
        if not succeeded:
            output.remove()
        for path in [path for path in root.iterdir() if path != logs]:
            if path.is_dir():
                removed(path)
            else:
                path.unlink()
        if logs is None:
            root.rmdir()


class _Output:
    """The job's output directory: this process is the one arbiter of what gets into it."""

    def __init__(self, spec: JobSpec) -> None:
        self._url = files.absolute(spec.output, spec.conf, "output").rstrip("/")
        self._fs, self._path = files.resolve(self._url, spec.conf, "output")
        self._codec = output_codec(spec.conf)
        if files.entry(self._fs, self._path) is not None:
            raise AlreadyExists(f"output {self._url} exists already", output=self._url)
        self._made = False

    def make(self) -> None:
        self._fs.makedirs(self._path, exist_ok=True)
        self._made = True

    def of(self, attempt: AttemptName) -> str:
        return f"{self._url}/_temporary/{attempt}/{part_name(attempt.task, self._codec)}"

    def commit(self, attempt: AttemptName) -> None:
        """The attempt's part becomes that of its task."""
        part = part_name(attempt.task, self._codec)
        files.move(self._fs, f"{self._path}/_temporary/{attempt}/{part}", f"{self._path}/{part}")

    def succeed(self) -> None:
        with suppress(FileNotFoundError):
            self._fs.rm(f"{self._path}/_temporary", recursive=True)
        with self._fs.open(f"{self._path}/_SUCCESS", "wb"):
            pass

    def remove(self) -> None:
        """What was made of it."""
        if self._made:
            with suppress(FileNotFoundError):
                self._fs.rm(self._path, recursive=True)


@dataclass(slots=True)
class _Task:
    """failed, attempts_done: how many of its attempts did, or had output.  done: the one whose
    output counts."""

    kind: Kind
    number: int
    split: Split | None = None
    attempts: int = 0
    failed: int = 0
    attempts_done: int = 0
    done: str = ""


@dataclass(slots=True)
class _Phase:
    started_s: float = 0.0
    ended_s: float = 0.0

    @property
    def seconds(self) -> float:
        return max(0.0, self.ended_s - self.started_s)


@dataclass(slots=True)
class _Run:
    task: _Task
    started_s: float


@dataclass(frozen=True, slots=True)
class _MapOutput:
    map: int
    attempt: str
    done: MapDone


class _LocalJob:
    def __init__(
        self,
        spec: JobSpec,
        planned: Sequence[Split],
        output: _Output,
        root: Path,
        parallel: int,
        on_event: Callable[[LocalEvent], None] | None,
    ) -> None:
        self._spec = spec
        self._output = output
        self._root = root
        self._parallel = parallel
        self._tell = on_event or (lambda _event: None)
        self._maps = [_Task("map", number, split) for number, split in enumerate(planned)]
        self._reduces = [_Task("reduce", number) for number in range(spec.reduces)]
        self._waiting = deque(self._maps or self._reduces)
        self._runs: dict[str, _Run] = {}
        self._outputs: list[_MapOutput] = []
        self._phases: dict[Kind, _Phase] = {"map": _Phase(), "reduce": _Phase()}
        self._tally = Tally()
        self._given_up = 0
        self._failure: tuple[str, Failure] | None = None
        self._job_url = str(root / "staging" / "job.json")

    def run(self) -> LocalOutcome:
        staged = Path(self._job_url)
        staged.parent.mkdir()
        staged.write_bytes(records.encode(self._spec))
        self._tell(Planned(len(self._maps), len(self._reduces)))
        host = Host(Place(self._root))
        try:
            while self._waiting or self._runs:
                self._start(host)
                for event in host.poll(_POLL_S):
                    if isinstance(event, Reported):
                        self._tell(Moved(event.attempt, event.running))
                    elif isinstance(event, WantMaps):
                        self._answer(host, event)
                    elif isinstance(event, FetchFailed):
                        self._lost(event)
                    else:
                        self._ended(host, event)
        finally:
            host.close()
        return self._outcome()

    def _start(self, host: Host) -> None:
        while self._waiting:
            # A map whose output was lost is started beside the reduces that wait for it.
            again = self._waiting[0].kind == "map" and self._waiting[0].attempts_done
            if len(self._runs) >= self._parallel and not again:
                return
            task = self._waiting.popleft()
            name = AttemptName(self._spec.job_id, task.kind, task.number, task.attempts)
            task.attempts += 1
            now = time.monotonic()
            phase = self._phases[task.kind]
            phase.started_s = phase.started_s or now
            self._runs[str(name)] = _Run(task, now)
            self._tell(Started(str(name)))
            host.start(self._work(name, task))

    def _work(self, name: AttemptName, task: _Task) -> Work:
        of_map = task.kind == "map"
        memory = properties.MAP_MEMORY_MB if of_map else properties.REDUCE_MEMORY_MB
        has_part = not of_map or self._spec.reduces == 0
        return Work(
            attempt=str(name),
            job_url=self._job_url,
            split=task.split,
            maps=len(self._maps),
            out=self._output.of(name) if has_part else "",
            mem_mb=memory.of(self._spec.conf),
        )

    def _answer(self, host: Host, want: WantMaps) -> None:
        run = self._runs.get(want.attempt)
        if run is None:
            return
        outputs = tuple(
            MapOutput(
                map=one.map,
                attempt=one.attempt,
                agent_id="",
                url=one.done.url,
                path=one.done.path,
                segment=one.done.segments[run.task.number],
            )
            for one in self._outputs[want.since : want.since + _ANSWER]
        )
        host.tell(want.attempt, Maps(want.attempt, want.since, outputs))

    def _lost(self, event: FetchFailed) -> None:
        """Somebody has removed files of ours: these maps are made again, as on a cluster."""
        for task in self._maps:
            if task.done in event.lost:
                task.done = ""
                self._waiting.appendleft(task)

    def _ended(self, host: Host, event: Finished) -> None:
        run = self._runs.pop(event.attempt)
        now = time.monotonic()
        self._phases[run.task.kind].ended_s = now
        self._tell(AttemptEnded(event.attempt, event.outcome, now - run.started_s))
        if isinstance(event.outcome, Failure):
            self._failed(host, event.attempt, run.task, event.outcome)
        elif event.outcome is not None and self._failure is None:
            self._finished(event.attempt, run.task, event.outcome)

    def _failed(self, host: Host, attempt: str, task: _Task, failure: Failure) -> None:
        task.failed += 1
        allowed = properties.MAP_ATTEMPTS if task.kind == "map" else properties.REDUCE_ATTEMPTS
        if self._failure is not None:
            return
        # There is no other machine that could have a missing program.
        final = failure.blame == "job" or failure.missing
        if not final and task.failed < allowed.of(self._spec.conf):
            self._waiting.appendleft(task)
            return
        percent = properties.MAX_MAP_FAILURES_PERCENT.of(self._spec.conf)
        given_up = self._given_up + 1
        if task.kind == "map" and given_up * 100 <= percent * len(self._maps):
            self._given_up = given_up
            nothing = (Segment(0, 0, 0, 0),) * self._spec.reduces
            self._done(attempt, task, MapDone(segments=nothing))
            return
        self._failure = (attempt, failure)
        self._waiting.clear()
        for other in self._runs:
            host.kill(other)

    def _finished(self, attempt: str, task: _Task, outcome: MapDone | ReduceDone) -> None:
        name = names.parse_attempt(attempt)
        assert name is not None
        first = not task.attempts_done
        if (isinstance(outcome, ReduceDone) or not self._spec.reduces) and outcome.part >= 0:
            self._output.commit(name)
        self._done(attempt, task, outcome)
        if first:
            for group, counters in outcome.counters.items():
                for counter, amount in counters.items():
                    self._tally.add(group, counter, amount)

    def _done(self, attempt: str, task: _Task, outcome: MapDone | ReduceDone) -> None:
        first = not task.attempts_done
        task.attempts_done += 1
        task.done = attempt
        if isinstance(outcome, MapDone) and self._spec.reduces:
            self._outputs.append(_MapOutput(task.number, attempt, outcome))
        if task.kind == "map" and first and all(one.attempts_done for one in self._maps):
            self._waiting.extend(self._reduces)

    def _outcome(self) -> LocalOutcome:
        attempt, failure = self._failure or ("", None)
        return LocalOutcome(
            counters=self._tally.all(),
            maps=len(self._maps),
            reduces=len(self._reduces),
            maps_given_up=self._given_up,
            map_s=self._phases["map"].seconds,
            reduce_s=self._phases["reduce"].seconds,
            attempt=attempt,
            failure=failure,
        )


__all__ = [
    "AttemptEnded",
    "LocalEvent",
    "LocalOutcome",
    "Moved",
    "Planned",
    "Started",
    "run_local",
]
