"""The text that is written at once is that of the objects, to the letter."""

import json
import math
import random
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from hypothesis import given
from hypothesis import strategies as st

from mesos_py.http import jsonpb, jsontext
from mesos_py.http.jsontext import text_of
from mesos_py.v1 import agent_operator_pb2, executor_pb2, operator_pb2
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb

KINDS = (
    sched.Event,
    sched.Call,
    executor_pb2.Event,
    operator_pb2.Response,
    operator_pb2.Event,
    agent_operator_pb2.Response,
    pb.TaskInfo,
    pb.Resource,
    pb.Parameters,
)
TEXTS = ("", "a", 'q"uote\\', "\n\x00\x7f", "ünï", "\U0001f600", "</script>")
FLOATS = (0.0, -0.0, 1.0, 0.1, 1e300, 5e-324, math.inf, -math.inf, math.nan, 1764403200.123456)
INTEGERS = (0, 1, 2**31 - 1)
FD = FieldDescriptor


def single(field: Any, chance: random.Random) -> Any:
    match field.type:
        case FD.TYPE_STRING:
            return chance.choice(TEXTS)
        case FD.TYPE_BYTES:
            return chance.randbytes(chance.choice((0, 1, 16)))
        case FD.TYPE_DOUBLE | FD.TYPE_FLOAT:
            return chance.choice(FLOATS)
        case FD.TYPE_BOOL:
            return chance.random() < 0.5
        case FD.TYPE_ENUM:
            # One that has no name is from a peer that is newer.
            return chance.choice([*(each.number for each in field.enum_type.values), 4711])
    return chance.choice(INTEGERS)


def fill(message: Any, chance: random.Random, depth: int) -> None:
    """Some of its fields, and of those within."""
    for field in message.DESCRIPTOR.fields:
        if chance.random() < 0.5:
            continue
        inner = field.message_type
        if inner is not None and inner.GetOptions().map_entry:
            of = inner.fields_by_name["value"]
            for _ in range(chance.choice((1, 1, 2))):
                key = single(inner.fields_by_name["key"], chance)
                if of.message_type is None:
                    getattr(message, field.name)[key] = single(of, chance)
                else:
                    fill(getattr(message, field.name)[key], chance, depth - 1)
        elif inner is not None:
            if depth > 0 and field.is_repeated:
                for _ in range(chance.choice((1, 2))):
                    fill(getattr(message, field.name).add(), chance, depth - 1)
            elif depth > 0:
                child = getattr(message, field.name)
                child.SetInParent()
                fill(child, chance, depth - 1)
        elif field.is_repeated:
            getattr(message, field.name).extend(single(field, chance) for _ in range(2))
        else:
            setattr(message, field.name, single(field, chance))


def by_objects(message: Any, ours: bool) -> str:
    return json.dumps(jsonpb.as_object(message, ours=ours), separators=(",", ":"))


@given(st.sampled_from(KINDS), st.integers(0, 2**32), st.booleans())
def test_it_is_the_text_of_the_objects(kind: Any, seed: int, ours: bool) -> None:
    message = kind()
    fill(message, random.Random(seed), depth=4)
    # Again: what was kept is used.
    for _ in range(2):
        assert text_of(message, ours=ours) == by_objects(message, ours)


@pytest.mark.parametrize("ours", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_also_of_an_empty_message(kind: Any, ours: bool) -> None:
    assert text_of(kind(), ours=ours) == by_objects(kind(), ours)


def test_what_is_kept_is_that_of_the_same_resource_only() -> None:
    cpus, more = (pb.Resource(name="cpus", scalar=pb.Value.Scalar(value=n)) for n in (1.0, 2.0))
    offer = pb.Offer(resources=[cpus, more, cpus])
    values = [each["scalar"]["value"] for each in json.loads(text_of(offer))["resources"]]
    assert values == [1.0, 2.0, 1.0]
    offer.resources[0].role = "r"
    assert json.loads(text_of(offer))["resources"][0]["role"] == "r"


def test_no_more_is_kept_than_the_bound() -> None:
    kept = jsontext._plan(pb.Resource.DESCRIPTOR, False).kept
    assert kept is not None
    for number in range(jsontext.MAX_KEPT + 10):
        text_of(pb.Offer(resources=[pb.Resource(name=f"r{number}")]))
    assert 0 < len(kept) <= jsontext.MAX_KEPT
    large = pb.Resource(name="x" * (jsontext.MAX_KEPT_BYTES + 1))
    text_of(pb.Offer(resources=[large]))
    assert large.SerializeToString() not in kept
