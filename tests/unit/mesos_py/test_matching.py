"""What fits on which offer."""

from mesos_py.matching import Room, match_offers, resources_of
from mesos_py.resources import Resources
from mesos_py.testing.builders import make_offer


def offer(name, text):
    return make_offer(name, name, resources=Resources.parse(text))


def placed(offers, waiting, need):
    result, left = match_offers(offers, waiting, need)
    return {offer.id.value: items for offer, items in result}, left


def test_items_are_spread_over_offers_in_turn():
    offers = [offer("a", "cpus:2"), offer("b", "cpus:2")]
    chosen, left = placed(offers, [1, 2, 3], lambda _: Resources.of(cpus=1))
    assert chosen == {"a": [1, 3], "b": [2]}
    assert left == []


def test_what_does_not_fit_stays_in_order_and_does_not_hold_up_the_rest():
    needs = {"big": Resources.of(cpus=4), "small": Resources.of(cpus=1)}
    offers = [offer("a", "cpus:1"), offer("b", "cpus:1")]
    waiting = ["big", "small", "big", "small", "small"]
    chosen, left = placed(offers, waiting, needs.__getitem__)
    assert chosen == {"a": ["small"], "b": ["small"]}
    assert left == ["big", "big", "small"]


def test_offer_for_which_there_is_nothing_is_named_too():
    chosen, _ = placed([offer("a", "cpus:1")], [], lambda _: Resources.of(cpus=1))
    assert chosen == {"a": []}
    assert placed([], [1], lambda _: Resources.of(cpus=1)) == ({}, [1])


def test_tenths_add_up_exactly():
    chosen, left = placed([offer("a", "cpus:1")], range(11), lambda _: Resources.of(cpus=0.1))
    assert len(chosen["a"]) == 10
    assert left == [10]


def test_room_shrinks_by_what_is_taken_and_only_then():
    room = Room(offer("a", "cpus:1;mem:64"))
    assert not room.take(Resources.of(cpus=2))
    assert room.left == resources_of(room.offer)
    assert room.take(Resources.of(cpus=1))
    assert room.left == Resources.of(mem=64)


def test_ports_are_taken_by_number_and_never_twice():
    room = Room(offer("a", "cpus:4;ports:[31000-31005]"))
    first = room.take_some(cpus=1, ports=4)
    second = room.take_some(cpus=1, ports=2)
    assert first is not None
    assert second is not None
    assert first.pick("ports", 4) == (31000, 31001, 31002, 31003)
    assert second.pick("ports", 2) == (31004, 31005)
    assert room.take_some(cpus=1, ports=1) is None
    assert room.left == Resources.of(cpus=2)


def test_amounts_that_are_not_there_take_no_ports():
    room = Room(offer("a", "cpus:1;ports:[1-9]"))
    assert room.take_some(cpus=2, ports=1) is None
    assert room.left == resources_of(room.offer)


def test_room_for_short_tasks_is_left_to_those_who_know_how_long_theirs_run():
    short = offer("short", "cpus:4")
    short.max_task_duration.nanoseconds = 10**9
    chosen, left = placed([short, offer("any", "cpus:1")], [1, 2], lambda _: Resources.of(cpus=1))
    assert chosen == {"short": [], "any": [1]}
    assert left == [2]
