"""From what a person types to the one thing that is meant.

Wherever an id is wanted, these do, in this order: the id itself, a name, the part
of the id after its last dash ("S0", "0001"), the beginning of the id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Final, NamedTuple, TypeVar

from mesos_py.errors import Conflict, NotFound

T = TypeVar("T")
MAX_LISTED: Final = 8


class Named(NamedTuple):
    """What can be meant: its id, its name ("" for none), and text to tell it by."""

    id: str
    name: str
    detail: str = ""


def resolve(kind: str, text: str, things: Sequence[T], named: Callable[[T], Named]) -> T:
    """The one of `things` that `text` means.

    Raises NotFound when there is none, and Conflict, listing them, when there are
    several.
    """
    if not text:
        raise NotFound(kind, text, "must not be empty")
    every = [(thing, named(thing)) for thing in things]
    ways: list[Callable[[Named], bool]] = [
        lambda each: each.id == text,
        lambda each: each.name == text,
        lambda each: tail(each.id) == text,
        lambda each: each.id.startswith(text),
    ]
    for fits in ways:
        found = [(thing, each) for thing, each in every if fits(each)]
        if len(found) == 1:
            return found[0][0]
        if found:
            raise _ambiguous(kind, text, [each for _, each in found])
    raise NotFound(kind, text, f"no {kind} has this id, name, or beginning of an id")


def _ambiguous(kind: str, text: str, found: list[Named]) -> Conflict:
    listed = [f"{each.id}{f' ({each.detail})' if each.detail else ''}" for each in found]
    more = f" and {len(listed) - MAX_LISTED} more" if len(listed) > MAX_LISTED else ""
    return Conflict(
        f"{kind} {text!r} means {len(found)}: {', '.join(listed[:MAX_LISTED])}{more}",
        kind=kind,
        name=text,
        ids=[each.id for each in found],
    )


def tail(full_id: str) -> str:
    """The part after the last dash: "S0" of an agent's id, "0001" of a framework's."""
    return full_id.rpartition("-")[2]


def short_ids(ids: Collection[str]) -> dict[str, str]:
    """How each id can be shown on a narrow screen: its tail, if no other has the same."""
    tails = Counter(tail(each) for each in set(ids))
    return {each: tail(each) if tails[tail(each)] == 1 else each for each in ids}
