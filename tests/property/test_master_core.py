"""The master's core under everything that agents, frameworks and networks can do to it."""

from __future__ import annotations

import os
import random
import time

import pytest
from hypothesis import settings

from tests.property import model_run
from tests.property.model_run import Run

_STEPS = 1000


def test_random():
    n = int(os.environ.get("N", "20"))
    base = int(os.environ.get("BASE", "0"))
    t0 = time.process_time()
    for i in range(n):
        numbers = model_run.history(base + i, _STEPS)
        try:
            model_run.play(base + i, numbers)
        except Exception as e:
            import traceback

            tb = traceback.format_exc()
            fewer = model_run.shortened(base + i, numbers, 200)
            print(model_run.told(base + i, fewer)[-6000:])
            print(tb[-2500:])
            pytest.fail(f"seed {base + i}: {type(e).__name__} {e}")
    print("us per step", (time.process_time() - t0) / n / _STEPS * 1e6)
