"""What a task raises, in records for the driver."""

from __future__ import annotations

import contextlib
import pickle
import traceback
from pathlib import Path
from typing import Final

from frameworks.rdd import errors
from frameworks.rdd.executor import pickling
from frameworks.rdd.messages import FetchLost, Raised
from mesos_py.errors import shortened

_OURS: Final = str(Path(errors.__file__).parent)
_RUNTIME: Final = str(Path(errors.__file__).parents[1] / "runtime")
_MAX_MESSAGE: Final = 4000
_MAX_TRACEBACK: Final = 64 << 10
_MAX_EXCEPTION: Final = 1 << 20


def raised(error: BaseException, *, fatal: bool = False) -> Raised:
    """fatal: see the record."""
    kind = type(error)
    return Raised(
        kind=kind.__qualname__ if kind.__module__ == "builtins" else _full_name(kind),
        message=shortened(_text(error), _MAX_MESSAGE),
        traceback=shortened(trimmed(error), _MAX_TRACEBACK),
        exception=_pickled(error),
        fatal=fatal,
    )


def lost(error: errors.FetchFailed) -> FetchLost:
    fields = error.fields
    return FetchLost(
        shuffle_id=int(str(fields["shuffle_id"])),
        map_index=int(str(fields["map_index"])),
        executor_id=str(fields["executor_id"]),
        message=error.message,
    )


def trimmed(error: BaseException) -> str:
    """The traceback without frames of ours: in it, in its causes, and in groups."""
    try:
        whole = traceback.TracebackException.from_exception(error, compact=True)
        _trim(whole, set())
        return "".join(whole.format()).rstrip("\n")
    except Exception as other:
        # A __str__ or __notes__ of the user's that raises.
        return f"{type(error).__qualname__} (its traceback cannot be made: {other!r})"


def _trim(part: traceback.TracebackException, seen: set[int]) -> None:
    if id(part) in seen:
        return
    seen.add(id(part))
    users = [frame for frame in part.stack if not _is_ours(frame.filename)]
    if users:
        part.stack = traceback.StackSummary.from_list(users)
    for other in (part.__cause__, part.__context__, *(part.exceptions or ())):
        if other is not None:
            _trim(other, seen)


def _is_ours(filename: str) -> bool:
    return filename.startswith((_OURS, _RUNTIME))


def _full_name(kind: type[BaseException]) -> str:
    module = "" if kind.__module__ == "__main__" else f"{kind.__module__}."
    return f"{module}{kind.__qualname__}"


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as other:
        return f"(its text cannot be had: {type(other).__qualname__})"


def _pickled(error: BaseException) -> bytes:
    """b"" if it cannot be made again there: many exceptions take other arguments than they
    have in `args`."""
    with contextlib.suppress(Exception):
        data = pickling.dumps(error)
        if len(data) <= _MAX_EXCEPTION and isinstance(pickle.loads(data), BaseException):
            return data
    return b""
