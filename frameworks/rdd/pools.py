"""Pools of jobs as Spark's allocation file declares them (Job Scheduling, Configuring Pools)."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from frameworks.rdd import properties
from frameworks.rdd.core.rules import Pool
from mesos_py.errors import InvalidValue

_MODES: Final = {"FIFO": False, "FAIR": True}
# A file that somebody has written; one that is larger is not what was meant.
_MAX_BYTES: Final = 1 << 20


def read(path: str) -> dict[str, Pool]:
    """By name, those that the file names; none for an empty path.

    Raises InvalidValue that names the property and the file, and of a pool its name and member:
    where Spark goes on with a default and a line in its log, a wrong share would go unnoticed.
    """
    if not path:
        return {}
    try:
        with Path(path.removeprefix("file://")).open("rb") as file:
            text = file.read(_MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise InvalidValue(
            properties.ALLOCATION_FILE.name, path, f"cannot be read: {error}"
        ) from error
    if len(text) > _MAX_BYTES:
        raise InvalidValue(properties.ALLOCATION_FILE.name, path, f"has over {_MAX_BYTES} bytes")
    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError) as error:
        raise InvalidValue(properties.ALLOCATION_FILE.name, path, f"is no XML: {error}") from error
    made: dict[str, Pool] = {}
    for element in root.iter("pool"):
        name = element.get("name", "")
        where = f"{path}: pool {name!r}"
        if not name or name in made:
            raise InvalidValue(where, name, "is there twice" if name else "has no name")
        made[name] = _pool(element, where)
    return made


def _pool(element: ElementTree.Element, where: str) -> Pool:
    given = {child.tag: (child.text or "").strip() for child in element}
    mode = given.get("schedulingMode", "FIFO").upper()
    if mode not in _MODES:
        raise InvalidValue(f"{where}: schedulingMode", mode, "is neither FIFO nor FAIR")
    weight = _whole(given.get("weight", "1"), f"{where}: weight", 1)
    min_share = _whole(given.get("minShare", "0"), f"{where}: minShare", 0)
    return Pool(weight=weight, min_share=min_share, fair=_MODES[mode])


def _whole(text: str, where: str, least: int) -> int:
    if not (text.isascii() and text.isdecimal()) or len(text) > 9 or int(text) < least:
        raise InvalidValue(where, text, f"must be a whole number from {least} on")
    return int(text)


__all__ = ["read"]
