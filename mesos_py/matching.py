"""What fits on which offer.

::

    placed, waiting = match_offers(offers, jobs, lambda job: Resources.of(cpus=1, mem=64))
    for offer, chosen in placed:
        driver.launch_tasks(offer, [task_of(job, offer) for job in chosen])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import TypeVar

from mesos_py.errors import InsufficientResources
from mesos_py.resources import Resources
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
        if not self.left.contains(wanted):
            return False
        self.left = self.left - wanted
        return True

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
) -> tuple[list[tuple[Offer, list[T]]], list[T]]:
    """Put as much of `waiting` as fits on `offers`, in order, spread over them in turn.

    Returns every offer with what goes there (nothing: a launch of no tasks declines it),
    and what is left waiting, in order.  Nothing goes on offers with a `max_task_duration`:
    tasks there are ended in the middle of their work, unless one knows how long they run.
    """
    rooms = [Room(offer) for offer in offers]
    chosen: list[list[T]] = [[] for _ in rooms]
    left: list[T] = []
    # What did not fit anywhere does not fit later either: rooms only get smaller.
    hopeless: set[Resources] = set()
    turn = 0
    for item in waiting:
        need = needs(item)
        place = None if need in hopeless else _next_fit(rooms, need, turn)
        if place is None:
            hopeless.add(need)
            left.append(item)
            continue
        chosen[place].append(item)
        turn = place + 1
    return [(room.offer, items) for room, items in zip(rooms, chosen, strict=True)], left


def _next_fit(rooms: list[Room], need: Resources, start: int) -> int | None:
    for step in range(len(rooms)):
        place = (start + step) % len(rooms)
        if not rooms[place].offer.HasField("max_task_duration") and rooms[place].take(need):
            return place
    return None


__all__ = ["Room", "match_offers", "resources_of"]
