"""Exact arithmetic on resources: amounts, ranges and sets, the text and the wire form."""

import enum
import math
import random
from decimal import Decimal

import pytest

from mesos_py import resources
from mesos_py.amounts import MAX_RANGES, MAX_TEXT
from mesos_py.errors import InsufficientResources, InvalidResources
from mesos_py.resources import (
    EMPTY,
    MAX_SCALAR,
    Resources,
    checked_ranges,
    milli_text,
    to_milli,
    total,
)
from mesos_py.v1 import types_pb2 as pb


def scalar(name, value):
    return pb.Resource(name=name, type=pb.Value.SCALAR, scalar=pb.Value.Scalar(value=value))


def spans(name, *pairs):
    found = [pb.Value.Range(begin=begin, end=end) for begin, end in pairs]
    return pb.Resource(name=name, type=pb.Value.RANGES, ranges=pb.Value.Ranges(range=found))


def items(name, *texts):
    return pb.Resource(name=name, type=pb.Value.SET, set=pb.Value.Set(item=texts))


def of_wire(*messages):
    return Resources.from_proto("resources", messages)


# ---- Amounts ----------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "milli"),
    [
        (1, 1000),
        (0.1, 100),
        (0.66, 660),
        (4.1, 4100),
        (0.001, 1),
        (0.0005, 1),
        (0.0015, 2),
        (1.0005, 1001),
        (2.0015, 2002),
        (0.1 + 0.2, 300),
        (2.9999999999, 3000),
        (Decimal("0.0014999"), 1),
        (Decimal("1E-3"), 1),
        (MAX_SCALAR, MAX_SCALAR * 1000),
        (float(MAX_SCALAR), MAX_SCALAR * 1000),
        (999_999_999_999.999, 999_999_999_999_999),
    ],
)
def test_amounts_are_whole_thousandths_rounded_half_up(value, milli):
    assert to_milli("cpus", value) == milli


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (0, "above zero"),
        (0.0, "above zero"),
        (-0.0, "above zero"),
        (-1, "above zero"),
        (-1e-9, "above zero"),
        (Decimal("-5"), "above zero"),
        (0.0004999, "smallest amount"),
        (5e-324, "smallest amount"),
        (Decimal("1E-99999"), "smallest amount"),
        (math.nan, "finite"),
        (math.inf, "finite"),
        (-math.inf, "finite"),
        (Decimal("NaN"), "finite"),
        (Decimal("sNaN"), "finite"),
        (Decimal("Infinity"), "finite"),
        (1e300, "at most"),
        (10**400, "at most"),
        (MAX_SCALAR + 1, "at most"),
        (Decimal("1E+99999"), "at most"),
        ("1", "must be a number"),
        (None, "must be a number"),
        (True, "must be a number"),
        (1 + 0j, "must be a number"),
    ],
)
def test_what_is_no_amount_is_refused(value, why):
    with pytest.raises(InvalidResources, match=why) as caught:
        to_milli("cpus", value)
    assert caught.value.field == "cpus"


def test_numbers_of_other_packages_count_by_their_value():
    class Odd(float):
        def __repr__(self):
            return "np.float64(0.0005)"

    class Size(enum.IntEnum):
        BIG = 3

    assert to_milli("cpus", Odd(0.0005)) == 1
    assert to_milli("cpus", Size.BIG) == 3000


def test_gpus_are_whole():
    assert Resources.of(gpus=2) == Resources.parse("gpus:2")
    with pytest.raises(InvalidResources, match="whole number"):
        Resources.of(gpus=0.5)


@pytest.mark.parametrize(
    ("milli", "text"),
    [(0, "0"), (1000, "1"), (1500, "1.5"), (1, "0.001"), (1050, "1.05"), (-250, "-0.25")],
)
def test_thousandths_as_people_write_them(milli, text):
    assert milli_text(milli) == text


# ---- Arithmetic ----------------------------------------------------------


def test_four_point_one_less_one_point_one_admits_three():
    left = Resources.of(cpus=4.1) - Resources.of(cpus=1.1)
    assert left.contains(Resources.of(cpus=3.0))
    assert left == Resources.of(cpus=3)


