"""Whatever is lost on the way, and whoever dies: what is reserved is what the agents say."""

import random
from collections import Counter

import pytest

from tests.property.model_reserving import Model

SEEDS = range(40)


@pytest.mark.long
def test_random_histories_end_in_agreement() -> None:
    seen: Counter[str] = Counter()
    for seed in SEEDS:
        model = Model(random.Random(seed))
        try:
            model.go(250)
        except Exception as error:
            pytest.fail(f"seed {seed}: {error!r}")
        seen += model.seen
    assert min(seen[name] for name in ("cut", "agent killed", "master killed")) > 50, seen
    assert min(seen[name] for name in ("reserve", "unreserve", "launch", "outcomes")) > 100, seen
