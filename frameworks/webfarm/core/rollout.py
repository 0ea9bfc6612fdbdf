"""Which site instances have, and how the deployment of another one goes.  Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["none", "rolling", "done", "failed"]


@dataclass(slots=True)
class Rollout:
    """
    site, version: what instances that are launched now get.
    good_site, good_version: what they get if a deployment fails: the last one that did not.
    last_version: the highest one given.
    outcome, why: of the last deployment.
    """

    site: str = ""
    version: int = 1
    good_site: str = ""
    good_version: int = 1
    last_version: int = 1
    outcome: Outcome = "none"
    why: str = ""

    @property
    def active(self) -> bool:
        return self.outcome == "rolling"

    @classmethod
    def first(cls, site: str) -> Rollout:
        """Of a farm without instances: nothing to go back to."""
        return cls(site=site, good_site=site)

    def begin(self, site: str) -> None:
        """Deploy this one, instead of one that is being deployed."""
        self.last_version += 1
        self.site, self.version = site, self.last_version
        self.outcome, self.why = "rolling", ""

    def done(self) -> None:
        self.good_site, self.good_version = self.site, self.version
        self.outcome = "done"

    def failed(self, why: str) -> None:
        """Those that have it keep it; what is launched from now on has the last good one."""
        self.site, self.version = self.good_site, self.good_version
        self.outcome, self.why = "failed", why


__all__ = ["Outcome", "Rollout"]