def test_ten_tenths_fit_on_one():
    left = Resources.of(cpus=1.0)
    for _ in range(10):
        left = left - Resources.of(cpus=0.1)
    assert left == EMPTY
    assert not left


def test_a_group_of_three_tenths_and_its_executor_ask_exactly_four_tenths():
    tenth = Resources.of(cpus=0.1)
    assert total([tenth] * 4) == Resources.of(cpus=0.4)
    assert (Resources.of(cpus=0.4) - total([tenth] * 4)) == EMPTY


def test_amounts_are_exact_after_ten_thousand_random_fractional_tasks():
    dice = random.Random(20)
    whole = Resources.of(cpus=64, mem=4096)
    free, running = whole, []
    for _ in range(10_000):
        task = Resources.of(
            cpus=dice.choice([0.1, 0.2, 0.66, dice.randrange(1, 4000) / 1000]),
            mem=dice.choice([0.001, 32, 100.125]),
        )
        if free.contains(task):
            free = free - task
            running.append(task)
        else:
            free = free + running.pop(dice.randrange(len(running)))
        assert min(free.scalars.values(), default=0) >= 0
    assert free + total(running) == whole
    for task in running:
        free = free + task
    assert free == whole


def test_taking_more_than_there_is_changes_nothing_and_says_what_is_short():
    have = Resources.parse("cpus:1;mem:64;ports:[1-5]")
    with pytest.raises(InsufficientResources, match=r"cpus: 1.5 wanted, 1 there"):
        _ = have - Resources.of(cpus=1.5)
    with pytest.raises(InsufficientResources, match=r"gpus: 1 wanted, 0 there"):
        _ = have - Resources.of(gpus=1)
    with pytest.raises(InsufficientResources, match=r"ports: \[5-6\] wanted, \[1-5\] there"):
        _ = have - Resources.of(ports=[(5, 6)])
    assert have == Resources.parse("cpus:1;mem:64;ports:[1-5]")


def test_zero_amounts_and_empty_ranges_are_not_kept():
    have = Resources.parse("cpus:2;ports:[1-5];racks:{a,b}")
    left = have - Resources.parse("cpus:2;ports:[1-5];racks:{a,b}")
    assert (left.scalars, left.ranges, left.sets) == ({}, {}, {})


def test_ranges_and_sets_come_and_go():
    have = Resources.parse("ports:[1-9];racks:{a,b};disks:{x}")
    taken = Resources.parse("ports:[3-4];racks:{a}")
    left = have - taken
    assert str(left) == "ports:[1-2, 5-9];racks:{b};disks:{x}"
    assert left + taken == have
    assert have.contains(taken)
    assert not left.contains(taken)
    assert not left.contains(Resources.parse("racks:{a}"))
    assert not left.contains(Resources.parse("others:{a}"))
    assert not left.contains(Resources.parse("others:[1-2]"))


def test_the_same_port_cannot_be_added_twice():
    have = Resources.parse("ports:[1-5]")
    with pytest.raises(InvalidResources, match=r"overlaps \[1-5\]"):
        _ = have + Resources.parse("ports:[5-6]")
    with pytest.raises(InvalidResources, match="already"):
        _ = Resources.parse("racks:{a,b}") + Resources.parse("racks:{b}")


def test_new_names_are_added_beside_the_old():
    both = Resources.parse("cpus:1;ports:[1-2]") + Resources.parse("mem:5;hosts:[1-2];racks:{a}")
    assert both.names() == ["cpus", "mem", "ports", "hosts", "racks"]
    assert both.scalar("mem") == 5.0
    assert both.scalar("disk") == 0.0


def test_a_sum_of_many_is_the_sum_of_each():
    parts = ["cpus:1", "cpus:0.5;ports:[1-2]", "mem:3", "ports:[3-4];racks:{a}", "racks:{b}"]
    whole = total(Resources.parse(part) for part in parts)
    assert whole == Resources.parse("cpus:1.5;mem:3;ports:[1-4];racks:{a,b}")
    assert total([]) is EMPTY
    with pytest.raises(InvalidResources, match="overlaps"):
        total([Resources.parse("ports:[1-2]"), Resources.parse("ports:[2-3]")])


