"""How large and how strict the modelled cluster is."""

from __future__ import annotations

import random
from typing import Final

from master.core.cluster import Options

MAX_AGENTS: Final = 4
MAX_FRAMEWORKS: Final = 4
ROLES: Final = ("*", "a", "b")
AMOUNTS: Final = (
    "cpus:4;mem:4096",
    "cpus:2.5;mem:512;ports:[31000-31003]",
    "cpus:1.1;mem:300;disk:100",
    "cpus:0.3;mem:64",
)


def random_options(rng: random.Random, *, durable: bool) -> Options:
    return Options(
        offer_timeout_s=rng.choice((0.0, 10.0, 30.0)),
        first_offer_timeout_s=rng.choice((0.0, 2.0, 2.0, 30.0)),
        max_completed_frameworks=rng.choice((0, 1, 50, 50)),
        max_completed_tasks=rng.choice((0, 1000, 1000, 1000)),
        max_unreachable_tasks=rng.choice((1, 1000)),
        agent_timeout_s=rng.choice((20.0, 75.0)),
        durable=durable,
    )
