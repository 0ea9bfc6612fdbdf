"""Hashes of keys: equal for equal keys, of numbers what they always were, refused where none
would last."""

import datetime
import decimal
import enum
import fractions
import uuid
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

from frameworks.rdd.errors import Unstable
from frameworks.rdd.hashing import NAN, one_nan, portable_hash

NOON = datetime.datetime(2024, 6, 1, 12, tzinfo=datetime.UTC)


class Plain(enum.Enum):
    A = 1


class Other(enum.Enum):
    A = 1


class Number(enum.IntEnum):
    ONE = 1


class Text(enum.StrEnum):
    A = "a"


class Bits(enum.Flag):
    X = 1
    Y = 2


class Named(NamedTuple):
    a: float
    b: str


class Word(str):
    __slots__ = ()


@dataclass(frozen=True)
class Frozen:
    a: float
    note: str = field(default="", compare=False)


@dataclass
class Loose:
    a: int


@dataclass(eq=False)
class ByAddress:
    a: int


class Custom:
    def __hash__(self):
        return 1


def _later(hours: float) -> datetime.timezone:
    return datetime.timezone(datetime.timedelta(hours=hours))


@pytest.mark.parametrize(
    "equal",
    [
        [1, 1.0, True, decimal.Decimal(1), fractions.Fraction(1), 1 + 0j, np.int8(1), Number.ONE],
        [0, -0.0, False, np.float64(0), np.bool_(False)],
        [float("nan"), -float("nan"), np.float32("nan"), decimal.Decimal("nan")],
        ["a", Word("a"), np.str_("a"), Text.A],
        [b"a", np.bytes_(b"a"), memoryview(b"a")],
        [(1, "a"), (1.0, "a"), (True, Word("a")), Named(1, "a")],
        [frozenset({1, 2}), frozenset({2.0, True})],
        [Frozen(1, "x"), Frozen(1, "y")],
        [NOON, NOON.astimezone(_later(5.5)), NOON.replace(fold=1)],
        [datetime.time(12, tzinfo=_later(0)), datetime.time(14, tzinfo=_later(2))],
        [datetime.timedelta(1), datetime.timedelta(hours=24)],
        [range(0), range(5, 5)],
        [range(0, 3, 2), range(0, 4, 2)],
        [np.datetime64("2024-01-01"), np.datetime64("2024-01-01T00:00")],
        [np.datetime64("2024-06-01T12:00"), NOON.replace(tzinfo=None)],
        [np.timedelta64(1, "s"), np.timedelta64(1000, "ms"), datetime.timedelta(seconds=1)],
        [np.timedelta64(1, "Y"), np.timedelta64(12, "M")],
        [np.datetime64("NaT"), np.datetime64("NaT", "s")],
        [np.timedelta64("NaT"), np.timedelta64("NaT", "s")],
        [(float("nan"), "b"), Named(float("nan"), "b"), (np.float32("nan"), "b")],
        [Frozen(float("nan")), Frozen(np.float64("nan"))],
        [Bits.X | Bits.Y, Bits(3)],
    ],
    ids=lambda equal: type(equal[0]).__name__,
)
def test_equal_keys_have_equal_hashes(equal):
    assert len({portable_hash(each) for each in equal}) == 1


def test_different_keys_mostly_differ():
    keys: list[Any] = [None, "", b"", (), 1, "1", b"1", (1,), (1, 1), ("1",), Plain.A, Other.A]
    keys += [int, str]
    keys += [uuid.UUID(int=1), datetime.date(2024, 1, 1), frozenset({1}), Frozen(7), "2024-01-02"]
    assert len({portable_hash(key) for key in keys}) == len(keys)


