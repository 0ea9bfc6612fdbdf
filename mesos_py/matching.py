"""What fits on which offer.

::

    placed, waiting = match_offers(offers, jobs, lambda job: Resources.of(cpus=1, mem=64))
    for offer, chosen in placed:
        driver.launch_tasks(offer, [task_of(job, offer) for job in chosen])

A need is met by what has its names: what is reserved has names of its own (`reserved_for`),
and so has a persistent volume, which is told by its id, whatever path a need has for it.
`Room.take_any` takes amounts by their plain names, reserved or not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import TypeVar

from mesos_py import ranges as rng
from mesos_py.conversions import with_volumes_as
from mesos_py.errors import InsufficientResources
from mesos_py.reserved import is_volume, plain_name, stack_of
from mesos_py.resources import EMPTY, Resources, total
from mesos_py.v1.types_pb2 import Offer

T = TypeVar("T")


def resources_of(offer: Offer) -> Resources:
    """What an offer holds."""
    return Resources.from_proto("offer.resources", offer.resources)


class Room:
    """An offer while tasks are put on it; `left` is what they leave."""

    def __init__(self, offer: Offer) -> None:
        self.offer = offer
        self.left = resources_of(offer)

    def take(self, wanted: Resources) -> bool:
        """Take `wanted` away; False, and nothing is taken, if it is not there."""
        wanted = with_volumes_as(self.left, wanted)
        if not self.left.contains(wanted):
            return False
        self.left = self.left - wanted
        return True

    def take_any(self, wanted: Resources) -> Resources | None:
        """Take amounts by their plain names: what is reserved first, the narrowest
        reservation before the wider ones, then what is not.  Volumes stay.

        Returns what was taken, under the names by which a task has to ask for it, or None,
        and nothing is taken, if there is not as much.
        """
        missing = wanted.require_unreserved("wanted")
        names = [name for name in self.left.names() if not is_volume(name)]
        parts: list[Resources] = []
        for name in sorted(names, key=lambda name: -len(stack_of(name))):
            part = _part(self.left, name, missing)
            parts.append(part)
            missing = missing - part.plain
        if missing:
            return None
        taken = total(parts)
        self.left = self.left - taken
        return taken

    def take_some(self, *, ports: int = 0, **amounts: float | Decimal) -> Resources | None:
        """Take amounts and any `ports` ports; what was taken, or None if it is not there.

        Which ports they are is in the result: `taken.pick("ports", n)`.
        """
        wanted = Resources.of(None, **amounts)
        if ports:
            try:
                numbers = self.left.pick("ports", ports)
            except InsufficientResources:
                return None
            wanted = wanted + Resources.of(ports=[(number, number) for number in numbers])
        return wanted if self.take(wanted) else None


def match_offers(
    offers: Iterable[Offer],
    waiting: Iterable[T],
    needs: Callable[[T], Resources],
    *,
    reserved: bool = False,
) -> tuple[list[tuple[Offer, list[T]]], list[T]]:
    """Put as much of `waiting` as fits on `offers`, in order, spread over them in turn.

    Returns every offer with what goes there (nothing: a launch of no tasks declines it),
    and what is left waiting, in order.  Nothing goes on offers with a `max_task_duration`:
    tasks there are ended in the middle of their work, unless one knows how long they run.

    reserved: needs have plain names, and what of an offer is reserved counts as well.  Under
        which names a task has to ask for it, `Room(offer).take_any(need)` says, for one
        after the other of those that were put there.
    """
    rooms = [Room(offer) for offer in offers]
    chosen: list[list[T]] = [[] for _ in rooms]
    left: list[T] = []
    # What did not fit anywhere does not fit later either: rooms only get smaller.
    hopeless: set[Resources] = set()
    turn = 0
    for item in waiting:
        need = needs(item)
        place = None if need in hopeless else _next_fit(rooms, need, turn, reserved)
        if place is None:
            hopeless.add(need)
            left.append(item)
            continue
        chosen[place].append(item)
        turn = place + 1
    return [(room.offer, items) for room, items in zip(rooms, chosen, strict=True)], left


def _next_fit(rooms: list[Room], need: Resources, start: int, reserved: bool) -> int | None:
    for step in range(len(rooms)):
        place = (start + step) % len(rooms)
        room = rooms[place]
        if room.offer.HasField("max_task_duration"):
            continue
        if room.take_any(need) is not None if reserved else room.take(need):
            return place
    return None


def _part(there: Resources, key: str, wanted: Resources) -> Resources:
    """What there is under `key` of what is wanted under its plain name."""
    name = plain_name(key)
    if key in there.scalars:
        milli = min(there.scalars[key], wanted.scalars.get(name, 0))
        return Resources({key: milli}) if milli else EMPTY
    if key in there.ranges:
        spans = rng.intersection(there.ranges[key], wanted.ranges.get(name, ()))
        return Resources({}, {key: spans}) if spans else EMPTY
    items = there.sets[key] & wanted.sets.get(name, frozenset())
    return Resources({}, {}, {key: items}) if items else EMPTY


__all__ = ["Room", "match_offers", "resources_of"]
