"""How the agent starts its own executor."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

from agent.fetcher.fetcher import Limits


def command_line(limits: Limits, work_dir: str) -> tuple[str, ...]:
    """`limits`: what fetching for its tasks is held to.  There is no cache.  `work_dir`: the
    agent's, where volumes are."""
    given = json.dumps(asdict(limits))
    program = (sys.executable, "-P", "-s", "-X", "utf8", "-m", "agent.default_executor")
    return (*program, given, work_dir)


def limits_of(given: str) -> Limits:
    """What `command_line` was given."""
    return Limits(**{**json.loads(given), "cache_bytes": 0})


def python_path() -> str:
    """Where its modules are: nothing of the agent's environment is passed on."""
    root = str(Path(__file__).parents[2])
    return os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
