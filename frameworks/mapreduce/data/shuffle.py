"""The shuffle: a reduce's parts of all map outputs, fetched and merged."""

from __future__ import annotations

import itertools
import threading
import time
import zlib
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from msgspec.structs import replace

from frameworks.mapreduce.data import runs
from frameworks.mapreduce.data.codecs import Codec
from frameworks.mapreduce.data.files import Unreadable
from frameworks.mapreduce.data.inplace import is_local, read_local
from frameworks.mapreduce.data.keys import Keys
from frameworks.mapreduce.data.outputs import RETRY_S, Outputs
from frameworks.mapreduce.data.segments import Damaged, checked, read_raw, unpacked
from frameworks.mapreduce.data.sorting import Sorter
from frameworks.mapreduce.messages import MapOutput, Maps
from frameworks.runtime.fetching import Blame, Fetcher, FetchError
from mesos_py import logs
from mesos_py.errors import Unavailable

log = logs.get("mapreduce.shuffle")

ASK_S: Final = 1.0
# Without news for so long everything is asked for once more, then after twice as long.
AGAIN_S: Final = 30.0
TIMEOUT_S: Final = 30.0
# Segments up to so many bytes are sorted again, all others are merged by GNU sort, which is much
# faster, from a file for each.
_SMALL: Final = 1 << 18
# How long `close` waits for a fetch that does not notice it.
_CLOSE_S: Final = 5.0


@dataclass(slots=True)
class _Started:
    """A segment that is fetched to disk, as far as it is there."""

    attempt: str
    path: Path
    size: int = 0
    crc: int = 0


