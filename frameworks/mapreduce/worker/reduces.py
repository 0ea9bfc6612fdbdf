"""A reduce: its partition of all maps' outputs, merged, through the reducer into a part file."""

from __future__ import annotations

import itertools
import selectors
import threading
from collections.abc import Iterator
from contextlib import closing

from frameworks.mapreduce import conf as properties
from frameworks.mapreduce.data.keys import Keys, separator
from frameworks.mapreduce.data.segments import codec_of
from frameworks.mapreduce.data.shuffle import Shuffle
from frameworks.mapreduce.job import Program
from frameworks.mapreduce.messages import FetchFailed, WantMaps
from frameworks.mapreduce.work import ReduceDone
from frameworks.mapreduce.worker import streaming
from frameworks.mapreduce.worker.attempt import Attempt
from frameworks.mapreduce.worker.failures import AttemptFailed, doing
from frameworks.mapreduce.worker.programs import Running
from frameworks.mapreduce.worker.unread import Unread

_EVERY_S = 1.0
# What of a reduce's progress it has with the maps' outputs, and when its program has read all:
# it may have much to do yet.
_COPYING = 0.5
_REDUCING = 0.95


def run(attempt: Attempt) -> ReduceDone:
    """Raises AttemptFailed."""
    program = attempt.spec.reducer
    if program is None:
        raise AttemptFailed("job", "the job has reduces and no reducer")
    # A function is forked while this process has one thread; a command is better started when
    # there is something for it to do.
    early = attempt.start(program, "reducer") if program.function else None
    try:
        return _reduced(attempt, program, early)
    finally:
        if early is not None:
            early.close()


def _reduced(attempt: Attempt, program: Program, early: Running | None) -> ReduceDone:
    spec, tally = attempt.spec, attempt.tally
    keys = Keys.of(spec.conf)
    into = separator(properties.REDUCE_INPUT_SEPARATOR, spec.conf)
    shuffle = _shuffle(attempt, keys)
    attempt.progress.ahead = lambda: (_COPYING * shuffle.progress, "copy")
    merged = shuffle.run()
    with _Listener(attempt, shuffle) as listener, closing(merged):
        with doing("fetch", "having the outputs of the maps"):
            first = next(merged, b"")
        listener.copied = True
        tally.task("SHUFFLED_MAPS", attempt.work.maps)
        tally.task("REDUCE_SHUFFLE_BYTES", shuffle.fetched_bytes + shuffle.local_bytes)
        running = early or attempt.start(program, "reducer")
        blocks = _counted(attempt, running, itertools.chain((first,), merged), listener.raw_bytes)
        size = _into_part(attempt, running, streaming.rejoined(blocks, keys, into))
    if program.function:
        tally.task("REDUCE_INPUT_GROUPS", running.groups)
    tally.task("SPILLED_RECORDS", shuffle.spilled_records)
    attempt.add_usage()
    return ReduceDone(part=size, counters=tally.all())


def _shuffle(attempt: Attempt, keys: Keys) -> Shuffle:
    name, spec = str(attempt.place.name), attempt.spec
    return Shuffle(
        keys,
        attempt.sort_bytes,
        attempt.place.spill,
        properties.PARALLEL_COPIES.of(spec.conf),
        attempt.work.maps,
        lambda since: attempt.channel.send(WantMaps(name, since)),
        lost=lambda attempts, why: attempt.channel.send(FetchFailed(name, attempts, why)),
        codec=codec_of(spec),
        timeout_s=properties.SHUFFLE_TIMEOUT_MS.of(spec.conf) / 1000,
    )


def _counted(
    attempt: Attempt, running: Running, blocks: Iterator[bytes], all_bytes: int
) -> Iterator[bytes]:
    seen = 0
    unread = Unread(running.stdin, attempt.progress.moved)

    def count(lines: int, size: int) -> None:
        nonlocal seen
        seen += size
        attempt.tally.task("REDUCE_INPUT_RECORDS", lines)

    def ahead() -> tuple[float, str]:
        read = max(0, seen - unread.bytes_at(running.child.pid)) / max(all_bytes, 1)
        return _COPYING + (_REDUCING - _COPYING) * min(read, 1.0), "reduce"

    attempt.progress.ahead = ahead
    return streaming.counted(blocks, count)


def _into_part(attempt: Attempt, running: Running, blocks: Iterator[bytes]) -> int:
    tally = attempt.tally
    tally.task("REDUCE_OUTPUT_RECORDS", 0)
    return attempt.into_part(
        streaming.counted(
            attempt.run(running, blocks),
            lambda lines, _size: tally.task("REDUCE_OUTPUT_RECORDS", lines),
        )
    )


class _Listener:
    """A thread that takes what the tracker answers, and says how far copying is: the attempt's own
    thread waits in the shuffle meanwhile."""

    def __init__(self, attempt: Attempt, shuffle: Shuffle) -> None:
        self.copied = False
        self._sizes: dict[int, int] = {}
        self._attempt = attempt
        self._shuffle = shuffle
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)

    @property
    def raw_bytes(self) -> int:
        """Of all maps' outputs that were told of, unpacked."""
        return sum(self._sizes.values())

    def __enter__(self) -> _Listener:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()

    def _listen(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._attempt.channel, selectors.EVENT_READ)
            while not self._stop.is_set():
                if selector.select(_EVERY_S):
                    answers = self._attempt.channel.receive()
                    if answers is None:
                        # The worker is gone, and kills all that it has started.
                        return
                    for maps in answers:
                        self._sizes |= {one.map: one.segment.raw for one in maps.outputs}
                        self._shuffle.offer(maps)
                if not self.copied:
                    self._attempt.progress.say_at_times()


__all__ = ["run"]