def test_documented_values():
    assert portable_hash(None) == 0
    assert portable_hash((None, 1)) & 0xFFFFFFFF == 219750521
    # By Python, and by numpy, each process has its own.
    assert portable_hash(np.datetime64("NaT")) == portable_hash(np.timedelta64("NaT")) == 0x7FF8
    assert portable_hash(Named(float("nan"), "b")) == 3417183607654068400
    assert [portable_hash(number) for number in (0, 1, -5, 2.0, 2**31)] == [0, 1, -5, 2, 2**31]


def test_texts_are_spread_evenly():
    places = [0] * 7
    for i in range(7000):
        places[portable_hash(f"user-{i}") % 7] += 1
    assert min(places) > 850


@pytest.mark.parametrize(
    ("key", "name", "why"),
    [
        ([1], "builtins.list", "cannot be hashed"),
        ({"a": 1}, "builtins.dict", "cannot be hashed"),
        (bytearray(b"x"), "builtins.bytearray", "cannot be hashed"),
        (np.array([1]), "numpy.ndarray", "cannot be hashed"),
        (Loose(1), "Loose", "cannot be hashed"),
        (ByAddress(1), "ByAddress", "not the same in every process"),
        (object(), "builtins.object", "not the same in every process"),
        (Custom(), "Custom", "not the same in every process"),
        (lambda: None, "builtins.function", "not the same in every process"),
        (np.timedelta64(1), "numpy.timedelta64", "cannot be hashed"),
        (decimal.Decimal("sNaN"), "decimal.Decimal", "cannot be hashed"),
        ((1, [2]), "builtins.list", "cannot be hashed"),
        (frozenset({object}) | {Custom()}, "Custom", "not the same in every process"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_keys_without_a_hash_that_lasts(key, name, why):
    with pytest.raises(Unstable, match=why) as refused:
        portable_hash(key)
    assert name in str(refused.value.fields["kind"])
    assert "key " in str(refused.value)


@pytest.mark.parametrize(
    "nan", [np.float32("nan"), np.float16("nan"), decimal.Decimal("nan"), complex("nan")]
)
def test_numbers_of_other_types_that_are_none_are_the_same_key(nan):
    """Each stayed a key of its own in the dict that was to bring them together."""
    assert one_nan(nan) is NAN
    assert one_nan((1, nan))[1] is NAN


@pytest.mark.parametrize(
    "made",
    [
        lambda nan: nan,
        lambda nan: (1, (nan, "a")),
        lambda nan: Named(nan, "b"),
        lambda nan: (Named(nan, "b"),),
        lambda nan: frozenset({nan, 1}),
        lambda nan: Frozen(nan, "note"),
    ],
)
@pytest.mark.parametrize(
    "nan", [lambda: float("nan"), lambda: np.datetime64("NaT"), lambda: np.timedelta64("NaT", "s")]
)
def test_what_differs_only_by_being_no_number_or_no_time_is_one_key(made, nan):
    one, other = made(nan()), made(nan())
    assert one != other
    found = one_nan(one)
    assert found == one_nan(other) or found is one_nan(other)
    assert type(found) is type(one)
    assert {one_nan(one): 1, one_nan(other): 2} == {found: 2}
    assert isinstance(one, frozenset) or str(found) == str(one)


def test_no_time_is_not_no_number():
    keys = [one_nan(each("NaT", "s")) for each in (np.datetime64, np.timedelta64)]
    assert len({*keys, NAN}) == 3


def test_one_nan():
    assert one_nan(float("nan")) is NAN
    assert one_nan((1, (float("nan"), "a")))[1][0] is NAN
    keys: list[Any] = [1.5, "a", None, (1, 2), frozenset(), Named(1, "a"), Frozen(1), NOON]
    keys += [Named(1.5, "a"), np.datetime64(1, "s"), np.timedelta64(1, "s"), np.float64(1)]
    for key in keys:
        assert one_nan(key) is key
    unhashable: list[Any] = [[], ({},), {1}]
    for each in unhashable:
        with pytest.raises(Unstable, match="cannot be hashed"):
            one_nan(each)
