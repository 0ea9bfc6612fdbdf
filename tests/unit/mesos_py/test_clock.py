"""Time as a value."""

from mesos_py.clock import ManualClock, Now, SystemClock


def test_the_system_clock_goes_forward():
    clock = SystemClock()
    first, second = clock.now(), clock.now()
    assert second.monotonic_s >= first.monotonic_s
    assert first.wall_s > 1_700_000_000


def test_a_manual_clock_stands_still_until_it_is_moved():
    clock = ManualClock(monotonic_s=10.0, wall_s=100.0)
    assert clock.now() == clock.now() == Now(10.0, 100.0)
    assert clock.advance(2.5) == Now(12.5, 102.5)
    assert clock.now() == Now(12.5, 102.5)
