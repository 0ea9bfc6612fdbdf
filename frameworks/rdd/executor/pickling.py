"""Pickles of users' objects: results, elements of data sets, pairs of a shuffle."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, Final

PROTOCOL: Final = 5

Buffers = Callable[[pickle.PickleBuffer], Any]


def dumps(value: Any, buffers: Buffers | None = None) -> bytes:
    """buffers: as pickle's `buffer_callback`; what it was called with may be of an attempt that
    failed, if `restart` is among its attributes that is called then.

    What pickle cannot do by itself (functions, and objects whose classes are the user's
    program's own) cloudpickle does.  Raises what that raises.
    """
    try:
        return pickle.dumps(value, PROTOCOL, buffer_callback=buffers)
    except Exception:
        import cloudpickle

        if (restart := getattr(buffers, "restart", None)) is not None:
            restart()
        return bytes(cloudpickle.dumps(value, PROTOCOL, buffer_callback=buffers))
