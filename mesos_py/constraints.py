"""Offer constraints: which agents a framework wants to be offered at all.

The form is that of Mesos 1.11 (scheduler.proto, OfferConstraints): per role a list
of groups; an agent passes if all constraints of one group hold.  Attributes that
are not texts pass the text predicates, as in Mesos.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import re2

from mesos_py.errors import InvalidValue
from mesos_py.v1 import scheduler_pb2 as pb
from mesos_py.v1 import types_pb2

HOSTNAME: Final = "hostname"
REGION: Final = "region"
ZONE: Final = "zone"
MAX_PATTERN_CHARS: Final = 1000

_PSEUDO: Final = {
    pb.AttributeConstraint.Selector.HOSTNAME: HOSTNAME,
    pb.AttributeConstraint.Selector.REGION: REGION,
    pb.AttributeConstraint.Selector.ZONE: ZONE,
}


@dataclass(frozen=True, slots=True)
class Host:
    """What constraints look at.  `texts` holds text attributes by name, `others`
    the names of attributes of another type."""

    hostname: str
    texts: Mapping[str, str]
    others: frozenset[str] = frozenset()
    region: str | None = None
    zone: str | None = None


@dataclass(frozen=True, slots=True)
class Term:
    """One predicate on one attribute.  `pattern` is a compiled RE2 or None."""

    pseudo: str | None
    attribute: str | None
    predicate: str
    operand: str
    pattern: re2._Regexp | None = None

    def holds(self, host: Host) -> bool:
        if self.attribute is not None and self.attribute in host.others:
            return self.predicate != "not_exists"
        value = self._value(host)
        match self.predicate:
            case "exists":
                return value is not None
            case "not_exists":
                return value is None
            case "text_equals":
                return value == self.operand
            case "text_not_equals":
                return value is not None and value != self.operand
            case "text_matches":
                return value is not None and self._matches(value)
            case _:
                return value is not None and not self._matches(value)

    def _value(self, host: Host) -> str | None:
        if self.attribute is not None:
            return host.texts.get(self.attribute)
        if self.pseudo == HOSTNAME:
            return host.hostname
        return host.region if self.pseudo == REGION else host.zone

    def _matches(self, value: str) -> bool:
        return self.pattern is not None and self.pattern.fullmatch(value) is not None

    def __str__(self) -> str:
        subject = self.attribute if self.attribute is not None else self.pseudo
        words = self.predicate.removeprefix("text_").replace("_", " ")
        return f"{subject} {words} {self.operand}".rstrip()


@dataclass(frozen=True, slots=True)
class Constraint:
    """Groups of terms: an agent passes if every term of some group holds."""

    groups: tuple[tuple[Term, ...], ...]

    def allows(self, host: Host) -> bool:
        return any(all(term.holds(host) for term in group) for group in self.groups)

    def __str__(self) -> str:
        return " or ".join(" and ".join(str(term) for term in group) for group in self.groups)


def hosts_only(hostnames: list[str]) -> pb.OfferConstraints.RoleConstraints:
    """The wire form of "only these hosts"."""
    selector = pb.AttributeConstraint.Selector(
        pseudoattribute_type=pb.AttributeConstraint.Selector.HOSTNAME
    )
    groups = [
        pb.OfferConstraints.RoleConstraints.Group(
            attribute_constraints=[
                pb.AttributeConstraint(
                    selector=selector,
                    predicate=pb.AttributeConstraint.Predicate(
                        text_equals=pb.AttributeConstraint.Predicate.TextEquals(value=name)
                    ),
                )
            ]
        )
        for name in hostnames
    ]
    return pb.OfferConstraints.RoleConstraints(groups=groups)


def from_proto(
    field: str, message: pb.OfferConstraints, roles: tuple[str, ...]
) -> dict[str, Constraint]:
    """Checked constraints by role.

    Raises InvalidValue for a role that the framework does not have, for no or
    empty groups, a missing selector or predicate, and a pattern that RE2 refuses.
    """
    result: dict[str, Constraint] = {}
    for role, constraints in message.role_constraints.items():
        where = f"{field}.role_constraints[{role}]"
        if role not in roles:
            raise InvalidValue(where, role, "the framework has no such role")
        if not constraints.groups:
            raise InvalidValue(f"{where}.groups", "[]", "must have at least one group")
        groups = []
        for group in constraints.groups:
            if not group.attribute_constraints:
                raise InvalidValue(f"{where}.groups", "[]", "a group must not be empty")
            groups.append(tuple(_term(where, item) for item in group.attribute_constraints))
        result[role] = Constraint(tuple(groups))
    return result


def _term(where: str, item: pb.AttributeConstraint) -> Term:
    pseudo: str | None = None
    attribute: str | None = None
    if item.selector.WhichOneof("selector") == "attribute_name":
        attribute = item.selector.attribute_name
    else:
        pseudo = _PSEUDO.get(item.selector.pseudoattribute_type)
    if pseudo is None and not attribute:
        raise InvalidValue(f"{where}.selector", "", "must name an attribute or pseudo-attribute")
    predicate = item.predicate.WhichOneof("predicate")
    if predicate is None:
        raise InvalidValue(f"{where}.predicate", "", "is missing")
    chosen = getattr(item.predicate, predicate)
    operand = getattr(chosen, "value", getattr(chosen, "regex", ""))
    pattern = None
    if predicate in ("text_matches", "text_not_matches"):
        pattern = _compiled(where, operand)
    return Term(pseudo, attribute, predicate, operand, pattern)


def _compiled(where: str, text: str) -> re2._Regexp:
    if len(text) > MAX_PATTERN_CHARS:
        raise InvalidValue(where, text, f"a pattern has at most {MAX_PATTERN_CHARS} characters")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 1 << 16
    try:
        return re2.compile(text, options)
    except re2.error as error:
        raise InvalidValue(where, text, f"is no usable pattern: {error}") from None


def host_of(info: types_pb2.AgentInfo) -> Host:
    """What constraints see of an agent."""
    texts = {a.name: a.text.value for a in info.attributes if a.type == types_pb2.Value.TEXT}
    others = frozenset(a.name for a in info.attributes if a.type != types_pb2.Value.TEXT)
    domain = info.domain.fault_domain
    return Host(
        hostname=info.hostname,
        texts=texts,
        others=others,
        region=domain.region.name or None,
        zone=domain.zone.name or None,
    )
