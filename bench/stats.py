"""Medians and their spread.  Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Spread:
    """Several runs of one measurement: the middle one, the lowest and the highest."""

    median: float
    low: float
    high: float
    runs: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(statistics.median(values), min(values), max(values), len(values))

    def text(self, digits: int = 1) -> str:
        return f"{self.median:.{digits}f} ({self.low:.{digits}f}-{self.high:.{digits}f})"


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that at least `percent` of all values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


# Student's t for a two-sided interval of 95 %, by degrees of freedom.
_T_95: Final = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26)


def margin(values: Sequence[float]) -> float:
    """Half the width of the 95 % interval of the mean; infinite for one value."""
    runs = len(values)
    if runs < 2:
        return math.inf
    factor = _T_95[runs - 2] if runs - 2 < len(_T_95) else 1.96
    return factor * statistics.stdev(values) / math.sqrt(runs)
