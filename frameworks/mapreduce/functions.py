"""The contract for Python functions as map, combine and reduce, and how records are written.

::

    def mapper(line: str) -> Iterable[tuple[Key, Value]]
    def combiner(key: Key, values: Iterator[Value]) -> Iterable[tuple[Key, Value]]
    def reducer(key: Key, values: Iterator[Value]) -> Iterable[tuple[Key, Value]]

A function is mostly a generator; one that returns None has written nothing.  It is sent with
`packed` and runs in a process of its own for each attempt, so it may keep state between
calls; a callable object is as good.  `line` is without its newline; bytes that are no UTF-8 are
there as surrogates (PEP 383), and come out as they were.  `values` can be gone through once,
and need not be.  In the process `count` and `set_status` report to the job, and stderr is the
attempt's log.

**Keys** are str, bytes, int, float, bool, None and tuples of these, of exactly these types;
anything else raises InvalidValue.  Keys that are equal in Python are one key: 1, 1.0 and True,
alone or in tuples; a reducer is given whole numbers as int.  A NaN is refused: it is equal to
nothing.  All processes and machines agree on that, for a key is what it is written as.

**Values** are str, bytes, int, float, bool, None, tuples, lists and dicts of these, and come as
they were; what else is yielded is pickled on its way.

Between functions a record is one line, `key TAB value`.  Text is written as it is, with \\\\, \\t
and \\n for backslash, tab and newline; bytes so too, after `\\:`; what is neither, as JSON after
`\\=` (in it {"b": base64} is bytes, an array a tuple, {"l": []} a list, {"d": [[key, value], ...]}
a dict); what is pickled, as base64 after `\\*`.  So keys are in the order of their UTF-8 text;
others in the order of what they are written as (10 before 9).

Where a command reads what a function writes, and in the output, it is plain text (`text_line`):
str and bytes as they are, other things as JSON without a mark; only a newline, and a tab in a
key, are written as \\n and \\t.  A key or a value that is None is left out with its tab.  Where
a function reads what a command has written, key and value are str; of a line without a tab the
value is "".
"""

from __future__ import annotations

import base64
import io
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from mesos_py.errors import InvalidValue, shown

Key = Any
Value = Any
Mapper = Callable[[str], Iterable[tuple[Key, Value]] | None]
Reducer = Callable[[Key, Iterator[Value]], Iterable[tuple[Key, Value]] | None]

_ESCAPES: Final = {"\\": "\\\\", "\t": "\\t", "\n": "\\n"}
_TABLE: Final = str.maketrans(_ESCAPES)
_JSON: Final = "\\="
_BYTES: Final = "\\:"
_PICKLE: Final = "\\*"
_FOR_READERS: Final = json.JSONEncoder(ensure_ascii=False)
_FOR_FUNCTIONS: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_KEY_TYPES: Final = "str, bytes, int, float, bool, None, or a tuple of these"


def packed(function: Callable[..., Any]) -> bytes:
    """`function` as `Program.function` has it.

    Its module goes along by reference, if it can be imported, else by value (`__main__`), with
    the text of its files for tracebacks.  Raises InvalidValue, with the cause, for what cannot
    be pickled.
    """
    if not callable(function):
        raise InvalidValue("function", function, "cannot be called")
    try:
        return _pickled(function)
    except Exception as error:
        raise InvalidValue(
            "function", getattr(function, "__name__", function), f"cannot be pickled: {error}"
        ) from error


def unpacked(data: bytes) -> Callable[..., Any]:
    """Raises whatever the loading of the function and its modules raises."""
    import cloudpickle

    from frameworks.runtime import sources

    found, texts = cloudpickle.loads(data)
    sources.remember(texts)
    called: Callable[..., Any] = found
    return called


def _pickled(function: Callable[..., Any]) -> bytes:
    from frameworks.runtime import sources

    whole = io.BytesIO()
    pickler = sources.Pickler(whole)
    pickler.dump((function, sources.Texts(pickler.files)))
    return whole.getvalue()


def count(group: str, name: str, amount: int = 1) -> None:
    """Raise a counter of the job, in a function that runs as part of one."""
    sys.stderr.write(f"reporter:counter:{group},{name},{amount}\n")


def set_status(text: str) -> None:
    """What `status` shows for this task."""
    sys.stderr.write(f"reporter:status:{text}\n".replace("\n", " ").rstrip() + "\n")


# ---- Between functions -----------------------------------------------------------------------


def encoded_key(key: Key) -> bytes:
    """Without tabs and newlines; the same bytes for equal keys.  Raises InvalidValue."""
    if type(key) is str:
        return _coded_text(key, "key")
    if type(key) is bytes:
        return _text_bytes(_BYTES + _escaped(_as_text(key)), "key")
    return _text_bytes(_JSON + _json(_stable(key, key)), "key")


def decoded_key(data: bytes) -> Key:
    """Raises InvalidValue for what `encoded_key` does not write."""
    return _decoded(data, "key")


def encoded_value(value: Value) -> bytes:
    """Without tabs and newlines.  Raises InvalidValue for what cannot be pickled."""
    if type(value) is str:
        return _coded_text(value, "value")
    if type(value) is bytes:
        return _text_bytes(_BYTES + _escaped(_as_text(value)), "value")
    if type(value) is int:
        return b"\\=%d" % value
    try:
        return _text_bytes(_JSON + _json(_plain(value)), "value")
    except _NotPlain:
        return _PICKLE.encode() + base64.b64encode(_pickled_value(value))


