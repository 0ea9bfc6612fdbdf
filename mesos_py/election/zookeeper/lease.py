"""How long nobody else can have been elected: arithmetic on send moments.

ZooKeeper removes a candidate when its session has expired, and a session expires no
sooner than its time-out after the server that leads the ensemble last heard of it.  The
client does not see that moment, but it knows when it sent what the server has heard.

A *probe* is a request that is answered only after a majority of the servers has agreed
on it, in the session.  Its answer shows that the leading server held the session for
alive after the probe was sent.  It does not show that the probe itself prolonged the
session: a server that merely follows passes on who is alive with its answer to the next
ping of the leading one, every half tick.  What was sent half a tick *before* an answered
probe, though, has been passed on by then.  A time-out is at least two ticks, so half a
tick is a quarter of it at most.  Hence: an answered probe vouches for the newest of the
earlier answered ones that is at least a quarter of the time-out older.

Session starts and reconnections are told to the leading server at once: each vouches for
itself.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Final

# How much of the time-out is left unused, for clocks that run at different speeds.
MARGIN: Final = 0.1
_PASSED_ON_WITHIN: Final = 0.25
# Two of them are a little more than what it takes for the first to be passed on.
_PROBES_EVERY: Final = 0.13


class Lease:
    """For one session.  All moments are those of one monotonic clock, in seconds."""

    def __init__(self, timeout_s: float) -> None:
        if not 0 < timeout_s < math.inf:
            raise ValueError(f"need a time-out, not {timeout_s}")
        self.timeout_s = timeout_s
        self.probe_interval_s = timeout_s * _PROBES_EVERY
        # Nobody else has been elected before this moment.
        self.certain_until_s = -math.inf
        # Whoever has no answer until this moment takes the session for expired.
        self.lost_at_s = -math.inf
        self._answered: deque[float] = deque()

    def connected(self, sent_s: float) -> None:
        """The session was opened or taken up again; the greeting was sent at `sent_s`."""
        self._vouched(sent_s)
        self.lost_at_s = max(self.lost_at_s, sent_s + self.timeout_s)

    def answered(self, sent_s: float) -> None:
        """A probe sent at `sent_s`, later than any before, has its answer."""
        newest_passed_on_s = sent_s - self.timeout_s * _PASSED_ON_WITHIN
        while self._answered and self._answered[0] <= newest_passed_on_s:
            self._vouched(self._answered.popleft())
        self._answered.append(sent_s)
        self.lost_at_s = max(self.lost_at_s, sent_s + self.timeout_s)

    def _vouched(self, sent_s: float) -> None:
        self.certain_until_s = max(self.certain_until_s, sent_s + self.timeout_s * (1 - MARGIN))
