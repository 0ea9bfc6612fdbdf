"""How each framework, in each of its roles, deals with its offers: for metrics and explanations."""

from __future__ import annotations

from typing import Literal, TypeAlias

from master.core.cluster import Cluster
from master.core.records import Framework, Offer, OfferNumbers
from mesos_py.clock import Now

# Of roles; more are forgotten again when nobody has them any more.
MAX_ROLES = 1000
End: TypeAlias = Literal["accepted", "declined", "expired", "rescinded"]


def sent(c: Cluster, framework: Framework, offer: Offer) -> None:
    for numbers in _both(c, framework, offer.role):
        numbers.sent += 1


def ended(c: Cluster, offer: Offer, how: End, now: Now) -> None:
    """The offer is over.  With an answer of the framework its time counts as well."""
    framework = c.frameworks[offer.framework_id]
    for numbers in _both(c, framework, offer.role):
        setattr(numbers, how, getattr(numbers, how) + 1)
        if how in ("accepted", "declined"):
            numbers.answer_s += max(0.0, now.monotonic_s - offer.made_s)


def _both(c: Cluster, framework: Framework, role: str) -> tuple[OfferNumbers, OfferNumbers]:
    own = framework.numbers.get(role)
    if own is None:
        own = framework.numbers[role] = OfferNumbers()
    of_role = c.offer_numbers.get(role)
    if of_role is None:
        if len(c.offer_numbers) >= MAX_ROLES:
            _prune(c)
        of_role = c.offer_numbers[role] = OfferNumbers()
    return own, of_role


def _prune(c: Cluster) -> None:
    used = {role for framework in c.frameworks.values() for role in framework.roles}
    for role in [role for role in c.offer_numbers if role not in used]:
        del c.offer_numbers[role]
