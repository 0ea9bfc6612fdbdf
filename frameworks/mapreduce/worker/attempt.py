"""One attempt of a task, in its own process: what maps and reduces have in common."""

from __future__ import annotations

import os
import resource
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

import msgspec

from frameworks.mapreduce import conf, records
from frameworks.mapreduce.data import files
from frameworks.mapreduce.data.parts import PartWriter, output_codec
from frameworks.mapreduce.job import JobSpec, Program
from frameworks.mapreduce.messages import Running as Report
from frameworks.mapreduce.work import Failure, Work
from frameworks.mapreduce.worker import environment, failures, jobfiles
from frameworks.mapreduce.worker.channel import Channel, Ended, Said, ToAttempt
from frameworks.mapreduce.worker.failures import AttemptFailed
from frameworks.mapreduce.worker.functions import Form, Role
from frameworks.mapreduce.worker.place import AttemptPlace
from frameworks.mapreduce.worker.programs import Launcher, Running
from frameworks.mapreduce.worker.pump import Pump, checked
from frameworks.mapreduce.worker.reports import FILES, Reports, Tally
from frameworks.runtime.processes import reap_orphans

_EVERY_S: Final = 1.0
# stderr of the attempt's own process is the log of the attempt.
LOG: Final = 2

Log = Callable[[bytes], object]


class Progress:
    """Says how far the attempt is, and ends it when nothing moves (mapreduce.task.timeout).

    ahead: gives progress (0 to 1) and phase; may be set anew for each phase.
    """

    def __init__(
        self, channel: Channel[ToAttempt], tally: Tally, reports: Reports, timeout_s: float
    ) -> None:
        self.ahead: Callable[[], tuple[float, str]] = lambda: (0.0, "")
        self._channel = channel
        self._tally = tally
        self._reports = reports
        self._timeout_s = timeout_s
        self._moved = True
        self._last_s = 0.0
        self._said_s = 0.0

    def moved(self) -> None:
        self._moved = True

    def tick(self) -> None:
        """Raises AttemptFailed for a time-out."""
        now = time.monotonic()
        if self._moved:
            self._moved = False
            self._last_s = now
        elif self._timeout_s and now - self._last_s > self._timeout_s:
            raise AttemptFailed(
                "program",
                f"has read, written and reported nothing for {self._timeout_s:g} s "
                "(mapreduce.task.timeout)",
                self._reports.tail,
            )
        self.say_at_times()

    def say_at_times(self) -> None:
        """About once a second, however often this is called; from one thread at a time."""
        now = time.monotonic()
        if now - self._said_s >= _EVERY_S:
            self._said_s = now
            reap_orphans()
            self.say()

    def say(self) -> None:
        progress, phase = self.ahead()
        self._channel.send(
            Said(Report(round(progress, 4), phase, self._reports.status, self._tally.all()))
        )


