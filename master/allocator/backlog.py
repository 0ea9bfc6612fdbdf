"""Whom a guarantee or a limit held back, and when there is more for them."""

from __future__ import annotations

from master.allocator.quota import Quota


class Backlog:
    """By role (and whether it was on agents of its own): the least that it could have had
    more of each resource of which it was given less than is free, then or since.

    Whoever got all that he could have is not asked once more in that cycle, and waits for
    more than what is left to him now.
    """

    def __init__(self) -> None:
        self._least: dict[tuple[str, bool], dict[str, int]] = {}
        # Roles that could have more since.
        self._grown: dict[str, None] = {}

    def clear(self) -> None:
        self._least.clear()
        self._grown.clear()

    def note(self, role: str, own: bool, name: str, most: int) -> None:
        """It could have no more than `most` of what is free."""
        least = self._least.setdefault((role, own), {})
        least[name] = min(most, least.get(name, most))

    def follow(self, quota: Quota) -> None:
        """To be told before each grant that may leave others more than they could have: in
        between they can only have less and less, so that this is the least."""
        for key in list(self._least):
            try:
                caps = quota.caps(*key)
            except Exception:  # whoever is under it is passed over, and tried again
                continue
            least = self._least[key]
            if any(name not in caps or caps[name].most > least[name] for name in least):
                del self._least[key]
                self._grown[key[0]] = None
                continue
            for name in least:
                least[name] = min(least[name], caps[name].most)

    def grown(self, quota: Quota) -> list[str]:
        """Roles that could have more now than the least, or could since; each once."""
        self.follow(quota)
        found = list(self._grown)
        self._grown.clear()
        return found
