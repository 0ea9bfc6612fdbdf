"""What in an object graph cannot be pickled, and by what names it is reached."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final

from mesos_py.errors import shown

# A path longer than this helps nobody, and cycles end somewhere.
MOST_STEPS: Final = 40
# Of a large list or dict only so many are looked at.
MOST_ITEMS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Culprit:
    """path: the names by which it is reached, from the outside in."""

    obj: object
    path: tuple[str, ...]
    error: BaseException
    place: str = ""

    @property
    def described(self) -> str:
        kind = type(self.obj)
        name = kind.__qualname__
        if kind.__module__ != "builtins":
            name = f"{kind.__module__}.{name}"
        return f"an object of type {name}, {shown(_repr(self.obj), 120)}"


def _never(_: object) -> bool:
    return False


def find(
    name: str,
    obj: object,
    dumps: Callable[[object], bytes],
    *,
    place: str = "",
    enough: Callable[[object], object] = _never,
) -> Culprit | None:
    """The innermost object that cannot be pickled; None if this one can be.

    It follows what pickling fails with: at each step to the first part of the object that
    fails by itself, until none of the parts does, or the object is `enough` for people.
    """
    error = _failure(obj, dumps)
    if error is None:
        return None
    path: tuple[str, ...] = (name,)
    seen = {id(obj)}
    for _ in range(MOST_STEPS):
        if enough(obj):
            break
        for step, part in _parts(obj):
            if id(part) in seen or (inner := _failure(part, dumps)) is None:
                continue
            seen.add(id(part))
            obj, error, path = part, inner, (*path, step)
            break
        else:
            break
    return Culprit(obj, path, error, place)


def _failure(obj: object, dumps: Callable[[object], bytes]) -> BaseException | None:
    try:
        dumps(obj)
    except Exception as error:
        return error
    return None


def _parts(obj: object) -> Iterator[tuple[str, object]]:
    """What it is made of, with names that a user knows."""
    if isinstance(obj, types.FunctionType):
        yield from _of_function(obj)
    elif isinstance(obj, types.MethodType):
        yield f"the object of method '{obj.__name__}'", obj.__self__
        yield f"method '{obj.__name__}'", obj.__func__
    elif isinstance(obj, functools.partial):
        yield "function of a partial", obj.func
        for number, each in enumerate(obj.args):
            yield f"argument {number} of a partial", each
        for name, each in obj.keywords.items():
            yield f"argument '{name}' of a partial", each
    elif isinstance(obj, Mapping):
        for _, (key, value) in zip(range(MOST_ITEMS), obj.items(), strict=False):
            yield f"key {shown(key, 40)}", key
            yield f"item {shown(key, 40)}", value
    elif isinstance(obj, (Sequence, Set)) and not isinstance(obj, (str, bytes, bytearray)):
        for number, each in zip(range(MOST_ITEMS), obj, strict=False):
            yield f"item {number}", each
    if isinstance(obj, type):
        yield from _of_class(obj)
    elif not isinstance(obj, types.FunctionType):
        yield from _of_object(obj)


def _of_function(function: types.FunctionType) -> Iterator[tuple[str, object]]:
    where = f"'{function.__qualname__}'"
    code = function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            content = cell.cell_contents
        except ValueError:
            continue  # not assigned yet
        yield f"variable '{name}' captured by function {where}", content
    for name in _global_names(code):
        if name in function.__globals__:
            yield f"global '{name}' used by function {where}", function.__globals__[name]
    for number, each in enumerate(function.__defaults__ or ()):
        yield f"default {number} of function {where}", each
    for name, each in (function.__kwdefaults__ or {}).items():
        yield f"default '{name}' of function {where}", each
    for name, each in vars(function).items():
        yield f"attribute '{name}' of function {where}", each


def _global_names(code: types.CodeType) -> Iterator[str]:
    """Of it and of the functions within."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _global_names(constant)


def _of_class(kind: type) -> Iterator[tuple[str, object]]:
    for name, each in vars(kind).items():
        if not name.startswith("__"):
            yield f"attribute '{name}' of class '{kind.__qualname__}'", _unwrapped(each)


def _unwrapped(attribute: object) -> object:
    return getattr(attribute, "__func__", attribute)


def _of_object(obj: object) -> Iterator[tuple[str, object]]:
    """Its attributes, then its class if that is the user's own."""
    kind = type(obj)
    if kind.__reduce__ is not object.__reduce__:
        return  # its attributes are not what is pickled of it
    names: dict[str, Any] = dict(vars(obj)) if hasattr(obj, "__dict__") else {}
    for base in kind.__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(obj, name):
                names.setdefault(name, getattr(obj, name))
    for name, each in names.items():
        yield f"attribute '{name}' of a {kind.__qualname__}", each
    if kind.__module__ == "__main__" or "<locals>" in kind.__qualname__:
        yield f"class '{kind.__qualname__}'", kind


def _repr(obj: object) -> str:
    try:
        return repr(obj)
    except Exception:
        return "whose repr fails"


__all__ = ["Culprit", "find"]