def test_adding_and_taking_nothing_is_free():
    have = Resources.of(cpus=1)
    assert have + EMPTY is have
    assert EMPTY + have is have
    assert have - EMPTY is have


def test_a_bundle_of_scalars_shares_the_ranges_of_the_other():
    have = Resources.parse("cpus:2;ports:[1-5];racks:{a}")
    assert (have - Resources.of(cpus=1)).ranges is have.ranges
    assert (have + Resources.of(cpus=1)).sets is have.sets


def test_shortfalls_name_everything_that_is_short():
    have = Resources.parse("cpus:1;ports:[1-5];racks:{a};mem:10")
    wanted = Resources.parse("cpus:2;ports:[5-6];racks:{a,b};mem:10")
    assert have.shortfalls(wanted) == [
        ("cpus", "2", "1"),
        ("ports", "[5-6]", "[1-5]"),
        ("racks", "{a,b}", "{a}"),
    ]
    assert have.shortfalls(have) == []


def test_equal_bundles_are_equal_and_hash_alike_in_any_order():
    one = Resources.parse("cpus:1;mem:2;ports:[1-2,3-4];racks:{b,a}")
    other = Resources.parse("racks:{a,b};ports:[1-4];mem:2;cpus:1")
    assert one == other
    assert hash(one) == hash(other)
    assert one != Resources.of(cpus=1)
    assert one != "cpus:1"
    assert len({one, other}) == 1


# ---- Picking ports ----------------------------------------------------------


def test_from_six_ports_four_and_two_are_six_distinct_ones_and_a_seventh_is_refused():
    left = Resources.parse("ports:[31000-31003, 31010-31011]")
    first = left.pick("ports", 4)
    left = left - Resources.of(ports=[(port, port) for port in first])
    second = left.pick("ports", 2)
    left = left - Resources.of(ports=[(port, port) for port in second])
    assert {*first, *second} == {31000, 31001, 31002, 31003, 31010, 31011}
    with pytest.raises(InsufficientResources, match="1 ports wanted, 0 there"):
        left.pick("ports", 1)


def test_picks_are_the_lowest_numbers():
    assert Resources.parse("ports:[5-9]").pick("ports", 2) == (5, 6)
    assert Resources.parse("ports:[5-9]").pick("ports", 0) == ()


# ---- The text form ----------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "cpus:4",
        "cpus:0.5;mem:1024;disk:0.001",
        "ports:[31000-32000]",
        "ports:[1-2, 5-9];racks:{a,b}",
        "cpus:1;gpu_mem:2;net.bw:3;a-b:4",
    ],
)
def test_a_text_comes_out_as_it_went_in(text):
    assert str(Resources.parse(text)) == text
    assert repr(Resources.parse(text)) == f"Resources({text!r})"


