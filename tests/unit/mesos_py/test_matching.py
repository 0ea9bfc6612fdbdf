"""What fits on which offer."""

import pytest

from mesos_py.errors import InvalidResources
from mesos_py.matching import Room, match_offers, resources_of
from mesos_py.resources import Resources
from mesos_py.testing.builders import make_offer
from mesos_py.volumes import volume_at
from tests.kit.reserving import amount, by, volume

ADS = by("ads", "alice")


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


# ---- What is reserved, and volumes -------------------------------------------


def offer_of(name, resources):
    return make_offer(name, name, resources=resources)


def test_a_need_may_name_a_volume_and_says_anew_where_it_is_to_be():
    made = volume(ADS, 64, path="data")
    need = volume_at(made, "elsewhere", read_only=True) + Resources.of(cpus=1)
    offers = [offer("a", "cpus:4"), offer_of("b", made + Resources.of(cpus=1))]
    chosen, left = placed(offers, ["x", "y"], lambda _: need)
    assert (chosen, left) == ({"a": [], "b": ["x"]}, ["y"])
    room = Room(offers[1])
    assert room.take(need)
    assert not room.left


def test_a_volume_of_another_size_is_not_the_one_that_is_wanted():
    room = Room(offer_of("a", volume(ADS, 64)))
    assert not room.take(volume(ADS, 63))
    assert not room.take(volume(ADS, 64, "v2"))
    assert room.take(volume(ADS, 64))


def test_any_amounts_are_taken_reserved_ones_first_and_volumes_never():
    narrow = (*by("ads"), *by("ads/x"))
    there = (
        Resources.of(cpus=4, mem=64, disk=3, ports=[(1, 9)])
        + amount(ADS, cpus=1, ports=(20, 21))
        + amount(narrow, cpus=0.5)
        + volume(ADS, 64)
    )
    room = Room(offer_of("a", there))
    first = room.take_any(Resources.of(cpus=1, ports=[(9, 9), (20, 20)]))
    assert first == (
        amount(narrow, cpus=0.5)
        + amount(ADS, cpus=0.5, ports=(20, 20))
        + Resources.of(ports=[(9, 9)])
    )
    second = room.take_any(Resources.of(cpus=2))
    assert second == amount(ADS, cpus=0.5) + Resources.of(cpus=1.5)
    left = room.left
    for more in (Resources.of(disk=4), Resources.of(cpus=3), Resources.of(ports=[(20, 20)])):
        assert room.take_any(more) is None
    assert room.left is left
    assert left + first + second == there


def test_items_of_sets_are_taken_where_they_are():
    there = Resources.parse_reserved("names:{a,b};names(ads):{c,d}")
    room = Room(offer_of("a", there))
    assert room.take_any(Resources.parse("names:{b,c}")) == Resources.parse_reserved(
        "names:{b};names(ads):{c}"
    )
    assert room.take_any(Resources.parse("names:{b}")) is None


def test_what_is_reserved_has_no_plain_name():
    with pytest.raises(InvalidResources, match=r"wanted\.cpus.*cannot be named here"):
        Room(offer("a", "cpus:1")).take_any(amount(ADS, cpus=1))


def test_nothing_is_taken_of_any_amounts_if_nothing_is_wanted():
    assert Room(offer("a", "cpus:1")).take_any(Resources()) == Resources()


def test_reserved_amounts_meet_needs_if_that_is_said():
    half = Resources.of(cpus=1, mem=1) + amount(ADS, cpus=1, mem=64)
    need = Resources.of(cpus=1, mem=32)
    offers = [offer_of("a", half), offer("b", "cpus:1;mem:32")]
    assert placed(offers, [1, 2, 3], lambda _: need) == ({"a": [], "b": [1]}, [2, 3])
    result, left = match_offers(offers, [1, 2, 3, 4], lambda _: need, reserved=True)
    assert [items for _, items in result] == [[1, 3], [2]]
    assert left == [4]
    # The names are found in the same way.
    room = Room(offers[0])
    taken = [room.take_any(need) for _ in result[0][1]]
    assert taken == [
        amount(ADS, cpus=1, mem=32),
        amount(ADS, mem=32) + Resources.of(cpus=1),
    ]
