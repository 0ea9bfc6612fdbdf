"""Names of reserved amounts say all that is on the wire, and add up by themselves."""

from __future__ import annotations

import json

from hypothesis import assume, given
from hypothesis import strategies as st

from mesos_py.http import jsonpb
from mesos_py.persistent import Volume
from mesos_py.ranges import Ranges
from mesos_py.reserved import (
    Reservation,
    disk_of,
    is_volume,
    key_of,
    plain_name,
    put_older_form,
    stack_of,
    volume_of,
)
from mesos_py.resources import Resources
from mesos_py.v1 import types_pb2 as pb

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=6)
PARTS = st.text("ab([{\"',:;)]}é.", min_size=1, max_size=5).filter(
    lambda part: part not in (".", "..")
)
LABELS = st.none() | st.lists(st.tuples(TEXTS, st.none() | TEXTS), max_size=3).map(
    lambda some: tuple(
        sorted(some, key=lambda label: (label[0], label[1] is not None, label[1] or ""))
    )
)


@st.composite
def stacks(draw: st.DrawFn) -> tuple[Reservation, ...]:
    """Any stack of reservations that may be."""
    parts = draw(st.lists(PARTS, min_size=1, max_size=3))
    found: list[Reservation] = []
    for depth in range(1, len(parts) + 1):
        role = "/".join(parts[:depth])
        if not found and draw(st.booleans()):
            found.append(Reservation(role))
        else:
            principal = draw(st.none() | TEXTS)
            found.append(Reservation(role, "dynamic", principal, draw(LABELS)))
    return tuple(found)


IDS = TEXTS.filter(lambda text: text not in ("", ".", "..") and not set(text) & set("/\\"))
VOLUMES = st.builds(
    Volume,
    IDS,
    TEXTS.filter(lambda path: path.strip("/") and not set(path.split("/")) & {".", ".."}),
    st.none() | TEXTS,
    st.booleans(),
)


@st.composite
def bundles(draw: st.DrawFn) -> Resources:
    names = ("cpus", "mem", "gpus")
    keys = draw(
        st.dictionaries(
            st.tuples(st.sampled_from(names), stacks() | st.just(())),
            st.integers(1, 50).map(lambda units: 1000 * units),
            max_size=5,
        )
    )
    spans: dict[str, Ranges] = {}
    if draw(st.booleans()):
        spans[key_of("ports", draw(stacks()))] = ((1, 5),)
    sets = {key_of("racks", draw(stacks())): frozenset("ab")} if draw(st.booleans()) else {}
    scalars = {key_of(name, stack): milli for (name, stack), milli in keys.items()}
    if draw(st.booleans()):
        scalars[key_of("disk", draw(stacks()), draw(VOLUMES))] = draw(st.integers(1, 9)) * 1000
    return Resources(scalars, spans, sets)


@given(stacks())
def test_a_name_says_the_whole_stack(stack: tuple[Reservation, ...]) -> None:
    key = key_of("cpus", stack)
    assert stack_of(key) == stack
    assert plain_name(key) == "cpus"


@given(stacks(), stacks())
def test_different_stacks_have_different_names(
    one: tuple[Reservation, ...], other: tuple[Reservation, ...]
) -> None:
    assert (key_of("cpus", one) == key_of("cpus", other)) == (one == other)


@given(stacks(), VOLUMES)
def test_a_name_says_the_volume_as_well(stack: tuple[Reservation, ...], volume: Volume) -> None:
    key = key_of("disk", stack, volume)
    assert volume_of(key) == volume
    assert is_volume(key)
    assert stack_of(key) == stack
    assert disk_of(key) == key_of("disk", stack)
    assert not is_volume(disk_of(key))


@given(bundles())
def test_the_wire_and_json_bring_back_what_was_sent(bundle: Resources) -> None:
    messages = [pb.Resource.FromString(each.SerializeToString()) for each in bundle.to_proto()]
    assert Resources.from_proto("resources", messages) == bundle
    written = json.loads(jsonpb.dumps(pb.AgentInfo(resources=bundle.to_proto())))
    read = jsonpb.from_object(pb.AgentInfo, written)
    assert Resources.from_proto("resources", read.resources) == bundle


@given(stacks())
def test_the_older_form_brings_back_a_single_reservation(stack: tuple[Reservation, ...]) -> None:
    bundle = Resources({key_of("cpus", stack[:1]): 1500})
    (message,) = bundle.to_proto()
    older = pb.Resource()
    older.CopyFrom(message)
    put_older_form(older)
    assert not older.reservations
    assert older.role == stack[0].role
    assert Resources.from_proto("resources", [older]) == bundle


@given(PARTS)
def test_text_brings_back_what_is_reserved_by_an_agent(role: str) -> None:
    key = key_of("cpus", (Reservation(role),))
    bundle = Resources({key: 1500})
    # Roles that look like JSON are said as such, and are no text.
    if ";" not in role and key == f"cpus({role})":
        assert Resources.parse_reserved(str(bundle)) == bundle


@given(bundles(), bundles())
def test_sums_and_differences_keep_reservations_apart(one: Resources, other: Resources) -> None:
    one, other = Resources(one.scalars), Resources(other.scalars)
    # A volume is had by one alone.
    assume(not any(is_volume(name) and name in other.scalars for name in one.scalars))
    both = one + other
    assert both - other == one
    assert both.plain == one.plain + other.plain
    assert both.unreserved == one.unreserved + other.unreserved
    assert both.contains(one)
    assert both.unreserved.plain is both.unreserved or not both.unreserved.has_reserved