@dataclass
class Attempt:
    """What an attempt has at hand.  form, spec: as functions need them (`_for_functions`)."""

    place: AttemptPlace
    work: Work
    spec: JobSpec
    channel: Channel[ToAttempt]
    tally: Tally
    reports: Reports
    progress: Progress
    launcher: Launcher
    own_files: set[str] = field(default_factory=set)

    @staticmethod
    def set_up(
        place: AttemptPlace,
        work: Work,
        channel: Channel[ToAttempt],
        tally: Tally,
        reports: Reports,
    ) -> Attempt:
        """Raises AttemptFailed."""
        name = place.name
        spec = jobfiles.had(place.place, name.job_id, work.job_url, LOG)
        jobfiles.linked(place.place, spec, place.cwd)
        properties = environment.task_properties(
            spec, work, name, local_dir=str(place.place.job(name.job_id))
        )
        env = environment.of_program(
            os.environ, properties, spec.env, cwd=str(place.cwd), tmp=str(place.tmp)
        )
        progress = Progress(channel, tally, reports, conf.TIMEOUT_MS.of(spec.conf) / 1000)
        own_files = {one.name.rpartition("/")[2] for one in spec.shipped}
        return Attempt(
            place,
            work,
            _for_functions(spec),
            channel,
            tally,
            reports,
            progress,
            Launcher(place.cwd, env),
            own_files,
        )

    @property
    def form(self) -> Form:
        return Form.of(self.spec)

    @property
    def sort_bytes(self) -> int:
        """Memory for sorting: no more than half of the task's."""
        wanted = conf.SORT_MB.of(self.spec.conf)
        most = max(self.work.mem_mb // 2, 8) if self.work.mem_mb else wanted
        return min(wanted, most) << 20

    def run(
        self,
        running: Running,
        blocks: Iterator[bytes] | None = None,
        also: dict[int, Callable[[], bool]] | None = None,
    ) -> Iterator[bytes]:
        """What the program writes, in blocks of whole lines; afterwards it has ended well.
        Raises AttemptFailed if it has not."""
        pump = Pump(running, self.reports, self.progress, also)
        yield from pump.run(blocks)
        strict = conf.EXIT_IS_FAILURE.of(self.spec.conf)
        checked(pump, running.what, self.reports, self.own_files, strict)

    def start(self, program: Program, role: Role, stdin: int | None = None) -> Running:
        return self.launcher.start(program, role, self.form, stdin)

    def into_part(self, blocks: Iterator[bytes]) -> int:
        """Write the attempt's part file; its size, or -1 if there is none, since output is lazy
        and there was nothing.  Raises AttemptFailed."""
        url, conf_ = self.work.out, self.spec.conf
        with failures.doing("place", f"writing {url}"):
            first = next(filter(None, blocks), b"") if self.spec.lazy_output else b""
            if self.spec.lazy_output and not first:
                return -1
            with PartWriter(url, output_codec(conf_), conf=conf_) as part:
                part.write(first)
                for block in blocks:
                    part.write(block)
                size = part.commit()
        self.tally.add(FILES, f"{files.scheme_of(url).upper()}_BYTES_WRITTEN", size)
        return size

    def add_usage(self) -> None:
        """Time of processors, of this process and of its programs."""
        total = 0.0
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
            used = resource.getrusage(who)
            total += used.ru_utime + used.ru_stime
        self.tally.task("CPU_MILLISECONDS", int(total * 1000))


def _for_functions(spec: JobSpec) -> JobSpec:
    """Between functions, the key is the first field by tab, whatever is set for programs."""
    if not Form.of(spec).coded:
        return spec
    drop = {
        one.name for one in (conf.MAP_SEPARATOR, conf.MAP_KEY_FIELDS, conf.REDUCE_INPUT_SEPARATOR)
    }
    kept = {name: text for name, text in spec.conf.items() if name not in drop}
    return msgspec.structs.replace(spec, conf=kept)


def main(place: AttemptPlace, channel: Channel[ToAttempt]) -> None:
    """Do what `work.json` says; the last thing said is how it went.  Raises OSError when the
    worker is gone."""
    from frameworks.mapreduce.worker import maps, reduces

    tally = Tally()
    reports = Reports(tally, lambda data: os.write(LOG, data))
    work: Work | None = None
    try:
        work = records.decode(Work, place.work.read_bytes(), "work")
        attempt = Attempt.set_up(place, work, channel, tally, reports)
        if place.name.kind == "map":
            ended = Ended(map=maps.run(attempt))
        else:
            ended = Ended(reduce=reduces.run(attempt))
    except Exception as error:
        if not isinstance(error, AttemptFailed):
            _log_own(error)
        failed = failures.of(error, "place", "running the attempt")
        ended = Ended(failure=_failure(failed, place, work, tally))
    channel.send(ended)


def _failure(
    failed: AttemptFailed, place: AttemptPlace, work: Work | None, tally: Tally
) -> Failure:
    return failures.finished(
        failed,
        where=failures.split_worded(work.split if work is not None else None),
        log=place.place.url(place.log),
        counters=tally.all(),
    )


def _log_own(error: BaseException) -> None:
    os.write(LOG, "".join(traceback.format_exception(error)).encode("utf-8", "replace"))


__all__ = ["Attempt", "Progress", "main"]
