"""How what is in the driver is cut into partitions: in the same places as PySpark does."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import cloudpickle

from frameworks.rdd.errors import NotPicklable
from mesos_py.errors import shown

# So many elements, at most, are never cut apart.
_BATCH = 1024


def slices(elements: Iterable[Any], count: int, batch: int = 0) -> list[bytes]:
    """Pickled partitions, `count` of them.

    A range is cut evenly, and each partition has one element, its part.  Others are taken in
    batches of len // count elements, between 1 and `batch` (or 1,024), and the batches are
    cut evenly.
    Raises NotPicklable, naming the element.
    """
    if isinstance(elements, range):
        bounds = [len(elements) * i // count for i in range(count + 1)]
        return [_pickled([elements[a:b]]) for a, b in pairwise(bounds)]
    items = list(elements)
    size = max(1, min(len(items) // count, batch or _BATCH))
    batches = -(-len(items) // size)
    bounds = [batches * i // count * size for i in range(count + 1)]
    return [_pickled(items[a:b]) for a, b in pairwise(bounds)]


def _pickled(part: list[Any]) -> bytes:
    try:
        return bytes(cloudpickle.dumps(part, protocol=5))
    except NotPicklable:
        raise
    except Exception as error:
        raise NotPicklable(f"{_culprit(part)}: {error}") from error


def _culprit(part: list[Any]) -> str:
    for each in part:
        try:
            cloudpickle.dumps(each, protocol=5)
        except Exception:
            return f"element {shown(each)} of type {type(each).__qualname__} cannot be pickled"
    return "elements cannot be pickled"
