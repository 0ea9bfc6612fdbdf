"""The kinds of values that a flag can have: how text becomes one, and back."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from mesos_py.address import Address, parse_address

T = TypeVar("T")

# The range of signed 64 bits: what a message or a database can hold of it.
MAX_INTEGER: Final = 2**63 - 1
# Mesos keeps durations as 64-bit nanoseconds.
MAX_DURATION_S: Final = 9_223_372_036.0


@dataclass(frozen=True)
class Kind(Generic[T]):
    """A kind of value.  `parse` raises ValueError (or InvalidValue) with a reason.

    `parse(show(value)) == value` for all values.  `allowed` says in prose what is.
    """

    name: str
    metavar: str
    allowed: str
    parse: Callable[[str], T]
    show: Callable[[T], str]
    # Types other than text that may stand for it in TOML and on the command line.
    native: tuple[type, ...] = ()

    def read(self, given: object) -> T:
        """The value for a text, or for a TOML value of a type that fits."""
        if isinstance(given, str):
            return self.parse(given)
        # bool is an int to Python, but `port = true` is a mistake.
        fits = isinstance(given, self.native) and (
            bool in self.native or not isinstance(given, bool)
        )
        if not fits:
            raise ValueError(f"must not be of type {type(given).__name__}")
        if isinstance(given, list):
            if not all(isinstance(item, str) for item in given):
                raise ValueError("must be a list of texts")
            return self.parse(",".join(given))
        if isinstance(given, bool):
            return self.parse("true" if given else "false")
        if isinstance(given, float) and not math.isfinite(given):
            raise ValueError("must be finite")
        # Never in the form with an exponent, which the parsers refuse.
        return self.parse(f"{Decimal(str(given)):f}")


# --- numbers ----------------------------------------------------------------

_INTEGER = re.compile(r"[+-]?[0-9]{1,40}", re.ASCII)
_NUMBER = re.compile(r"[+-]?[0-9]{1,40}(\.[0-9]{1,400})?", re.ASCII)


def _parse_integer(given: str) -> int:
    if not _INTEGER.fullmatch(given.strip()):
        raise ValueError("is not a whole number")
    value = int(given)
    if abs(value) > MAX_INTEGER:
        raise ValueError(f"is larger than {MAX_INTEGER}")
    return value


def _parse_number(given: str) -> float:
    # No exponent, no NaN and no infinity: nothing that float() would let pass.
    if not _NUMBER.fullmatch(given.strip()):
        raise ValueError("is not a number")
    return float(given)


def _parse_port(given: str) -> int:
    value = _parse_integer(given)
    if not 0 <= value <= 65535:
        raise ValueError("is not a port")
    return value


integer: Final = Kind("integer", "N", "a whole number", _parse_integer, str, (int,))
number: Final = Kind(
    "number", "NUMBER", "a number", _parse_number, lambda v: f"{Decimal(repr(v)):f}", (int, float)
)
port_number: Final = Kind("port_number", "PORT", "a port from 0 to 65535", _parse_port, str, (int,))

# --- amounts with units -----------------------------------------------------

# Our short names, and those of Mesos (3rdparty/stout duration.hpp).
_DURATION_UNITS: Final = {
    "ns": Decimal("1e-9"),
    "us": Decimal("1e-6"),
    "ms": Decimal("1e-3"),
    "s": Decimal(1),
    "secs": Decimal(1),
    "m": Decimal(60),
    "mins": Decimal(60),
    "h": Decimal(3600),
    "hrs": Decimal(3600),
    "d": Decimal(86400),
    "days": Decimal(86400),
    "w": Decimal(604800),
    "weeks": Decimal(604800),
}
_DURATION = re.compile(r"(?:[0-9]{1,20}(?:\.[0-9]{1,400})?[a-z]+)+", re.ASCII)
_DURATION_PART = re.compile(r"([0-9.]+)([a-z]+)", re.ASCII)
_PLAIN_AMOUNT = re.compile(r"[0-9]{1,40}(\.[0-9]{1,400})?", re.ASCII)


def parse_duration(given: str) -> float:
    """Seconds of "10s", "1h30m", "250ms", "1.5days"; a bare number is seconds.

    Raises ValueError.
    """
    compact = given.strip()
    if _PLAIN_AMOUNT.fullmatch(compact):
        seconds = Decimal(compact)
    elif _DURATION.fullmatch(compact):
        seconds = Decimal(0)
        for amount, unit in _DURATION_PART.findall(compact):
            if unit not in _DURATION_UNITS:
                raise ValueError(f"{unit!r} is not a unit of time")
            seconds += Decimal(amount) * _DURATION_UNITS[unit]
    elif compact.startswith("-"):
        raise ValueError("must not be negative")
    else:
        raise ValueError("is not a duration")
    if seconds > MAX_DURATION_S:
        raise ValueError("is longer than 292 years")
    return float(seconds)


def duration_text(seconds: float) -> str:
    """The shortest of our forms: 5400.0 -> "90m", 0.25 -> "250ms"."""
    exact = Decimal(repr(seconds))
    for unit in ("w", "d", "h", "m", "s", "ms", "us", "ns"):
        amount = exact / _DURATION_UNITS[unit]
        # The division rounds to 28 digits: it must lead back to the same number.
        if (
            exact
            and amount == amount.to_integral_value()
            and (amount * _DURATION_UNITS[unit] == exact)
        ):
            return f"{amount:.0f}{unit}"
    return f"{exact:f}s" if exact else "0s"


# Powers of 1024, as in Mesos, where "MB" and friends mean that too.
_SIZE_UNITS: Final[dict[str, int]] = {
    "B": 1,
    "KB": 2**10,
    "MB": 2**20,
    "GB": 2**30,
    "TB": 2**40,
    "PB": 2**50,
}
_SIZE = re.compile(
    r"([0-9]{1,40}(?:\.[0-9]{1,400})?)\s*((?:[KMGTP]I?)?B)", re.ASCII | re.IGNORECASE
)


def parse_size(given: str) -> int:
    """Bytes of "512MB" (or MiB: the same, powers of 1024); a bare number is bytes.

    Raises ValueError, also for what is not a whole number of bytes.
    """
    compact = given.strip()
    if _PLAIN_AMOUNT.fullmatch(compact):
        amount, unit = compact, "B"
    elif match := _SIZE.fullmatch(compact):
        amount, unit = match[1], match[2].upper().replace("I", "")
    elif compact.startswith("-"):
        raise ValueError("must not be negative")
    else:
        raise ValueError("is not a size")
    whole, _, fraction = amount.partition(".")
    scaled = int(whole + fraction) * _SIZE_UNITS[unit]
    value, rest = divmod(scaled, int("1" + "0" * len(fraction)))
    if rest:
        raise ValueError("is not a whole number of bytes")
    if value > MAX_INTEGER:
        raise ValueError(f"is larger than {MAX_INTEGER} bytes")
    return value


def size_text(size: int) -> str:
    """The form with the largest unit that divides: 2**29 -> "512MB"."""
    unit = next(u for u in reversed(_SIZE_UNITS) if not size % _SIZE_UNITS[u]) if size else "B"
    return f"{size // _SIZE_UNITS[unit]}{unit}"


duration_s: Final = Kind(
    "duration_s",
    "DURATION",
    "a duration such as 250ms, 10s, 5m, 1h30m (ns us ms s m h d w)",
    parse_duration,
    duration_text,
    (int, float),
)
size_bytes: Final = Kind(
    "size_bytes",
    "SIZE",
    "a size such as 64KB, 512MB, 2GB (powers of 1024)",
    parse_size,
    size_text,
    (int,),
)


@dataclass(frozen=True)
class Rate:
    """At most `count` of something in `per_s` seconds."""

    count: int
    per_s: float


def parse_rate(given: str) -> Rate:
    """A `Rate` of "1/10mins", "20/1h".  Raises ValueError."""
    count, slash, duration = given.partition("/")
    if not slash:
        raise ValueError("is not of the form N/DURATION")
    rate = Rate(_parse_integer(count), parse_duration(duration))
    if rate.count < 1:
        raise ValueError("must allow at least 1")
    if rate.per_s <= 0:
        raise ValueError("must be for a time above zero")
    return rate


def _parse_percent(given: str) -> float:
    percent = _parse_number(given.strip().removesuffix("%"))
    if not 0 <= percent <= 100:
        raise ValueError("must be from 0% to 100%")
    return percent


rate: Final = Kind(
    "rate",
    "N/DURATION",
    "a number in a time, such as 1/10m, 20/1h",
    parse_rate,
    lambda v: f"{v.count}/{duration_text(v.per_s)}",
)
percent: Final = Kind(
    "percent",
    "PERCENT",
    "a share such as 30%",
    _parse_percent,
    lambda v: f"{Decimal(repr(v)).normalize():f}%",
    (int, float),
)

# --- texts ------------------------------------------------------------------


def _parse_text(given: str) -> str:
    if "\0" in given:
        raise ValueError("must not contain a null character")
    return given


def _parse_boolean(given: str) -> bool:
    match given.strip().lower():
        case "true" | "yes" | "on" | "1":
            return True
        case "false" | "no" | "off" | "0":
            return False
        case _:
            raise ValueError("is neither true nor false")


def _parse_list(given: str) -> tuple[str, ...]:
    items = tuple(item.strip() for item in _parse_text(given).split(","))
    if items == ("",):
        return ()
    if "" in items:
        raise ValueError("has an empty item")
    return items


def _parse_path(given: str) -> Path:
    if not _parse_text(given).strip():
        raise ValueError("must not be empty")
    return Path(given).expanduser()


text: Final = Kind("text", "TEXT", "text", _parse_text, str)
boolean: Final = Kind(
    "boolean", "BOOL", "true or false", _parse_boolean, lambda v: str(v).lower(), (bool,)
)
text_list: Final = Kind(
    "text_list", "A,B,...", "a list separated by commas", _parse_list, ",".join, (list,)
)
path: Final = Kind("path", "PATH", "a path", _parse_path, str)
host_port: Final[Kind[Address]] = Kind(
    "host_port", "HOST:PORT", "HOST:PORT or [IPV6]:PORT", parse_address, str
)


def choice(*words: str) -> Kind[str]:
    """One of `words`, in any case."""
    listed = ", ".join(words)

    def parse(given: str) -> str:
        for word in words:
            if word.lower() == given.strip().lower():
                return word
        raise ValueError("is not one of the choices")

    return Kind("choice", "|".join(words), f"one of {listed}", parse, str)


# --- checks -----------------------------------------------------------------


def at_least(low: float) -> Callable[[Any], None]:
    """A check that a value is `low` or more."""

    def check(value: Any) -> None:
        if value < low:
            raise ValueError(f"must be at least {low}")

    return check


def at_most(high: float) -> Callable[[Any], None]:
    """A check that a value is `high` or less."""

    def check(value: Any) -> None:
        if value > high:
            raise ValueError(f"must be at most {high}")

    return check


def between(low: float, high: float) -> Callable[[Any], None]:
    """A check that a value is from `low` to `high`."""

    def check(value: Any) -> None:
        if not low <= value <= high:
            raise ValueError(f"must be from {low} to {high}")

    return check


def not_empty(value: Any) -> None:
    """A check that a text or list has something in it."""
    if not value:
        raise ValueError("must not be empty")
