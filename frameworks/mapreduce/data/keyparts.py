"""Parts of keys, named as `sort -k` names them: `-k1.2,3nr`.

`-kF[.C][,G[.D]]`: from byte C (from 1) of field F to byte D of field G; without D to the end
of that field, without G to the end of the key.  n: by its number at the front (blanks, a minus
sign, digits with a decimal point; 0 if there is none).  r: the other way round.  n and r before
all -k, or alone, hold for each part that has none of its own.  As in `sort`, a part that begins
behind the key's end is empty, and bytes are counted on beyond the end of a field.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from frameworks.mapreduce.data.blocks import Positions, nth
from mesos_py.errors import InvalidValue

_SPEC: Final = re.compile(r"(\d{1,6})(?:\.(\d{1,9}))?([nr]*)(?:,(\d{1,6})(?:\.(\d{1,9}))?([nr]*))?")


@dataclass(frozen=True, slots=True)
class KeyPart:
    """Fields and bytes count from 1.  end_field 0: to the key's end; end_byte 0: to the end
    of end_field."""

    field: int = 1
    byte: int = 1
    end_field: int = 0
    end_byte: int = 0
    numeric: bool = False
    reverse: bool = False

    def of(self, key: bytes, separator: bytes) -> bytes:
        """This part of a key."""
        starts = [0]
        ends = []
        for match in re.finditer(re.escape(separator), key):
            ends.append(match.start())
            starts.append(match.end())
        ends.append(len(key))
        begin = starts[self.field - 1] if self.field <= len(starts) else len(key)
        begin = min(begin + self.byte - 1, len(key))
        if not self.end_field or self.end_field > len(starts):
            return key[begin:]
        if not self.end_byte:
            return key[begin : ends[self.end_field - 1]]
        return key[begin : min(starts[self.end_field - 1] + self.end_byte, len(key))]

    def spans(
        self, found: Positions, width: int, starts: Positions, limits: Positions
    ) -> tuple[Positions, Positions]:
        """Where this part of each key begins and ends; the keys go from starts to limits, and
        separators, `width` bytes each, are at `found`."""

        def begin(field: int) -> Positions:
            if field == 1:
                return starts
            return np.minimum(nth(found, width, starts, limits, field - 1) + width, limits)

        first = np.minimum(begin(self.field) + (self.byte - 1), limits)
        if not self.end_field:
            return first, limits
        if self.end_byte:
            last = np.minimum(begin(self.end_field) + self.end_byte, limits)
        else:
            last = nth(found, width, starts, limits, self.end_field)
        return first, np.maximum(first, last)


def parse(name: str, text: str) -> tuple[KeyPart, ...]:
    """The parts in options like "-k1,1 -k2,2nr" or "-nr"; () if there is nothing in them.
    Raises InvalidValue that names the property and what is wrong in it."""
    parts: list[KeyPart] = []
    common = ""
    rest = text.split()
    while rest:
        word = rest.pop(0)
        if word == "-k" and rest:
            word += rest.pop(0)
        if word.startswith("-k"):
            parts.append(_part(name, text, word[2:]))
        elif re.fullmatch("-[nr]+", word):
            common += word[1:]
        else:
            raise InvalidValue(name, text, f"{word!r} is none of -kF[.C][,G[.D]], -n and -r")
    if not parts:
        parts = [KeyPart()] if common else []
    return tuple(_with(part, common) for part in parts)


def _part(name: str, text: str, spec: str) -> KeyPart:
    found = _SPEC.fullmatch(spec)
    if found is None:
        raise InvalidValue(name, text, f"-k{spec} is not -kF[.C][nr][,G[.D][nr]]")
    field, byte, first, end_field, end_byte, last = found.groups()
    numbers = (int(field), int(byte or 1), int(end_field or 1), int(end_byte or 0))
    if 0 in numbers[:3]:
        raise InvalidValue(name, text, f"-k{spec}: fields and bytes count from 1")
    flags = first + (last or "")
    return KeyPart(
        field=numbers[0],
        byte=numbers[1],
        end_field=numbers[2] if end_field else 0,
        end_byte=numbers[3],
        numeric="n" in flags,
        reverse="r" in flags,
    )


def _with(part: KeyPart, common: str) -> KeyPart:
    if part.numeric or part.reverse:
        return part
    return replace(part, numeric="n" in common, reverse="r" in common)
