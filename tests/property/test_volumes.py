"""Whatever is lost on the way, and whoever dies: the volumes are those that the agents have."""

import random
from collections import Counter

import pytest

from tests.kit import agent_core
from tests.kit.agent_volumes import agent_with_disk
from tests.property.model_volumes import CalmModel, UnwillingModel, VolumesModel

# In the last two a task sees its volume elsewhere when its agent comes to a new master.
SEEDS = (*range(20), 1041, 1078)


@pytest.fixture(autouse=True)
def disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_core, "agent_info", agent_with_disk)


def histories(model: type[VolumesModel], steps: int) -> Counter[str]:
    seen: Counter[str] = Counter()
    for seed in SEEDS:
        made = model(random.Random(seed))
        try:
            made.go(steps)
        except Exception as error:
            pytest.fail(f"seed {seed}: {error!r}")
        seen += made.seen
    assert min(seen[name] for name in ("create", "destroy", "grow", "shrink", "use")) > 3, seen
    return seen


def test_random_histories_end_in_agreement() -> None:
    seen = histories(VolumesModel, 250)
    assert min(seen[name] for name in ("cut", "agent killed", "master killed")) > 20, seen
    assert min(seen[name] for name in ("operator", "outcomes")) > 30, seen


def test_where_nothing_is_lost_agents_do_all_that_their_master_takes_for_done() -> None:
    seen = histories(CalmModel, 150)
    assert seen["operator"] > 10, seen


def test_agents_that_cannot_do_what_is_taken_for_done() -> None:
    seen = histories(UnwillingModel, 250)
    assert min(seen[name] for name in ("anew", "not done")) > 20, seen