@pytest.mark.parametrize(
    ("text", "same"),
    [
        (" cpus : 4 ; mem:1e3 ;; ", "cpus:4;mem:1000"),
        ("cpus:+.5", "cpus:0.5"),
        ("ports:[5]", "ports:[5-5]"),
        ("ports:[ 8 - 9 , 1-7]", "ports:[1-9]"),
        ("racks:{ b , a }", "racks:{a,b}"),
    ],
)
def test_texts_may_be_written_in_several_ways(text, same):
    assert Resources.parse(text) == Resources.parse(same)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "names no resource"),
        (" ; ; ", "names no resource"),
        ("cpus", "must be NAME:VALUE"),
        ("cpus:", "must be NAME:VALUE"),
        (":4", "no resource name"),
        ("4cpus:4", "no resource name"),
        ("cp us:4", "no resource name"),
        ("cpüs:4", "no resource name"),
        ("x" * 64 + ":1", "no resource name"),
        ("cpus:4;cpus:2", "given twice"),
        ("ports:[1-2];ports:[3-4]", "given twice"),
        ("a:{x};a:1", "given twice"),
        ("cpus:four", "must be a number"),
        ("cpus:1e9999", "must be a number"),
        ("cpus:0x10", "must be a number"),
        ("cpus:1_000", "must be a number"),
        ("cpus:٣", "must be a number"),
        ("cpus:nan", "must be a number"),
        ("cpus:inf", "must be a number"),
        ("cpus:1e999", "at most"),
        ("cpus:-1", "above zero"),
        ("cpus:0", "above zero"),
        ("cpus:0.0001", "smallest amount"),
        ("gpus:1.5", "whole number"),
        ("ports:[1-2", "must end with"),
        ("ports:[]", "must be BEGIN-END"),
        ("ports:[1-]", "must be BEGIN-END"),
        ("ports:[-1-5]", "must be BEGIN-END"),
        ("ports:[1-2,]", "must be BEGIN-END"),
        ("ports:[١-٢]", "must be BEGIN-END"),
        ("ports:[9-1]", "ends before it begins"),
        ("ports:[1-5,5-6]", "overlaps"),
        ("ports:[1-65536]", "at most 65535"),
        ("others:[1-9999999999999999999]", "out of bounds"),
        ("racks:{a", "must end with"),
        ("racks:{}", "must not be empty"),
        ("racks:{a,,b}", "must not be empty"),
        ("racks:{a,a}", "is there twice"),
        ("x" * (MAX_TEXT + 1), "longer than"),
    ],
)
def test_a_wrong_text_is_refused_with_its_place(text, why):
    with pytest.raises(InvalidResources, match=why) as caught:
        Resources.parse(text, "--resources")
    assert caught.value.field.startswith("--resources")


def test_the_json_form():
    assert Resources.parse("cpus:0.5;mem:64;ports:[1-5];racks:{a}").to_json() == {
        "cpus": 0.5,
        "mem": 64.0,
        "ports": "[1-5]",
        "racks": "{a}",
    }


# ---- The wire form ----------------------------------------------------------


def test_the_wire_form_comes_back_as_it_was_and_is_made_once():
    resources = Resources.parse("cpus:0.1;mem:64;ports:[1-5, 8-9];racks:{b,a}")
    assert Resources.from_proto("resources", resources.to_proto()) == resources
    assert resources.to_proto() is resources.to_proto()


def test_the_same_wire_form_is_read_once():
    first = of_wire(scalar("cpus", 0.1), scalar("mem", 32))
    assert of_wire(scalar("cpus", 0.1), scalar("mem", 32)) is first
    for number in range(1, 3000):
        of_wire(scalar("cpus", number))
    assert len(resources._seen) <= resources._SEEN_MAX
    again = of_wire(scalar("cpus", 0.1), scalar("mem", 32))
    assert again == first


def test_what_is_wrong_is_refused_as_often_as_it_comes():
    for field in ("one", "other"):
        with pytest.raises(InvalidResources) as caught:
            Resources.from_proto(field, [scalar("cpus", -1)])
        assert caught.value.field == f"{field}.cpus"


def test_items_of_one_name_are_added_up():
    assert of_wire(scalar("cpus", 0.1), scalar("cpus", 0.2)) == Resources.of(cpus=0.3)
    assert of_wire(spans("ports", (1, 2)), spans("ports", (3, 4))) == Resources.parse("ports:[1-4]")
    assert of_wire(items("racks", "a"), items("racks", "b")) == Resources.parse("racks:{a,b}")


def test_unreserved_in_words_is_unreserved():
    message = scalar("cpus", 1)
    message.role = "*"
    message.allocation_info.role = "web"
    assert of_wire(message) == Resources.of(cpus=1)


def reserved_by(**fields):
    message = scalar("cpus", 1)
    message.MergeFrom(pb.Resource(**fields))
    return message


def odd_type():
    """Of a type that only a newer peer knows."""
    made = pb.Resource(name="cpus")
    made.MergeFromString(b"\x10\x4d")  # field 2, type: 77
    assert made.type == 77
    return made


