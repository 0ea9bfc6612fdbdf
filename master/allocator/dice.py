"""Chance that can be repeated: the same numbers after the same seed, everywhere."""

from __future__ import annotations

from typing import Final

_MASK: Final = 2**64 - 1
_STEP: Final = 0x9E3779B97F4A7C15


class Dice:
    """SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): 64 bits a throw, from a state of
    64 bits, into which the seeds are mixed one after the other."""

    __slots__ = ("_state",)

    def __init__(self, *seeds: int) -> None:
        self._state = 0
        for seed in seeds:
            self._state = (self._throw() ^ seed) & _MASK

    def below(self, end: int) -> int:
        """One of 0 to `end` - 1, each as likely (but for 1 in 2**64 times `end`)."""
        return (self._throw() * end) >> 64

    def fraction(self) -> float:
        """Between 0 and 1, never one of them."""
        return ((self._throw() >> 12) + 0.5) * 2.0**-52

    def _throw(self) -> int:
        self._state = state = (self._state + _STEP) & _MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
        return state ^ (state >> 31)
