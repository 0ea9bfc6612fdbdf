"""Stages as bytes, and what to say when something in them cannot be sent.

Nodes hold their parents, and a program that iterates makes chains of thousands of them: too
deep for pickle, which recurses.  So a stage is pickled as a list of nodes without parents,
and the numbers of each one's parents in that list.
"""

from __future__ import annotations

import copy
import io
import pickle
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from frameworks.rdd.blaming import Culprit, find
from frameworks.rdd.core.stages import Plan
from frameworks.rdd.errors import NotPicklable
from frameworks.rdd.executor import frames
from frameworks.rdd.executor.pickling import Buffers
from frameworks.rdd.messages import StageWork
from frameworks.rdd.nodes import Node, ShuffleDependency
from frameworks.runtime import sources
from mesos_py import logs
from mesos_py.errors import shortened

log = logs.get("rdd.closures")

# Of functions that our own modules make of users' no text is needed.
_OURS: Final = str(Path(__file__).parent)

T = TypeVar("T")

# What is larger is sent once more for each stage, to each executor: a broadcast is not.
LARGE_BYTES: Final = 1 << 20

# What a user's function may need, and each node of a chain.
FRAMES: Final = 900
FRAMES_PER_NODE: Final = 12

_DRIVER_ONLY: Final[dict[str, str]] = {
    "RDD": (
        "an RDD cannot be used inside a function that runs in tasks (in rdd1.map(lambda x: "
        "rdd2.count() * x), say): only the driver has transformations and actions. Collect "
        "what is needed first, and use the result; or join the two"
    ),
    "SparkContext": (
        "a SparkContext cannot be used inside a function that runs in tasks: only the driver has it"
    ),
}


class _Pickler(sources.Pickler):
    """One that refuses what only the driver has, with a text that teaches."""

    def reducer_override(self, obj: Any) -> Any:
        if (teaching := driver_only(obj)) is not None:
            raise NotPicklable(teaching)
        return super().reducer_override(obj)


def driver_only(obj: object) -> str | None:
    """Why it must not be sent, if it is something of the driver's."""
    for kind in type(obj).__mro__:
        if kind.__module__.startswith("frameworks.rdd.") and kind.__name__ in _DRIVER_ONLY:
            return _DRIVER_ONLY[kind.__name__]
    return None


def dumps(obj: object, buffers: Buffers | None = None) -> bytes:
    """By cloudpickle; what the driver's program itself defines goes along.  Raises whatever
    pickling raises, and NotPicklable."""
    content = io.BytesIO()
    _Pickler(content, protocol=5, buffer_callback=buffers).dump(obj)
    return content.getvalue()


def _dumps_with_sources(parts: Sequence[Any]) -> bytes:
    """What is unpickled as `assemble` of the parts and the texts of their files."""
    content = io.BytesIO()
    pickler = _Pickler(content, protocol=5)
    pickler.dump(_Flat(*parts, sources.Texts(pickler.files, _OURS)))
    return content.getvalue()


def pack(
    plan: Plan, *, shuffle: ShuffleDependency | None = None, function: Any = None, what: str = ""
) -> bytes:
    """The blob of DefineStage: pickle.loads makes the `StageWork` of it.

    what: the action, for people.  Raises NotPicklable, naming the object that cannot be sent
    and where it hangs; tells if the whole is large.
    """
    numbers = {node.id: number for number, node in enumerate(plan.nodes)}
    links = [
        () if node.checkpoint else tuple(numbers[parent.id] for parent in node.parents)
        for node in plan.nodes
    ]
    try:
        blob = _dumps_with_sources(
            ([_alone(node) for node in plan.nodes], links, shuffle, function)
        )
    except Exception as error:
        raise _explained(plan, shuffle, function, what, error) from error
    if len(blob) > LARGE_BYTES:
        log.warning(
            "large closure: what it captures is sent to every executor; use a broadcast",
            action=what or plan.node.name,
            mb=round(len(blob) / (1 << 20), 1),
        )
    return blob


def pack_value(value: object) -> bytes:
    """The content of a broadcast, in the form that workers map.  Raises NotPicklable."""
    try:
        return frames.one(value, dumps)
    except Exception as error:
        culprit = find("the value", value, dumps, enough=driver_only)
        if culprit is None:
            raise NotPicklable(f"a broadcast cannot be sent: {error}") from error
        raise _named(culprit, "a broadcast cannot be sent to workers") from error