VOLUME = pb.Resource.DiskInfo(persistence=pb.Resource.DiskInfo.Persistence(id="v1"))


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ([scalar("", 1)], "no resource name"),
        ([scalar("a b", 1)], "no resource name"),
        ([scalar("cpus;mem:5", 1)], "no resource name"),
        ([scalar("x\n", 1)], "no resource name"),
        ([scalar("cpus", -1)], "above zero"),
        ([scalar("cpus", math.nan)], "finite"),
        ([scalar("cpus", math.inf)], "finite"),
        ([scalar("cpus", 1e15)], "at most"),
        ([scalar("cpus", 6e11), scalar("cpus", 6e11)], "in all"),
        ([scalar("gpus", 0.5)], "whole number"),
        ([pb.Resource(name="cpus")], "above zero"),
        ([pb.Resource(name="ports", type=pb.Value.RANGES)], "at least one range"),
        ([spans("ports", (5, 4))], "ends before it begins"),
        ([spans("ports", (1, 5)), spans("ports", (5, 6))], "overlaps"),
        ([spans("ports", (1, 70000))], "at most 65535"),
        ([spans("others", (1, 2**64 - 1))], "out of bounds"),
        ([spans("others", (2**63, 2**63))], "out of bounds"),
        ([pb.Resource(name="racks", type=pb.Value.SET)], "at least one item"),
        ([items("racks", "")], "must not be empty"),
        ([items("racks", "a", "a")], "is there twice"),
        ([items("racks", "a"), items("racks", "a")], "is there twice"),
        ([scalar("cpus", 1), spans("cpus", (1, 2))], "'RANGES': has two types"),
        ([scalar("cpus", 0), spans("cpus", (1, 2))], "'RANGES': has two types"),
        ([scalar("cpus", 1), odd_type()], "'77': has two types"),
        ([pb.Resource(name="cpus", type=pb.Value.TEXT)], "must be a scalar"),
        ([odd_type()], "must be a scalar"),
        (
            [reserved_by(revocable=pb.Resource.RevocableInfo())],
            "revocable resources are not supported",
        ),
        ([reserved_by(disk=VOLUME)], "only a disk can be a volume"),
        ([reserved_by(disk=pb.Resource.DiskInfo())], "only a disk can be a volume"),
        ([reserved_by(shared=pb.Resource.SharedInfo())], "shared resources are not supported"),
        (
            [reserved_by(provider_id=pb.ResourceProviderID(value="p"))],
            "resource providers are not supported",
        ),
    ],
)
def test_wrong_wire_resources_are_refused_with_their_place(messages, why):
    with pytest.raises(InvalidResources, match=why) as caught:
        of_wire(*messages)
    assert caught.value.field.startswith("resources.")


@pytest.mark.parametrize(
    "nothing",
    [scalar("gpus", 0), scalar("gpus", -0.0), scalar("x", 0.0004999), spans("x"), items("x")],
    ids=["zero", "minus zero", "less than half a thousandth", "no range", "no item"],
)
def test_an_amount_of_nothing_is_left_out_as_in_mesos(nothing):
    # Some schedulers name all that they know, such as gpus, in each of their tasks.
    assert of_wire() == of_wire(nothing) == EMPTY
    assert of_wire(scalar("cpus", 1), nothing) == Resources.of(cpus=1)
    assert of_wire(scalar("x", 0.0005)) == Resources.of(x=0.001)


def test_ranges_are_limited_in_number():
    pairs = [(2 * n, 2 * n) for n in range(MAX_RANGES)]
    assert len(checked_ranges("resources.blocks", pairs)) == MAX_RANGES
    with pytest.raises(InvalidResources, match=f"at most {MAX_RANGES}"):
        checked_ranges("resources.blocks", [*pairs, (-1, -1)])
    with pytest.raises(InvalidResources, match=f"at most {MAX_RANGES}"):
        of_wire(*(spans("blocks", (2 * n, 2 * n)) for n in range(MAX_RANGES + 1)))


def test_a_bundle_is_made_from_ranges_given_as_pairs():
    assert Resources.of(ports=[(3, 4), (1, 2)]) == Resources.parse("ports:[1-4]")
    with pytest.raises(InvalidResources, match="at least one range"):
        Resources.of(ports=[])
