"""Attempts of one place: starting them, hearing of them, ending them; with or without a cluster."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import Final

import msgspec

from frameworks.mapreduce import records
from frameworks.mapreduce.messages import FetchFailed, Maps, Running, WantMaps
from frameworks.mapreduce.work import Failure, MapDone, ReduceDone, Work
from frameworks.mapreduce.worker import failures
from frameworks.mapreduce.worker.channel import Channel, Ended, FromAttempt, Said, for_worker
from frameworks.mapreduce.worker.place import AttemptPlace, Place
from frameworks.mapreduce.worker.zygote import Gone, Zygote
from frameworks.runtime import exits
from mesos_py import logs
from mesos_py.errors import Unavailable

log = logs.get("mapreduce.worker")

# An attempt that does not take what it is told for so long hangs.
_TELL_S: Final = 10.0
# Attempts speak every second, but while they finish a file: nothing that works takes so long.
SILENT_S: Final = 3600.0

Outcome = MapDone | ReduceDone | Failure


@dataclass(frozen=True, slots=True)
class Reported:
    attempt: str
    running: Running


@dataclass(frozen=True, slots=True)
class Finished:
    """The last of an attempt: nothing of it runs any more.  outcome: None if it was killed by
    `Host.kill`."""

    attempt: str
    outcome: Outcome | None


Event = Reported | WantMaps | FetchFailed | Finished


@dataclass(slots=True)
class _Live:
    place: AttemptPlace
    channel: Channel[FromAttempt]
    ended: Ended | None = None
    killed: bool = False
    heard_s: float = 0.0
    # Why it is ended, as its own failure.
    hangs: str = ""


class Host:
    """Runs attempts, any number at once.

    `poll` is called by one thread; so are all others but `wake`, which makes a `poll` that
    waits return.
    """

    def __init__(self, place: Place, *, silent_s: float = SILENT_S) -> None:
        """The place's directory is there.  silent_s: an attempt that says nothing for so long
        hangs, and is ended.  Raises OSError."""
        self._silent_s = silent_s
        self.place = place
        self._zygote = Zygote()
        self._dead = False
        self._live: dict[str, _Live] = {}
        self._events: deque[Event] = deque()
        self._selector = selectors.DefaultSelector()
        self._waking, self._wake = socket.socketpair()
        self._waking.setblocking(False)
        self._wake.setblocking(False)
        self._closed = threading.Event()
        self._selector.register(self._zygote, selectors.EVENT_READ, "zygote")
        self._selector.register(self._waking, selectors.EVENT_READ, "wake")

    @property
    def running(self) -> set[str]:
        return set(self._live)

    def start(self, work: Work) -> None:
        """Finished tells how it went, also if it could not be started.  Raises InvalidValue for
        what is no attempt's name, Unavailable when the zygote is gone."""
        place = self.place.attempt(work.attempt)
        if work.attempt in self._live:
            log.warning("attempt runs already", attempt=work.attempt)
            return
        try:
            place.make(records.encode(work))
        except OSError as error:
            failed = failures.of(error, "place", "making the attempt's directory")
            self._events.append(Finished(work.attempt, _failure(failed, place, work)))
            return
        try:
            link = self._zygote.start(self.place.root, self.place.files_url, work.attempt)
        except OSError as error:
            raise self._gone() from error
        link.settimeout(_TELL_S)
        channel = for_worker(link)
        self._live[work.attempt] = _Live(place, channel, heard_s=time.monotonic())
        self._selector.register(channel, selectors.EVENT_READ, work.attempt)

    def kill(self, attempt: str) -> None:
        """At once and with all that it has started.  Finished follows; nothing happens if the
        attempt has ended.  Raises Unavailable."""
        live = self._live.get(attempt)
        if live is None:
            return
        live.killed = True
        try:
            self._zygote.kill(attempt)
        except OSError as error:
            raise self._gone() from error

    def tell(self, attempt: str, maps: Maps) -> None:
        """Best effort, as messages are: it asks again."""
        live = self._live.get(attempt)
        if live is None:
            return
        try:
            live.channel.send(maps)
        except TimeoutError:
            self._end_hanging(attempt, live, f"has taken no message for {_TELL_S:g} s")
        except OSError:
            # It is about to end.
            pass

    def poll(self, timeout_s: float | None) -> list[Event]:
        """What has happened; waits for it, at most so long, if nothing has.  Raises Unavailable
        when the zygote is gone, and with it all attempts; what had happened before is told
        first."""
        if self._dead:
            raise self._gone()
        wait = 0.0 if self._events else timeout_s
        for key, _ in self._selector.select(wait):
            if key.data == "wake":
                with contextlib.suppress(BlockingIOError):
                    self._waking.recv(1 << 12)
            elif key.data == "zygote":
                gone = self._zygote.gone()
                if gone is None:
                    self._dead = True
                else:
                    self._has_gone(gone)
            elif key.data in self._live:
                self._hear(key.data, self._live[key.data])
        self._look_for_silent()
        if self._dead and not self._events:
            raise self._gone()
        events = list(self._events)
        self._events.clear()
        return events

    def wake(self) -> None:
        """From any thread, also after `close`."""
        with contextlib.suppress(OSError):
            self._wake.send(b"w")

    def forget(self, job_id: str) -> None:
        """Remove the job's files.  Its attempts have ended."""
        try:
            self.place.forget(job_id)
        except OSError as error:
            log.warning("job's files not removed", job=job_id, error=str(error))

    def close(self) -> None:
        """All attempts are killed and their directories removed."""
        self._zygote.close()
        for live in self._live.values():
            live.channel.close()
            _clear(live.place, keep_output=False)
        self._live.clear()
        self._selector.close()
        self._waking.close()
        self._wake.close()

    def _gone(self) -> Unavailable:
        """With it, its attempts are: it is their parent, with whom they die."""
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(self._zygote)
        code = self._zygote.ended_how()
        return Unavailable(
            f"the process that starts attempts (zygote) {exits.exit_worded(code)}"
            f"{exits.memory_hint(code)}"
        )

    def _look_for_silent(self) -> None:
        now = time.monotonic()
        for attempt, live in self._live.items():
            if now - live.heard_s > self._silent_s and not live.hangs and not live.killed:
                self._end_hanging(attempt, live, f"has said nothing for {self._silent_s:g} s")

    def _end_hanging(self, attempt: str, live: _Live, why: str) -> None:
        log.warning("attempt hangs", attempt=attempt, why=why)
        live.hangs = why
        with contextlib.suppress(OSError):
            self._zygote.kill(attempt)

    # ---- What comes --------------------------------------------------------------------------

    def _hear(self, attempt: str, live: _Live) -> bool:
        """False when it has nothing more to say."""
        try:
            said = live.channel.receive()
        except (msgspec.MsgspecError, TimeoutError) as error:
            log.error("attempt is not understood", attempt=attempt, error=str(error))
            said = None
        if said is None:
            with contextlib.suppress(KeyError):
                self._selector.unregister(live.channel)
            return False
        live.heard_s = time.monotonic()
        for record in said:
            if isinstance(record, Ended):
                live.ended = record
            elif isinstance(record, Said):
                self._events.append(Reported(attempt, record.running))
            else:
                self._events.append(record)
        return True

    def _has_gone(self, gone: Gone) -> None:
        live = self._live.get(gone.attempt)
        if live is None:
            return
        while self._hear(gone.attempt, live):
            # All that it has said before it ended is there.
            pass
        del self._live[gone.attempt]
        live.channel.close()
        outcome: Outcome | None
        if live.ended is not None:
            outcome = live.ended.outcome
        elif live.killed:
            outcome = None
        else:
            outcome = _failure(_without_word(gone, live.hangs), live.place, None)
        _clear(live.place, keep_output=isinstance(outcome, MapDone))
        self._events.append(Finished(gone.attempt, outcome))


def _without_word(gone: Gone, hangs: str) -> failures.AttemptFailed:
    if hangs:
        return failures.AttemptFailed("place", f"the attempt's process {hangs}, and was ended")
    how = exits.exit_worded(gone.code)
    hint = exits.memory_hint(gone.code)
    return failures.AttemptFailed("place", f"the attempt's process {how}{hint}")


def _failure(failed: failures.AttemptFailed, place: AttemptPlace, work: Work | None) -> Failure:
    return failures.finished(
        failed,
        where=failures.split_worded(work.split if work is not None else None),
        log=place.place.url(place.log),
        counters={},
    )


def _clear(place: AttemptPlace, *, keep_output: bool) -> None:
    try:
        place.clear(keep_output=keep_output)
    except OSError as error:
        log.warning("attempt's files not removed", attempt=str(place.name), error=str(error))


__all__ = ["Event", "Finished", "Host", "Outcome", "Reported"]
