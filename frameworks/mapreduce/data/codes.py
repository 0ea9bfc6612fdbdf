"""Codes for parts of keys: bytes that have the order that is asked for, each with its end.

A code has no newline and no byte 0, and ends with byte 1, which it has nowhere else; so no code
begins another, and codes in a row are ordered by the first, then by the second, and so on.

- By bytes: 0, 1 and 2 become 2 2, 2 3 and 2 4; all others are as they are.
- By number: its sign (0: below zero, 1: zero, 2: above), how many digits are before the point
  (eight digits), these, and those behind it; below zero each digit taken from 9, and an end
  that is above digits, since of two such numbers the one with more digits is smaller.
- The other way round: the code by bytes or number, each byte taken from 255, in hexadecimal.
"""

from __future__ import annotations

import re
from typing import Final

from frameworks.mapreduce.data.keyparts import KeyPart

END: Final = b"\x01"
_NUMBER: Final = re.compile(rb"[ \t]*(-?)([0-9]*)(?:\.([0-9]*))?")
_IS_RARE: Final = re.compile(rb"[\x00-\x02]")
_FROM_9: Final = bytes.maketrans(b"0123456789", b"9876543210")
_FROM_255: Final = bytes(range(255, -1, -1))


def code(part: bytes, how: KeyPart) -> bytes:
    """The code of a part of a key."""
    found = _number(part) if how.numeric else _bytes(part)
    if how.reverse:
        found = (found + END).translate(_FROM_255).hex().encode()
    return found + END


def _bytes(part: bytes) -> bytes:
    return _IS_RARE.sub(lambda rare: bytes((2, rare[0][0] + 2)), part)


def _number(part: bytes) -> bytes:
    if part.isdigit():
        # As most are, and three times as fast.
        whole = part.lstrip(b"0")
        return b"2%08d%b" % (len(whole), whole) if whole else b"1"
    found = _NUMBER.match(part)
    assert found is not None  # it matches nothing, too
    sign, digits, fraction = found.groups(b"")
    digits = digits.lstrip(b"0")
    fraction = fraction.rstrip(b"0")
    if not digits and not fraction:
        return b"1"
    size = b"%08d%b%b" % (len(digits), digits, fraction)
    return b"0" + size.translate(_FROM_9) + b"~" if sign else b"2" + size
