"""Parts that can be chosen by name: ours first, then other distributions' entry points.

A built-in is named by the text "module:attribute", so that what is not chosen is
not imported.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from mesos_py.errors import InvalidValue

Factory = Callable[..., Any]


def names(group: str, builtins: Mapping[str, str]) -> list[str]:
    """All names that `resolve` knows, sorted."""
    return sorted({*builtins, *(entry.name for entry in entry_points(group=group))})


def resolve(
    group: str, builtins: Mapping[str, str], name: str, field: str | None = None
) -> Factory:
    """The factory called `name`: a class or function that makes the part.

    A built-in cannot be replaced by an entry point of the same name.  `field` is where
    the name was given, if not by the group's own.  Raises InvalidValue for an unknown
    name (listing the known ones) and for a plugin
    that cannot be loaded or is not unique (naming the distribution).
    """
    if name in builtins:
        return _load(group, name, builtins[name], "mesos-py")
    found = _distinct(entry for entry in entry_points(group=group) if entry.name == name)
    if not found:
        known = ", ".join(names(group, builtins)) or "none"
        raise InvalidValue(field or group, name, f"is not known; known are: {known}")
    if len(found) > 1:
        owners = " and ".join(sorted(_owner(entry) for entry in found))
        raise InvalidValue(group, name, f"is provided by more than one distribution: {owners}")
    return _load(group, name, found[0].value, _owner(found[0]))


def _distinct(entries: Any) -> list[EntryPoint]:
    # A distribution that is found twice on sys.path is still one.
    return list({(_owner(entry), entry.value): entry for entry in entries}.values())


def _owner(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else "an unknown distribution"


def _load(group: str, name: str, value: str, owner: str) -> Factory:
    module, _, attribute = value.partition(":")
    try:
        found: object = importlib.import_module(module.strip())
        # "extras" in square brackets are allowed by the entry point format.
        for part in attribute.partition("[")[0].strip().split("."):
            found = getattr(found, part)
    except Exception as error:
        # Importing runs foreign code: it can fail in any way.
        reason = f"{value} of {owner} cannot be loaded: {type(error).__name__}: {error}"
        raise InvalidValue(group, name, reason) from error
    if not callable(found):
        raise InvalidValue(group, name, f"{value} of {owner} is not a class or function")
    return found
