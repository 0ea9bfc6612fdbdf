"""What operations take and make: exact, and by plain names always the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesos_py.conversions import conversion_of, reserved_part, with_reserved
from mesos_py.errors import InsufficientResources, InvalidResources, InvalidValue
from mesos_py.reserved import Reservation, key_of
from mesos_py.resources import EMPTY, Resources
from mesos_py.v1 import types_pb2 as pb
from tests.kit.reserving import amount, by, reserve, unreserve

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
