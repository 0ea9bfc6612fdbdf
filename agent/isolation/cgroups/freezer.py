"""Stopping a whole container for a while, and the ground of v1's complete kill."""

from __future__ import annotations

from agent.isolation.cgroups.controller import Controller


class Freezer(Controller):
    name = "freezer"
