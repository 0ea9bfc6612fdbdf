"""The version of this distribution: the one in pyproject.toml (a test compares them)."""

from __future__ import annotations

from typing import Final

VERSION: Final = "0.1.0"
# The version of Mesos whose API is spoken: what its clients look at.
MESOS_VERSION: Final = "1.11.0"
