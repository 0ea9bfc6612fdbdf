"""Whatever the load does: never outside the limits, no step that is too long, and settled."""

import math

from hypothesis import given
from hypothesis import strategies as st

from frameworks.webfarm.core.policy import Limits, Policy

PERIOD_S = 5.0
samples = st.one_of(
    st.none(), st.floats(), st.floats(0, 5000), st.sampled_from([0.0, 99.9, 100.0, 100.1, 1000.0])
)


@st.composite
def limits(draw):
    minimum = draw(st.integers(1, 10))
    return Limits(
        minimum=minimum,
        maximum=draw(st.integers(minimum, 50)),
        target=draw(st.floats(0.5, 1000)),
        margin=draw(st.floats(0.1, 0.99)),
        calm_s=draw(st.sampled_from([0.0, 5.0, 60.0])),
        cool_down_s=draw(st.sampled_from([0.0, 5.0, 60.0])),
        step_up=draw(st.integers(1, 10)),
        step_down=draw(st.integers(1, 3)),
    )


@given(limits(), st.integers(-5, 100), st.lists(samples, max_size=200))
def test_never_outside_the_limits_and_never_a_step_too_long(of, servers, loads):
    policy = Policy(of, servers)
    before = policy.servers
    assert of.minimum <= before <= of.maximum
    for turn, load in enumerate(loads):
        after = policy.decide(turn * PERIOD_S, load).servers
        assert of.minimum <= after <= of.maximum
        assert before - of.step_down <= after <= before + max(of.step_up, before)
        if load is None or not math.isfinite(load):
            assert after == before
        before = after


@given(limits(), st.integers(1, 50), st.floats(0, 5000))
def test_a_steady_load_settles_where_no_server_gets_too_much(of, servers, load):
    policy = Policy(of, servers)
    rounds = int(50 * (of.cool_down_s + of.calm_s + 3 * PERIOD_S) / PERIOD_S)
    for turn in range(rounds):
        policy.decide(turn * PERIOD_S, load)
    settled = policy.servers
    assert load / settled <= of.target * (1 + 1e-6) or settled == of.maximum
    # And with no more than the margin asks for.
    if settled > max(of.minimum, servers):
        assert load / (settled - 1) > of.target * of.margin * (1 - 1e-6)
    assert policy.decide(rounds * PERIOD_S, load).servers == settled
