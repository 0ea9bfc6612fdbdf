"""What a reduce knows of map outputs, and when it tries which."""

import random

import pytest

from frameworks.mapreduce.data.outputs import MAX_RETRY_S, TRIES, Outputs
from frameworks.mapreduce.messages import MapOutput, Maps
from frameworks.mapreduce.work import Segment
from frameworks.runtime.fetching import Blame
from mesos_py.errors import InvalidValue


def output(number: int, attempt: int = 0, host: str = "a", length: int = 5) -> MapOutput:
    return MapOutput(
        map=number,
        attempt=f"m{number}_{attempt}",
        agent_id=host,
        url=f"http://{host}:1/m{number}_{attempt}",
        path="",
        segment=Segment(0, length, length, 0),
    )


def maps(since: int, *outputs: MapOutput) -> Maps:
    return Maps("r", since, outputs)


def all_from(outputs: Outputs, now_s: float = 0.0) -> list[str]:
    found = []
    while taken := outputs.take(now_s):
        found.append(taken.attempt)
    return found


@pytest.fixture
def outputs():
    return Outputs(3, random.Random(1))


def test_each_is_taken_once(outputs):
    assert outputs.learn(maps(0, output(0), output(1)), 0.0)
    assert not outputs.learn(maps(0, output(0), output(1)), 0.0)
    assert (outputs.since, outputs.wanting) == (2, True)
    assert outputs.learn(maps(1, output(1), output(2)), 0.0)
    assert (outputs.since, outputs.wanting) == (3, False)
    assert sorted(all_from(outputs)) == ["m0_0", "m1_0", "m2_0"]
    for number in range(3):
        assert not outputs.complete
        outputs.done(output(number))
    assert outputs.complete


def test_a_gap_is_not_skipped(outputs):
    assert not outputs.learn(maps(1, output(1)), 0.0)
    assert outputs.since == 0


def test_an_unknown_map_is_refused(outputs):
    with pytest.raises(InvalidValue, match="3 maps"):
        outputs.learn(maps(0, output(0), output(3)), 0.0)
    assert outputs.since == 0


def test_an_empty_segment_needs_no_fetch(outputs):
    outputs.learn(maps(0, *(output(number, length=0) for number in range(3))), 0.0)
    assert outputs.complete
    assert outputs.take(0.0) is None


def test_a_later_entry_replaces_what_is_not_fetched_yet(outputs):
    outputs.learn(maps(0, output(0), output(0, attempt=1)), 0.0)
    assert all_from(outputs) == ["m0_1"]


def test_a_later_entry_is_fetched_when_the_earlier_one_fails(outputs):
    outputs.learn(maps(0, output(0)), 0.0)
    taken = outputs.take(0.0)
    outputs.learn(maps(1, output(0, attempt=1, host="b")), 0.0)
    assert outputs.take(0.0) is None
    assert outputs.failed(taken, Blame.GONE, 0.0) == ()
    assert all_from(outputs) == ["m0_1"]


def test_a_later_entry_is_nothing_when_the_earlier_one_is_fetched(outputs):
    outputs.learn(maps(0, output(0)), 0.0)
    taken = outputs.take(0.0)
    outputs.learn(maps(1, output(0, attempt=1)), 0.0)
    outputs.done(taken)
    outputs.learn(maps(2, output(0, attempt=2)), 0.0)
    assert outputs.take(1e9) is None
    assert outputs.done_count == 1


def test_an_empty_one_that_replaces_what_is_being_fetched_waits_for_its_end(outputs):
    outputs.learn(maps(0, output(0), output(1, length=0), output(2, length=0)), 0.0)
    taken = outputs.take(0.0)
    outputs.learn(maps(3, output(0, attempt=1, length=0)), 0.0)
    assert not outputs.complete
    outputs.failed(taken, Blame.GONE, 0.0)
    assert outputs.complete


def test_what_is_gone_is_reported_at_once_and_tried_again_later(outputs):
    outputs.learn(maps(0, *map(output, range(3))), 0.0)
    assert len(all_from(outputs)) == 3
    assert outputs.failed(output(0), Blame.GONE, 0.0) == ("m0_0",)
    assert outputs.wanting
    assert outputs.take(0.4) is None
    assert outputs.next_due_s() > 0.4
    assert outputs.take(1.5).attempt == "m0_0"
    outputs.done(output(0))
    assert not outputs.wanting


def test_what_is_damaged_is_reported_after_some_tries(outputs):
    outputs.learn(maps(0, output(0)), 0.0)
    now_s = 0.0
    for number in range(TRIES):
        taken = outputs.take(now_s)
        lost = outputs.failed(taken, Blame.OUTPUT, now_s)
        assert lost == (("m0_0",) if number == TRIES - 1 else ())
        now_s += MAX_RETRY_S


def test_pauses_grow_up_to_a_limit(outputs):
    outputs.learn(maps(0, output(0)), 0.0)
    now_s, pauses = 0.0, []
    for _ in range(12):
        outputs.failed(outputs.take(now_s), Blame.HOST, now_s)
        pauses.append(outputs.next_due_s() - now_s)
        now_s = outputs.next_due_s()
    for number, pause in enumerate(pauses):
        usual = min(2**number, MAX_RETRY_S)
        assert usual * 0.5 <= pause <= usual * 1.5
    assert len(set(pauses)) == len(pauses)


def test_all_of_a_host_that_fails_again_and_again_is_lost(outputs):
    outputs.learn(maps(0, output(0), output(1), output(2, host="b")), 0.0)
    now_s = 0.0
    assert len(all_from(outputs)) == 3
    outputs.done(output(2, host="b"))
    outputs.failed(output(0), Blame.HOST, now_s)
    # What breaks at the same time is the same failure of the host.
    assert outputs.failed(output(1), Blame.HOST, now_s) == ()
    for _ in range(TRIES - 2):
        now_s += MAX_RETRY_S * 2
        taken = outputs.take(now_s)
        assert outputs.take(now_s) is None, "a host that fails is tried by one fetch at a time"
        assert outputs.failed(taken, Blame.HOST, now_s) == ()
    now_s += MAX_RETRY_S * 2
    assert outputs.failed(outputs.take(now_s), Blame.HOST, now_s) == ("m0_0", "m1_0")


def test_a_host_that_answers_again_is_as_good_as_any(outputs):
    outputs.learn(maps(0, output(0), output(1)), 0.0)
    assert len(all_from(outputs)) == 2
    outputs.failed(output(0), Blame.HOST, 0.0)
    outputs.done(output(1))
    assert outputs.take(1.5).attempt == "m0_0"


def test_hosts_share_the_fetches():
    outputs = Outputs(20, random.Random(1))
    outputs.learn(maps(0, *(output(n, host="b" if n >= 18 else "a") for n in range(20))), 0.0)
    first = [outputs.take(0.0) for _ in range(4)]
    assert sorted(taken.agent_id for taken in first if taken) == ["a", "a", "b", "b"]


def test_the_order_is_drawn():
    orders = set()
    for seed in range(5):
        outputs = Outputs(20, random.Random(seed))
        outputs.learn(maps(0, *map(output, range(20))), 0.0)
        orders.add(tuple(all_from(outputs)))
    assert len(orders) == 5


def test_all_may_be_heard_again_in_another_order(outputs):
    outputs.learn(maps(0, output(0), output(1), output(1, attempt=1)), 0.0)
    outputs.again()
    assert outputs.since == 0
    assert outputs.learn(maps(0, output(2), output(1, attempt=1), output(0)), 0.0)
    assert sorted(all_from(outputs)) == ["m0_0", "m1_1", "m2_0"]
