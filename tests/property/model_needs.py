"""What a framework of the model says that it needs or waits for."""

from __future__ import annotations

import random

from mesos_py.resources import Resources
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb

Call = sched.Call


def random_needs(rng: random.Random, roles: list[str]) -> Call.Request:
    """Good ones and bad ones, of which some only wait."""
    return Call.Request(
        requests=[
            pb.Request(
                resources=Resources.of(cpus=rng.choice((0.5, 1, 64))).to_proto(),
                count=rng.choice((1, 1, 3, 2**32 - 1)),
                role=rng.choice([*roles, "nobody's"]) if rng.random() < 0.3 else None,
                waiting=rng.choice((True, None)),
            )
            for _ in range(rng.randrange(4))
        ]
    )
