"""When people are told what jobs wait for."""

from __future__ import annotations

import math
from typing import Final

# Most waits are short: executors take their time to start.
FIRST_S: Final = 5.0
# After being told, and twice as long each time.
AGAIN_S: Final = 60.0
MOST_S: Final = 3840.0


class Patience:
    """text: what is waited for; "" if nothing is.  A wait that begins soon after people were
    told of the one before counts as the same."""

    def __init__(self) -> None:
        self.text = ""
        self._since_s = 0.0
        self._quiet_until_s = -math.inf
        self._pause_s = AGAIN_S

    def waits_for(self, text: str, now_s: float) -> None:
        """As it is from now on."""
        if text and not self.text:
            self._since_s = now_s
            if now_s >= self._quiet_until_s:
                self._pause_s = AGAIN_S
        self.text = text

    @property
    def wake_s(self) -> float | None:
        """When people are to be told, if nothing happens before; None: never."""
        if not self.text:
            return None
        return max(self._since_s + FIRST_S, self._quiet_until_s)

    def due(self, now_s: float) -> str:
        """What they are to be told now, or ""."""
        wake_s = self.wake_s
        if wake_s is None or now_s < wake_s:
            return ""
        self._quiet_until_s = now_s + self._pause_s
        self._pause_s = min(2 * self._pause_s, MOST_S)
        return self.text


__all__ = ["AGAIN_S", "FIRST_S", "MOST_S", "Patience"]
