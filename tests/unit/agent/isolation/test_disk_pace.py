"""How often a container's disk usage is looked at."""

from hypothesis import given
from hypothesis import strategies as st

from agent.isolation.disk.pace import HASTE, SPARE, next_look_s

MB = 1 << 20


def test_far_from_its_limit_it_is_looked_at_at_the_interval():
    assert next_look_s(15, 0.01, 10 * MB, 100 * MB) == 15


def test_without_a_limit_it_is_looked_at_at_the_interval():
    assert next_look_s(15, 0.01, 10 * MB, None, growth=1e12) == 15


def test_near_its_limit_it_is_looked_at_more_often():
    assert next_look_s(15, 0.01, 80 * MB, 100 * MB) == 15 / HASTE


def test_one_that_would_be_near_at_the_next_look_is_looked_at_more_often():
    assert next_look_s(15, 0.01, 10 * MB, 100 * MB, growth=5 * MB) == 15 / HASTE


def test_one_that_shrinks_is_judged_by_what_it_has():
    assert next_look_s(15, 0.01, 80 * MB, 100 * MB, growth=-100 * MB) == 15 / HASTE


def test_a_look_that_takes_long_comes_seldom_even_near_the_limit():
    assert next_look_s(15, 3, 99 * MB, 100 * MB) == 3 * SPARE


@given(
    st.floats(0.1, 1e4),
    st.floats(0, 1e4),
    st.integers(0, 2**60),
    st.none() | st.integers(0, 2**60),
    st.floats(-1e18, 1e18),
)
def test_looking_never_takes_more_than_its_share(interval_s, took_s, used, limit, growth):
    wait_s = next_look_s(interval_s, took_s, used, limit, growth)
    assert wait_s >= took_s * SPARE
    assert interval_s / HASTE <= wait_s <= max(interval_s, took_s * SPARE)
