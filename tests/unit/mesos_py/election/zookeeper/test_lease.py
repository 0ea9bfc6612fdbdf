from __future__ import annotations

import math
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesos_py.election.zookeeper.lease import Lease


def test_before_anything_is_known_nothing_is_certain() -> None:
    lease = Lease(10.0)
    assert lease.certain_until_s == lease.lost_at_s == -math.inf


def test_a_connection_vouches_for_itself() -> None:
    lease = Lease(10.0)
    lease.connected(100.0)
    assert lease.certain_until_s == pytest.approx(109.0)
    assert lease.lost_at_s == 110.0


def test_a_probe_vouches_for_one_that_has_been_passed_on_by_then() -> None:
    lease = Lease(10.0)
    lease.connected(100.0)
    lease.answered(101.0)
    lease.answered(102.0)
    lease.answered(103.4)
    # 101.0 may not have been passed on yet when 103.4 was sent, within half a tick of it.
    assert lease.certain_until_s == pytest.approx(109.0)
    lease.answered(103.5)
    assert lease.certain_until_s == pytest.approx(110.0)
    lease.answered(110.0)
    assert lease.certain_until_s == pytest.approx(112.5)
    assert lease.lost_at_s == 120.0


def test_certainty_holds_between_probes_in_time() -> None:
    lease = Lease(10.0)
    lease.connected(0.0)
    now_s = 0.0
    for _ in range(100):
        now_s += lease.probe_interval_s
        assert lease.certain_until_s - now_s > 0.4 * lease.timeout_s
        lease.answered(now_s)


def test_nothing_takes_certainty_back() -> None:
    lease = Lease(10.0)
    lease.connected(100.0)
    lease.connected(90.0)
    assert lease.certain_until_s == pytest.approx(109.0)
    assert lease.lost_at_s == 110.0


@pytest.mark.parametrize("timeout_s", [0.0, -1.0, math.inf, math.nan])
def test_a_time_out_is_needed(timeout_s) -> None:
    with pytest.raises(ValueError, match="time-out"):
        Lease(timeout_s)


@dataclass
class Ensemble:
    """A server that leads and one that follows, which the client speaks to.

    The worst that there is: what the client sends prolongs its session only when the
    following server answers the next ping, half a tick later at most.
    """

    half_tick_s: float
    heard: list[float] = field(default_factory=list)
    # When the leading server last took the session for prolonged.
    prolonged_s: float = 0.0

    def pings_until(self, now_s: float) -> None:
        passed_on = [s for s in self.heard if s <= now_s - self.half_tick_s]
        self.heard = [s for s in self.heard if s > now_s - self.half_tick_s]
        # No later than it was heard: that is all that may be counted on.
        self.prolonged_s = max([self.prolonged_s, *passed_on])


@given(
    st.sampled_from([0.0, 0.1, 0.25]),
    st.lists(st.tuples(st.floats(0.001, 0.3), st.sampled_from([True, True, False])), max_size=60),
)
def test_no_certainty_outlasts_the_session(
    half_tick: float, probes: list[tuple[float, bool]]
) -> None:
    """After any probes, answered or not, the servers are cut off from one another."""
    timeout_s = 10.0
    ensemble = Ensemble(half_tick * timeout_s)
    lease = Lease(timeout_s)
    lease.connected(0.0)
    now_s = 0.0
    for gap, answered in probes:
        now_s += gap * timeout_s
        ensemble.heard.append(now_s)
        if answered:
            ensemble.pings_until(now_s)
            lease.answered(now_s)
        assert lease.certain_until_s <= ensemble.prolonged_s + timeout_s * 0.9 + 1e-9
