"""A map: its split through the mapper, sorted and combined for reduces, or into a part file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from frameworks.mapreduce import conf as properties
from frameworks.mapreduce.data import files
from frameworks.mapreduce.data.linesplits import NLINE
from frameworks.mapreduce.data.mapout import MapOutput
from frameworks.mapreduce.job import JobSpec, Program, Split
from frameworks.mapreduce.work import MapDone
from frameworks.mapreduce.worker import streaming
from frameworks.mapreduce.worker.attempt import LOG, Attempt
from frameworks.mapreduce.worker.failures import AttemptFailed, doing
from frameworks.mapreduce.worker.feeder import Fed, Feeder
from frameworks.mapreduce.worker.reports import FILES
from frameworks.mapreduce.worker.unread import Unread

# How much of a map's progress is had when its program has read all: it may have much to do yet,
# and what it writes is to be sorted.
_MAPPING = 0.9


def run(attempt: Attempt) -> MapDone:
    """Raises AttemptFailed."""
    split = attempt.work.split
    if split is None:
        raise AttemptFailed("job", "the work of a map has no split")
    if attempt.spec.reduces == 0:
        return _into_part(attempt, split)
    return _for_reduces(attempt, split)


def _for_reduces(attempt: Attempt, split: Split) -> MapDone:
    place, spec = attempt.place, attempt.spec
    with doing("place", "sorting what the mapper writes"):
        out = MapOutput(
            place.out,
            spec,
            attempt.sort_bytes,
            place.spill,
            None if spec.combiner is None else lambda lines: _combined(attempt, lines),
        )
        with closing(out):
            for block in _mapped(attempt, split):
                out.add(block)
            attempt.progress.ahead = lambda: (_MAPPING, "sort")
            attempt.progress.say()
            # Not before: a worker that dies earlier leaves nothing that somebody has to remove.
            place.out.parent.mkdir(parents=True, exist_ok=True)
            segments = out.finish()
    attempt.tally.task("SPILLED_RECORDS", out.spilled_records)
    size = sum(segment.length for segment in segments)
    attempt.tally.task("MAP_OUTPUT_MATERIALIZED_BYTES", size)
    attempt.add_usage()
    return MapDone(
        url=place.place.url(place.out),
        path=str(place.out),
        segments=segments,
        counters=attempt.tally.all(),
    )


def _into_part(attempt: Attempt, split: Split) -> MapDone:
    size = attempt.into_part(_mapped(attempt, split))
    attempt.add_usage()
    return MapDone(part=size, counters=attempt.tally.all())


def _mapped(attempt: Attempt, split: Split) -> Iterator[bytes]:
    """What the mapper writes; when that is over, all has gone well."""
    spec, tally = attempt.spec, attempt.tally
    with doing("place", "starting to read the input"):
        feeder = Feeder(split, spec.conf, LOG, offsets=_has_offsets(spec))

    def take() -> bool:
        attempt.progress.moved()
        more = feeder.take()
        tally.put_task("MAP_INPUT_RECORDS", feeder.fed.lines)
        return more

    def count(lines: int, size: int) -> None:
        tally.task("MAP_OUTPUT_RECORDS", lines)
        tally.task("MAP_OUTPUT_BYTES", size)

    tally.task("MAP_OUTPUT_RECORDS", 0)
    try:
        unread = Unread(feeder.stdin, attempt.progress.moved)
        running = attempt.start(spec.mapper, "mapper", feeder.stdin)
        attempt.progress.ahead = lambda: (
            _MAPPING * _read(feeder.fed, unread.bytes_at(running.child.pid), split),
            "map",
        )
        written = attempt.run(running, also={feeder.fileno(): take})
        try:
            yield from streaming.counted(written, count)
        except AttemptFailed:
            # Input that cannot be read may be why the program has failed.
            feeder.finish()
            raise
        fed = feeder.finish()
    finally:
        feeder.close()
    tally.put_task("MAP_INPUT_RECORDS", fed.lines)
    scheme = files.scheme_of(split.pieces[0].url).upper() if split.pieces else "FILE"
    tally.add(FILES, f"{scheme}_BYTES_READ", fed.position)


def _read(fed: Fed, unread: int, split: Split) -> float:
    """The share of the split that the program has read, 0 to 1; of what it was fed, `unread`
    bytes are still on the way."""
    share = 1 - unread / max(fed.bytes, unread, 1)
    return min(share * fed.position / max(split.size, 1), 1.0)


def _has_offsets(spec: JobSpec) -> bool:
    """Hadoop gives programs the keys of all input formats but the one for text."""
    return spec.input_format == NLINE and not properties.IGNORE_KEY.of(spec.conf)


def _combined(attempt: Attempt, blocks: Iterator[bytes]) -> Iterator[bytes]:
    program = attempt.spec.combiner or Program()
    tally = attempt.tally
    read = streaming.counted(
        blocks, lambda lines, _size: tally.task("COMBINE_INPUT_RECORDS", lines)
    )
    written = attempt.run(attempt.start(program, "combiner"), read)
    yield from streaming.counted(
        written, lambda lines, _size: tally.task("COMBINE_OUTPUT_RECORDS", lines)
    )


__all__ = ["run"]
