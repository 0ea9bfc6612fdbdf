"""What is shown of a farm.  Pure."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from frameworks.webfarm.core.balancer import Mode, Reading, Slot
from frameworks.webfarm.core.farm import Farm, Instance
from frameworks.webfarm.core.policy import Decision, Meter


class Report:
    """Gathers from round to round.

    missing: instances that are waited for.  waits: in words why.  trouble: what went wrong last.
    balancer_restarts, balancer_away_s: since this wrapper began: who came then was refused,
    and is counted nowhere.
    """

    def __init__(self, target: float) -> None:
        self.missing = 0
        self.waits: list[str] = []
        self.trouble = ""
        self.balancer_restarts = 0
        self.balancer_away_s = 0.0
        self._target = target
        self._rate: float | None = None
        self._why = ""
        # By place; and the rate of the last sample of each.
        self._meters: dict[str, Meter] = {}
        self._rates: dict[str, float | None] = {}
        self._fresh = False

    def measured(self, rate: float | None, decision: Decision) -> None:
        """A sample was taken."""
        self._rate, self._why = rate, decision.why
        self._fresh = True

    def of(self, farm: Farm, reading: Reading | None, now_s: float) -> dict[str, Any]:
        """For `status.json`.  Rates are sessions per second of the last sample."""
        slots = {s.at: s for s in reading.slots if s.mode is not Mode.FREE} if reading else {}
        if self._fresh and reading is not None:
            self._measure(reading.epoch, slots, now_s)
        return {
            "wanted": farm.wanted,
            "target": self._target,
            "rate": self._rate,
            "why": self._why,
            "missing": self.missing,
            "waits": self.waits,
            "trouble": self.trouble,
            "rollout": asdict(farm.rollout),
            "balancer_restarts": self.balancer_restarts,
            "balancer_away_s": self.balancer_away_s,
            "balancer": None
            if reading is None
            else {
                "epoch": reading.epoch,
                "sessions": reading.sessions,
                "errors": reading.errors,
                "retries": reading.retries,
            },
            "servers": [self._row(farm, each, slots.get(each.at)) for each in farm.instances],
        }

    def _measure(self, epoch: str, slots: dict[str, Slot], now_s: float) -> None:
        self._fresh = False
        self._meters = {at: self._meters.get(at, Meter()) for at in slots}
        self._rates = {
            at: self._meters[at].read(now_s, epoch, slot.total) for at, slot in slots.items()
        }

    def _row(self, farm: Farm, instance: Instance, slot: Slot | None) -> dict[str, Any]:
        return {
            "task_id": instance.task_id,
            "host": instance.hostname,
            "at": instance.at,
            "version": instance.version,
            "phase": farm.phase(instance).name.lower(),
            "slot": slot.name if slot else None,
            "well": bool(slot and slot.well),
            "sessions": slot.sessions if slot else 0,
            "rate": self._rates.get(instance.at),
        }


__all__ = ["Report"]
