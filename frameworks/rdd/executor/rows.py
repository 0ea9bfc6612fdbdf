"""Small numpy arrays of one kind, as elements or in pairs, packed as one big array.

Pickled one by one, each takes microseconds to be made again, more than most programs do with
it.  Whoever reads them gets arrays of his own, as if they had been pickled.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy

# Bigger ones are worth a buffer of their own.
MAX_BYTES: Final = 4 << 10
_LEAST: Final = 4
_MAX_COLUMNS: Final = 8
_KINDS: Final = "biufc"


class Rows:
    """Is unpickled as the list of its rows."""

    def __init__(self, array: numpy.ndarray[Any, Any]) -> None:
        self._array = array

    def __reduce__(self) -> tuple[Any, ...]:
        return rows, (self._array,)


class Columns:
    """Is unpickled as a list of tuples."""

    def __init__(self, columns: list[Any]) -> None:
        self._columns = columns

    def __reduce__(self) -> tuple[Any, ...]:
        return tuples, tuple(self._columns)


def rows(array: numpy.ndarray[Any, Any]) -> list[Any]:
    # What is read may be shared and read-only; small arrays are everyone's own.
    return list(array.copy())


def tuples(*columns: list[Any]) -> list[tuple[Any, ...]]:
    return list(zip(*columns, strict=True))


def packed(values: list[Any]) -> Any:
    """What is pickled instead of the list, and becomes an equal one; the list itself if it is
    of another kind."""
    numpy = sys.modules.get("numpy")
    if numpy is None or len(values) < _LEAST:
        return values
    array = numpy.ndarray
    first = values[0]
    if type(first) is array:
        return _of_arrays(values, array, numpy)
    if (
        type(first) is tuple
        and 0 < len(first) <= _MAX_COLUMNS
        and any(type(each) is array for each in first)
        and set(map(type, values)) == {tuple}
        and set(map(len, values)) == {len(first)}
    ):
        columns = [list(column) for column in zip(*values, strict=True)]
        made = [
            _of_arrays(column, array, numpy) if type(column[0]) is array else column
            for column in columns
        ]
        if any(type(each) is Rows for each in made):
            return Columns(made)
    return values


def _of_arrays(values: list[Any], array: type, numpy: Any) -> Any:
    first = values[0]
    if (
        not 0 < first.nbytes < MAX_BYTES
        or first.ndim == 0
        or first.dtype.kind not in _KINDS
        or not first.dtype.isnative
        or not first.flags.c_contiguous
        or set(map(type, values)) != {array}
    ):
        return values
    shape, kind = first.shape, first.dtype
    if any(each.shape != shape or each.dtype != kind for each in values):
        return values
    if not all(each.flags.c_contiguous for each in values):
        return values
    return Rows(numpy.stack(values))