class _Flat:
    """Becomes a StageWork where it is unpickled."""

    def __init__(self, *parts: Any) -> None:
        self._parts = parts

    def __reduce__(self) -> tuple[Any, ...]:
        return assemble, self._parts


def assemble(
    nodes: Sequence[Node],
    links: Sequence[tuple[int, ...]],
    shuffle: ShuffleDependency | None,
    function: Any,
    texts: dict[str, str],
) -> StageWork:
    """Of what `pack` took apart, where it is to be computed: a chain of nodes is as many
    iterators within each other, so Python's limit of recursion grows with it."""
    sources.remember(texts)
    needed = FRAMES + FRAMES_PER_NODE * len(nodes)
    if sys.getrecursionlimit() < needed:
        sys.setrecursionlimit(needed)
    for node, parents in zip(nodes, links, strict=True):
        node.parents = tuple(nodes[number] for number in parents)
    return StageWork(nodes[-1], shuffle, function)


def _alone(node: Node) -> Node:
    """A copy without parents."""
    alone = copy.copy(node)
    alone.parents = ()
    if node.checkpoint:
        alone.shuffle = None
    return alone


# ---- What to say ---------------------------------------------------------------------------


def _explained(
    plan: Plan,
    shuffle: ShuffleDependency | None,
    function: Any,
    what: str,
    error: Exception,
) -> NotPicklable:
    """The error for the user: who cannot be pickled, and by what it is reached."""
    culprit = _culprit(plan, shuffle, function)
    if culprit is None:
        text = f"cannot be sent to workers: {type(error).__name__}: {shortened(error)}"
        return NotPicklable(f"{what or 'a function'} {text}")
    return _named(culprit, "cannot be sent to workers")


def _named(culprit: Culprit, what: str) -> NotPicklable:
    place = f" ({culprit.place})" if culprit.place else ""
    teaching = driver_only(culprit.obj)
    said = teaching or f"{type(culprit.error).__name__}: {shortened(culprit.error)}"
    return NotPicklable(
        f"{what}: {culprit.described}{place}, reached by {' -> '.join(culprit.path)}: {said}",
        path=culprit.path,
    )


def _culprit(plan: Plan, shuffle: ShuffleDependency | None, function: Any) -> Culprit | None:
    for name, part, place in _parts(plan, shuffle, function):
        if (culprit := find(name, part, dumps, place=place, enough=driver_only)) is not None:
            return culprit
    return None


def _parts(
    plan: Plan, shuffle: ShuffleDependency | None, function: Any
) -> Iterable[tuple[str, object, str]]:
    """(what it is, the part itself, where the user made it)"""
    if function is not None:
        yield "the action's function", function, ""
    for node in reversed(plan.nodes):
        name = f"{node.name or type(node).__name__} (RDD {node.id})"
        yield name, _alone(node), node.place
    if shuffle is not None:
        yield f"shuffle {shuffle.shuffle_id}", shuffle, ""


# ---- Python versions -----------------------------------------------------------------------


def python_mismatch(python: tuple[int, int, int]) -> str:
    """Why an executor of this version is of no use to this driver; "" if it is.

    Functions travel as byte code, which is the same only within a minor version.
    """
    ours = sys.version_info[:3]
    if python[:2] == ours[:2]:
        return ""
    return (
        f"the driver runs Python {'.'.join(map(str, ours))} and the executor "
        f"{'.'.join(map(str, python))}: functions can only be sent between the same minor "
        "version; set PYSPARK_PYTHON, or spark.pyspark.python, to a Python of the driver's version"
    )


def load_exception(pickled: bytes) -> BaseException | None:
    """What a task has raised, if it could be brought here."""
    if not pickled:
        return None
    try:
        found = pickle.loads(pickled)
    except Exception:
        log.debug("exception of a task cannot be unpickled", exc_info=True)
        return None
    return found if isinstance(found, BaseException) else None


__all__ = [
    "LARGE_BYTES",
    "assemble",
    "driver_only",
    "dumps",
    "load_exception",
    "pack",
    "pack_value",
    "python_mismatch",
]