def decoded_value(data: bytes) -> Value:
    """Raises InvalidValue for what `encoded_value` does not write."""
    return _decoded(data, "value")


# ---- For commands and in the output ------------------------------------------------------------


def text_line(key: Key, value: Value) -> bytes:
    """The record as a line, with its newline.  Raises InvalidValue."""
    if key is None:
        return _shown_value(value) + b"\n"
    if value is None:
        return _shown_key(key) + b"\n"
    return _shown_key(key) + b"\t" + _shown_value(value) + b"\n"


def _shown_key(key: Key) -> bytes:
    return _shown(key if type(key) in (str, bytes) else _stable(key, key), "key").replace(
        b"\t", b"\\t"
    )


def _shown_value(value: Value) -> bytes:
    if value is None:
        return b""
    return _shown(value, "value")


def _shown(value: object, what: str) -> bytes:
    if type(value) is str:
        data = _text_bytes(value, what)
    elif type(value) is bytes:
        data = value
    elif type(value) is int:
        return b"%d" % value
    else:
        try:
            data = _text_bytes(_FOR_READERS.encode(_visible(value)), what)
        except TypeError:
            raise InvalidValue(
                what, value, f"a {_class(value)} cannot be written as text"
            ) from None
    return data.replace(b"\n", b"\\n") if b"\n" in data else data


def _visible(value: object) -> object:
    """For readers: tuples and lists alike, bytes as text."""
    if type(value) is bytes:
        return _as_text(value)
    if isinstance(value, tuple | list):
        return [_visible(part) for part in value]
    if isinstance(value, dict):
        return {
            name if isinstance(name, str) else str(name): _visible(part)
            for name, part in value.items()
        }
    return value


# ---- How -----------------------------------------------------------------------------------------


class _NotPlain(Exception):
    """Has no JSON form that gives the same value back."""


def _stable(key: Key, whole: Key) -> object:
    """As JSON has it, one form for all equal keys."""
    kind = type(key)
    if kind is str or key is None:
        return key
    if kind is bool or kind is int:
        return int(key)
    if kind is float:
        if math.isnan(key):
            raise InvalidValue("key", whole, "NaN is equal to no key, not even to itself")
        return int(key) if key.is_integer() else key
    if kind is bytes:
        return {"b": base64.b64encode(key).decode()}
    if kind is tuple:
        return [_stable(part, whole) for part in key]
    raise InvalidValue("key", whole, f"is or has a {_class(key)}; a key must be {_KEY_TYPES}")


def _plain(value: Value) -> object:
    kind = type(value)
    if kind in (str, int, float, bool) or value is None:
        return value
    if kind is bytes:
        return {"b": base64.b64encode(value).decode()}
    if kind is tuple:
        return [_plain(part) for part in value]
    if kind is list:
        return {"l": [_plain(part) for part in value]}
    if kind is dict:
        return {"d": [[_plain(name), _plain(part)] for name, part in value.items()]}
    raise _NotPlain


def _from_plain(value: Any) -> Value:
    if isinstance(value, list):
        return tuple(_from_plain(part) for part in value)
    if isinstance(value, dict):
        ((kind, inner),) = value.items()
        if kind == "b":
            return base64.b64decode(inner)
        if kind == "l":
            return [_from_plain(part) for part in inner]
        return {_from_plain(name): _from_plain(part) for name, part in inner}
    return value


def _json(value: object) -> str:
    return _FOR_FUNCTIONS.encode(value)


def _decoded(data: bytes, what: str) -> Any:
    if b"\\" not in data:
        return data.decode("utf-8", "surrogateescape")
    if data[:2] == b"\\=" and data[2:].isdigit():
        # Counts are what there is most of.
        return int(data[2:])
    text = data.decode("utf-8", "surrogateescape")
    try:
        if text.startswith(_JSON):
            return _from_plain(json.loads(text[2:]))
        if text.startswith(_BYTES):
            return _unescaped(text[2:]).encode("utf-8", "surrogateescape")
        if text.startswith(_PICKLE):
            return _unpickled_value(base64.b64decode(text[2:], validate=True))
    except ValueError as error:
        raise InvalidValue(what, data, f"was not written by a function: {error}") from None
    return _unescaped(text)


def _pickled_value(value: Value) -> bytes:
    import cloudpickle

    try:
        data: bytes = cloudpickle.dumps(value)
    except Exception as error:
        raise InvalidValue(
            "value", value, f"a {_class(value)} cannot be pickled: {error}"
        ) from error
    return data


def _unpickled_value(data: bytes) -> Value:
    import cloudpickle

    return cloudpickle.loads(data)


def _coded_text(text: str, what: str) -> bytes:
    data = _text_bytes(text, what)
    if b"\\" in data or b"\t" in data or b"\n" in data:
        return _text_bytes(text.translate(_TABLE), what)
    return data


def _escaped(text: str) -> str:
    return text.translate(_TABLE)


def _unescaped(text: str) -> str:
    # What follows a doubled backslash is no escape: so the parts between those, one by one.
    return "\\".join(part.replace("\\t", "\t").replace("\\n", "\n") for part in text.split("\\\\"))


def _as_text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _text_bytes(text: str, what: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise InvalidValue(
            what, text, f"cannot be written as UTF-8: {shown(text[error.start : error.end])}"
        ) from None


def _class(value: object) -> str:
    return type(value).__qualname__