class Shuffle:
    """Made for one reduce.  `run` is called once and does everything; `offer` brings what the
    tracker says, from any thread.

    keys, codec: of the job.  memory_bytes: in all; small segments are kept in memory, as many as
    it holds, all others go to `directory`, which is there.  maps: how many
    there are.  ask(since): asks the tracker for entries from `since` on; answers go to `offer`,
    now, later or never.  lost(attempts, why): tells it of outputs that could not be had after
    some tries; again and again as long as that is so.  Both are called by `run`.
    """

    def __init__(
        self,
        keys: Keys,
        memory_bytes: int,
        directory: Path,
        parallel: int,
        maps: int,
        ask: Callable[[int], None],
        *,
        lost: Callable[[tuple[str, ...], str], None],
        codec: Codec | None = None,
        dice: Random | None = None,
        clock: Callable[[], float] = time.monotonic,
        retry_s: float = RETRY_S,
        timeout_s: float = TIMEOUT_S,
        ask_s: float = ASK_S,
    ) -> None:
        # What is on its way shares a third of the memory, what has come has the rest.
        self._small = min(memory_bytes // (3 * parallel), _SMALL)
        self._sorter = Sorter(keys, memory_bytes - memory_bytes // 3, directory)
        self._directory = directory
        self._codec = codec
        self._parallel = min(parallel, maps)
        self._maps = maps
        self._ask = ask
        self._tell_lost = lost
        self._clock = clock
        self._ask_s = ask_s
        self._fetchers = [Fetcher(timeout_s) for _ in range(self._parallel)]
        self._threads: list[threading.Thread] = []
        self._names = itertools.count()
        self._started: dict[int, _Started] = {}
        self._sorting = threading.Lock()
        # Held by who ends the fetching: whoever comes second returns when all is ended, not before.
        self._closing = threading.RLock()
        # All below is guarded by this; told of each change.
        self._changed = threading.Condition()
        self._outputs = Outputs(maps, dice or Random(), retry_s)
        self._news = 0
        self._reports: list[tuple[tuple[str, ...], str]] = []
        self._error: BaseException | None = None
        self._stopped = False
        self.fetched_bytes = 0
        self.local_bytes = 0

    @property
    def progress(self) -> float:
        """The share of the maps whose output is here, 0 to 1."""
        return self._outputs.done_count / self._maps if self._maps else 1.0

    @property
    def spilled_records(self) -> int:
        return self._sorter.spilled_records

    def offer(self, maps: Maps) -> None:
        """Raises InvalidValue when it speaks of maps that there are not."""
        with self._changed:
            if self._outputs.learn(maps, self._clock()):
                self._news += 1
                self._changed.notify_all()

    def run(self) -> Generator[bytes, None, None]:
        """Fetch all; then the lines in order, as blocks.  To be closed when it is not read to
        its end.  Raises OSError (ENOSPC when the disk is full), Unavailable when another thread
        closes it meanwhile, and what `ask` and `lost` raise."""
        try:
            self._start()
            self._wait_for_all()
            self._stop()
            blocks = self._sorter.result()
            try:
                yield from blocks
            finally:
                blocks.close()
        finally:
            self.close()

    def close(self) -> None:
        """End what is under way and remove what is on disk; from any thread, more than once."""
        with self._closing:
            self._stop()
            # A copy: a thread that did not end in time may still be at its file.
            runs.remove([started.path for started in list(self._started.values())])
            self._started.clear()
            self._sorter.close()

    def _start(self) -> None:
        for number, fetcher in enumerate(self._fetchers):
            thread = threading.Thread(
                target=self._work, args=(fetcher,), name=f"fetch-{number}", daemon=True
            )
            self._threads.append(thread)
            thread.start()

    def _stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        with self._closing:
            for fetcher in self._fetchers:
                fetcher.close()
            for thread in self._threads:
                thread.join(_CLOSE_S)
            self._threads.clear()

    # ---- In the caller's thread ------------------------------------------------------------

    def _wait_for_all(self) -> None:
        pause_s, seen = AGAIN_S, 0
        ask_s = self._clock()
        again_s = ask_s + pause_s
        while True:
            with self._changed:
                now_s = self._clock()
                if self._error is not None:
                    raise self._error
                if self._stopped:
                    raise Unavailable("the shuffle was closed before all map outputs were here")
                reports, self._reports = self._reports, []
                complete = self._outputs.complete
                if self._news != seen:
                    seen = self._news
                    ask_s, again_s = now_s, now_s + pause_s
                elif now_s >= again_s:
                    self._outputs.again()
                    pause_s *= 2
                    again_s = now_s + pause_s
                since = self._outputs.since if self._outputs.wanting else None
                if not reports and not complete and now_s < ask_s:
                    self._changed.wait(ask_s - now_s)
                    continue
            for attempts, why in reports:
                self._tell_lost(attempts, why)
            if complete:
                return
            if now_s >= ask_s:
                ask_s = now_s + self._ask_s
                if since is not None:
                    self._ask(since)

    # ---- In the threads that fetch ---------------------------------------------------------

    def _work(self, fetcher: Fetcher) -> None:
        try:
            while output := self._next():
                self._try(fetcher, output)
        except BaseException as error:
            with self._changed:
                self._error = self._error or error
                self._changed.notify_all()
        finally:
            fetcher.end()

    def _next(self) -> MapOutput | None:
        with self._changed:
            while not self._stopped and not self._error:
                now_s = self._clock()
                if output := self._outputs.take(now_s):
                    return output
                due_s = self._outputs.next_due_s()
                self._changed.wait(None if due_s is None else max(due_s - now_s, 0.001))
        return None

    def _try(self, fetcher: Fetcher, output: MapOutput) -> None:
        try:
            self._fetch(fetcher, output)
        except (FetchError, Damaged, Unreadable) as error:
            blame = error.blame if isinstance(error, FetchError) else Blame.OUTPUT
            with self._changed:
                if self._stopped:
                    return
                lost = self._outputs.failed(output, blame, self._clock())
                if lost:
                    self._reports.append((lost, str(error)))
                self._changed.notify_all()
            log.warning("map output not fetched", attempt=output.attempt, error=error)
        else:
            with self._changed:
                self._outputs.done(output)
                self._changed.notify_all()

    def _fetch(self, fetcher: Fetcher, output: MapOutput) -> None:
        """Into the sorter.  Raises FetchError, Damaged, Unreadable; OSError is about our disk."""
        if is_local(output):
            try:
                self._take(output, lambda skip: read_local(output, skip))
            except (FetchError, Damaged, Unreadable) as error:
                log.warning("map output not read in its place", path=output.path, error=error)
                self._forget(output)
            else:
                self.local_bytes += output.segment.length
                return
        segment = output.segment
        self._take(
            output,
            lambda skip: fetcher.fetch(output.url, segment.offset + skip, segment.length - skip),
        )
        self.fetched_bytes += output.segment.length

    def _take(self, output: MapOutput, source: Callable[[int], Iterator[bytes]]) -> None:
        """source(skip): the bytes of the segment, but for the first `skip`."""
        segment = output.segment
        if segment.raw > self._small:
            run = self._unpacked(output, self._on_disk(output, source))
            with self._sorting:
                self._sorter.add_run(run)
            return
        chunks = checked(source(0), segment, output.url)
        block = b"".join(unpacked(chunks, segment, self._codec))
        with self._sorting:
            self._sorter.add_form(block)

    def _on_disk(self, output: MapOutput, source: Callable[[int], Iterator[bytes]]) -> Path:
        """The segment as a file.  What breaks off is gone on with the next time."""
        started = self._started.get(output.map)
        if started is None or started.attempt != output.attempt:
            self._forget(output)
            path = self._directory / f"fetched-{id(self):x}-{next(self._names)}"
            started = self._started[output.map] = _Started(output.attempt, path)
        with started.path.open("ab") as file:
            for chunk in source(started.size):
                file.write(chunk)
                started.size += len(chunk)
                started.crc = zlib.crc32(chunk, started.crc)
        segment = output.segment
        if (started.size, started.crc) != (segment.length, segment.crc):
            self._forget(output)
            raise Damaged(f"{output.url}: the checksum of its {started.size} bytes is wrong")
        return started.path

    def _forget(self, output: MapOutput) -> None:
        """What there is on disk of this map's output."""
        if started := self._started.pop(output.map, None):
            started.path.unlink(missing_ok=True)

    def _unpacked(self, output: MapOutput, path: Path) -> Path:
        """The file unpacked; it is gone then."""
        run = path.with_name(f"{path.name}.run")
        if self._codec is None:
            path.rename(run)
            self._forget(output)
            return run
        try:
            with run.open("wb") as file:
                packed = read_raw(path, replace(output.segment, offset=0))
                for block in unpacked(packed, output.segment, self._codec):
                    file.write(block)
        except BaseException:
            run.unlink()
            raise
        finally:
            self._forget(output)
        return run
