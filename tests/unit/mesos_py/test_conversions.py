"""What operations take and make: exact, and by plain names always the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesos_py.conversions import (
    conversion_of,
    require_new_volumes,
    reserved_part,
    with_reserved,
    with_volumes_as,
)
from mesos_py.errors import InsufficientResources, InvalidResources, InvalidValue
from mesos_py.reserved import Reservation, key_of
from mesos_py.resources import EMPTY, Resources
from mesos_py.v1 import types_pb2 as pb
from tests.kit.reserving import (
    amount,
    by,
    create,
    destroy,
    grow,
    reserve,
    shrink,
    unreserve,
    volume,
)

ALICE = by("ads", "alice")
STATIC = (Reservation("ads"),)
REFINED = (*STATIC, Reservation("ads/x", "dynamic", "alice"))
TWICE = (*REFINED, Reservation("ads/x/y", "dynamic"))


def test_reserve_takes_what_is_not_reserved_yet():
    change = conversion_of(reserve(amount(ALICE, cpus=2, ports=(1, 5))))
    assert change.consumed == amount(cpus=2, ports=(1, 5))
    assert change.apply(amount(cpus=3, ports=(1, 9))) == (
        amount(ALICE, cpus=2, ports=(1, 5)) + amount(cpus=1, ports=(6, 9))
    )


@pytest.mark.parametrize(("stack", "before"), [(REFINED, STATIC), (TWICE, REFINED), (ALICE, ())])
def test_each_operation_is_about_the_last_reservation(stack, before):
    bundle = amount(stack, cpus=2)
    assert conversion_of(reserve(bundle)).consumed == amount(before, cpus=2)
    assert conversion_of(unreserve(bundle)).converted == amount(before, cpus=2)


def test_with_a_source_all_reservations_of_while_it_ran_may_change():
    change = conversion_of(reserve(amount(by("b"), cpus=2), source=amount(ALICE, cpus=2)))
    assert change.apply(amount(ALICE, cpus=3)) == amount(by("b"), cpus=2) + amount(ALICE, cpus=1)


@pytest.mark.parametrize(
    ("target", "source"),
    [
        (amount(by("b"), cpus=2), amount(ALICE, cpus=1)),
        (amount(by("b"), cpus=2), amount(STATIC, cpus=2)),
        (amount(by("b"), cpus=2), amount(ALICE, mem=2)),
    ],
)
def test_a_source_is_the_same_amount_and_keeps_what_is_static(target, source):
    with pytest.raises(InvalidResources, match=r"reserve\.source"):
        conversion_of(reserve(target, source=source))


@pytest.mark.parametrize("change", [reserve, unreserve])
def test_many_names_take_no_more_steps_than_few(monkeypatch, change):
    """A bundle for each name, of all names, took minutes."""
    made = []
    init = Resources.__init__

    def counted(it, *rest):
        made.append(it)
        init(it, *rest)

    monkeypatch.setattr(Resources, "__init__", counted)

    def steps(names: int) -> int:
        parts = (amount(by("ads", f"p{name}"), cpus=1, ports=(name, name)) for name in range(names))
        dynamic = sum(parts, EMPTY)
        operation = change(dynamic)
        made.clear()
        conversion_of(operation)
        with_reserved(amount(cpus=names, ports=(0, names)), dynamic)
        return len(made)

    assert steps(100) == steps(10)


def test_what_would_have_been_there_twice_is_refused():
    twice = amount(ALICE, ports=(1, 5)) + amount(by("ads", "bob"), ports=(5, 9))
    with pytest.raises(InvalidResources, match="overlaps what is reserved in another way"):
        conversion_of(reserve(twice))
    first, second = (key_of("disks", stack) for stack in (ALICE, by("ads", "bob")))
    disks = Resources(sets={first: frozenset({"a", "b"}), second: frozenset({"b", "c"})})
    with pytest.raises(InvalidResources, match=r"'?b'?.*is reserved in another way as well"):
        conversion_of(reserve(disks))


def test_what_is_not_there_cannot_be_taken():
    with pytest.raises(InsufficientResources, match="2 wanted, 1 there"):
        conversion_of(reserve(amount(ALICE, cpus=2))).apply(amount(cpus=1))


def test_other_operations_change_no_reservations():
    with pytest.raises(InvalidValue, match="LAUNCH"):
        conversion_of(pb.Offer.Operation(type=pb.Offer.Operation.LAUNCH))


@pytest.mark.parametrize("stack", [STATIC, ALICE, TWICE])
def test_a_volume_is_made_of_reserved_disk_and_is_that_again(stack):
    made = volume(stack, 64, principal="alice")
    there = conversion_of(create(made))
    assert there == (amount(stack, disk=64), made)
    assert there.apply(amount(stack, disk=100)) == made + amount(stack, disk=36)
    assert conversion_of(destroy(made)) == (made, amount(stack, disk=64))
    assert reserved_part(made + amount(STATIC, cpus=1)) == made
    assert with_reserved(amount(disk=200) + amount(STATIC, disk=200), made).contains(made)


def test_volumes_grow_and_shrink_by_what_they_are_made_of():
    made = volume(ALICE, 64)
    grown = conversion_of(grow(made, amount(ALICE, disk=8)))
    assert grown == (made + amount(ALICE, disk=8), volume(ALICE, 72))
    assert conversion_of(shrink(made, 24)) == (made, volume(ALICE, 40) + amount(ALICE, disk=24))


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        (create(amount(ALICE, disk=64)), r"create\.volumes\.disk.*is no persistent volume"),
        (create(volume(ALICE, 1, read_only=True)), r"mode.*RO.*must be RW"),
        (create(EMPTY), r"create\.volumes.*must not be empty"),
        (
            create(volume(ALICE, 1) + volume(ALICE, 1, path="x")),
            r"^create\.volumes\.disk\.persistence\.id: 'v1': .* has a volume of that id",
        ),
        (create(volume(ALICE, 1) + volume(by("ads"), 1)), "role ads has a volume of that id"),
        (destroy(amount(ALICE, disk=64)), r"destroy\.volumes\.disk.*is no persistent volume"),
        (grow(amount(ALICE, disk=1), amount(ALICE, disk=1)), "is no persistent volume"),
        (grow(volume(ALICE, 1), amount(STATIC, disk=1)), "of what the volume is made of"),
        (grow(volume(ALICE, 1), amount(ALICE, mem=1)), "of what the volume is made of"),
        (shrink(volume(ALICE, 64), 64), r"shrink_volume\.subtract.*less than the volume"),
        (shrink(volume(ALICE, 64), 0), r"shrink_volume\.subtract.*above zero"),
        (shrink(volume(ALICE, 64), -1), r"shrink_volume\.subtract.*-1"),
        (shrink(volume(ALICE, 64), float("nan")), r"shrink_volume\.subtract.*nan"),
        (shrink(amount(ALICE, disk=64), 1), "is no persistent volume"),
        (unreserve(volume(ALICE, 64)), "has to be destroyed first"),
        (reserve(volume(ALICE, 64)), "has to be destroyed first"),
        (reserve(amount(by("b"), disk=64), source=volume(ALICE, 64)), "to be destroyed first"),
    ],
)
def test_what_no_volume_can_be_is_refused(operation, why):
    with pytest.raises(InvalidResources, match=why):
        conversion_of(operation)


def test_of_a_volume_nothing_is_taken_but_the_whole():
    there = volume(ALICE, 64) + amount(ALICE, disk=10)
    assert there.contains(volume(ALICE, 64))
    assert not there.contains(volume(ALICE, 63))
    with pytest.raises(InsufficientResources, match="63 wanted, 64 there"):
        conversion_of(destroy(volume(ALICE, 63))).apply(there)
    with pytest.raises(InsufficientResources, match="disk"):
        conversion_of(unreserve(amount(ALICE, disk=11))).apply(there)


def test_a_volume_is_the_same_however_it_is_used():
    known = volume(ALICE, 64, principal="alice") + volume(ALICE, 9, "v2")
    used = volume(ALICE, 64, path="elsewhere", principal="alice", read_only=True)
    assert with_volumes_as(known, used + amount(cpus=1)) == (
        volume(ALICE, 64, principal="alice") + amount(cpus=1)
    )
    other = volume(by("ads", "bob"), 64, path="elsewhere", principal="alice")
    assert with_volumes_as(known, other) == other
    with pytest.raises(InvalidResources, match="is there twice"):
        with_volumes_as(known, used + volume(ALICE, 64, principal="alice"))
    moved = volume(ALICE, 9, "v2", path="x")
    assert conversion_of(destroy(moved), known).consumed == volume(ALICE, 9, "v2")
    assert conversion_of(shrink(moved, 1), known).consumed == volume(ALICE, 9, "v2")


def test_no_second_volume_of_an_id_is_made():
    there = volume(ALICE, 64) + amount(ALICE, disk=10) + amount(by("b"), disk=10)
    with pytest.raises(InvalidResources, match=r"'v1'.*the role ads has a volume of that id"):
        conversion_of(create(volume(ALICE, 10, path="x"))).apply(there)
    assert conversion_of(create(volume(by("b"), 10))).apply(there)


@pytest.mark.parametrize("volume_id", ["v1", "a b", 'say "x"', "é, [v1]", "v", "]}])"])
def test_volumes_are_found_by_any_id(volume_id):
    others = volume(ALICE, 1, "v11") + volume(by("web", "alice"), 1, volume_id)
    known = volume(ALICE, 64, volume_id) + others
    assert with_volumes_as(known, volume(ALICE, 64, volume_id, "x")).scalars.keys() <= (
        known.scalars.keys()
    )
    with pytest.raises(InvalidResources, match="of that id there already"):
        require_new_volumes(known, volume(ALICE, 1, volume_id, "x"))
    require_new_volumes(others, volume(ALICE, 1, volume_id, "x"))


def test_what_is_reserved_is_put_on_what_is_configured():
    configured = amount(cpus=4, mem=100) + amount(STATIC, cpus=2)
    dynamic = amount(REFINED, cpus=1) + amount(ALICE, cpus=3)
    both = with_reserved(configured, dynamic)
    assert both == dynamic + amount(cpus=1, mem=100) + amount(STATIC, cpus=1)
    assert reserved_part(both) == dynamic
    assert with_reserved(configured, EMPTY) is configured


def test_what_is_configured_is_no_dynamic_reservation():
    with pytest.raises(InvalidResources, match="is not dynamically reserved"):
        with_reserved(amount(STATIC, cpus=4), amount(STATIC, cpus=4))


STACKS = st.sampled_from([ALICE, REFINED, TWICE, by("ads"), by("ads", "alice", {"k": "v"})])


@st.composite
def bundles(draw: st.DrawFn) -> Resources:
    found = EMPTY
    for stack in draw(st.lists(STACKS, min_size=1, max_size=3)):
        found = found + amount(stack, cpus=draw(st.integers(1, 4)), mem=draw(st.integers(1, 9)))
    return found


@given(bundles())
def test_unreserve_undoes_reserve(bundle: Resources) -> None:
    there, back = conversion_of(reserve(bundle)), conversion_of(unreserve(bundle))
    assert there.consumed.plain == there.converted.plain
    assert back == (there.converted, there.consumed)
    assert back.apply(there.apply(there.consumed)) == there.consumed
