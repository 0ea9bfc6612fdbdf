"""Long work of the master's event loop, a little at a time: see mesos_py.slices."""

from __future__ import annotations

from mesos_py.slices import SLICE_S, Pace, sliced

__all__ = ["SLICE_S", "Pace", "sliced"]
