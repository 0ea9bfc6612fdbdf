"""Offers as the brain has them, and what is asked back."""

from __future__ import annotations

from frameworks.mapreduce.core.orders import Room
from mesos_py import Offer, resources_of
from mesos_py.errors import InvalidResources


def room_of(offer: Offer, rack_attribute: str, now_s: float) -> Room | None:
    """None for one that holds what we do not understand.

    A machine that is to be absent takes only what is over by then.
    """
    try:
        resources = resources_of(offer)
    except InvalidResources:
        return None
    rack = next(
        (one.text.value for one in offer.attributes if one.name == rack_attribute),
        "",
    )
    return Room(
        offer.id.value,
        offer.agent_id.value,
        offer.hostname,
        rack,
        resources,
        _most_s(offer, now_s),
    )


def _most_s(offer: Offer, now_s: float) -> float | None:
    """How long a task may take there."""
    limits: list[float] = []
    if offer.HasField("max_task_duration"):
        limits.append(offer.max_task_duration.nanoseconds / 1e9)
    if offer.HasField("unavailability"):
        limits.append(max(0.0, offer.unavailability.start.nanoseconds / 1e9 - now_s))
    return min(limits, default=None)


__all__ = ["room_of"]
