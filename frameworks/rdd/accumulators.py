"""Variables that tasks add to and the driver reads.

In the driver an `Accumulator` is registered by its id; the engine hands `merge` what each
task that counts has added, once per partition of a job.  In a worker, the first use of one
that came with a task's functions starts from zero; `begin` and `added` frame a task.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class AccumulatorParam(Generic[T]):
    """How values of a type are added.  Subclass it for types of your own."""

    def zero(self, value: T) -> T:
        """The neutral value, of the shape of `value`."""
        raise NotImplementedError

    def addInPlace(self, value1: T, value2: T) -> T:
        """The sum; `value1` may be changed and returned."""
        raise NotImplementedError


class AddingAccumulatorParam(AccumulatorParam[Any]):
    """For numbers."""

    def __init__(self, zero_value: complex) -> None:
        self.zero_value = zero_value

    def zero(self, value: Any) -> Any:
        return self.zero_value

    def addInPlace(self, value1: Any, value2: Any) -> Any:
        return value1 + value2


INT_ACCUMULATOR_PARAM = AddingAccumulatorParam(0)
FLOAT_ACCUMULATOR_PARAM = AddingAccumulatorParam(0.0)
COMPLEX_ACCUMULATOR_PARAM = AddingAccumulatorParam(0.0j)

_ids = itertools.count()
_lock = threading.Lock()
_registered: weakref.WeakValueDictionary[int, Accumulator[Any]] = weakref.WeakValueDictionary()
_of_task: dict[int, Accumulator[Any]] = {}


class Accumulator(Generic[T]):
    """Made by SparkContext.accumulator.  Tasks may only add, the driver may also read."""

    def __init__(self, aid: int, value: T, accum_param: AccumulatorParam[T]) -> None:
        self.aid = aid
        self.accum_param = accum_param
        self._value = value
        # In a worker each task starts from zero with its first use.
        self._in_task = False
        self._zero: T = value

    def __reduce__(self) -> tuple[Any, ...]:
        zero = self.accum_param.zero(self._value)
        return _in_task, (self.aid, zero, self.accum_param)

    @property
    def value(self) -> T:
        """Raises RuntimeError in a task: each task knows only what itself has added."""
        if self._in_task:
            raise RuntimeError("Accumulator.value cannot be accessed inside tasks")
        return self._value

    @value.setter
    def value(self, value: T) -> None:
        if self._in_task:
            raise RuntimeError("Accumulator.value cannot be accessed inside tasks")
        self._value = value

    def add(self, term: T) -> None:
        if self._in_task and self.aid not in _of_task:
            _of_task[self.aid] = self
            self._value = self.accum_param.zero(self._zero)
        self._value = self.accum_param.addInPlace(self._value, term)

    def __iadd__(self, term: T) -> Accumulator[T]:
        self.add(term)
        return self

    def __str__(self) -> str:
        return str(self._value)

    def __repr__(self) -> str:
        return f"Accumulator<id={self.aid}, value={self._value}>"


def registered(value: T, accum_param: AccumulatorParam[T] | None) -> Accumulator[T]:
    """A new one, in the driver.

    Raises TypeError if there is no param and the value is no number.
    """
    param: Any = accum_param
    if param is None:
        if isinstance(value, int):
            param = INT_ACCUMULATOR_PARAM
        elif isinstance(value, float):
            param = FLOAT_ACCUMULATOR_PARAM
        elif isinstance(value, complex):
            param = COMPLEX_ACCUMULATOR_PARAM
        else:
            raise TypeError(f"No default accumulator param for type {type(value)}")
    made = Accumulator(next(_ids), value, param)
    with _lock:
        _registered[made.aid] = made
    return made


def merge(updates: Mapping[int, Any]) -> None:
    """In the driver: what one task has added.  Accumulators that nobody holds any more are
    passed over.  Raises what the user's addInPlace raises."""
    for aid, update in updates.items():
        with _lock:
            found = _registered.get(aid)
            if found is not None:
                found.add(update)


def _in_task(aid: int, zero: Any, param: AccumulatorParam[Any]) -> Accumulator[Any]:
    with _lock:
        here = _registered.get(aid)
        if here is None:
            # Kept as long as the functions that use it: those of a stage serve many tasks.
            here = _registered[aid] = Accumulator(aid, zero, param)
            here._zero = zero
            here._in_task = True
        return here


def begin() -> None:
    """In a worker, before a task."""
    _of_task.clear()


def added() -> dict[int, Any]:
    """In a worker, after a task: what it has added, by id."""
    return {aid: each._value for aid, each in _of_task.items()}
