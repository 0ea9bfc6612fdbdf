"""Records of a cluster's agents, as large and as much alike as real ones."""

from __future__ import annotations

import random
import uuid

from mesos_py.v1 import registry_pb2
from mesos_py.v1 import types_pb2 as pb


def agent_records(count: int) -> dict[str, bytes]:
    dice = random.Random(1)
    master = uuid.UUID(int=dice.getrandbits(128))
    records: dict[str, bytes] = {}
    for number in range(count):
        agent = registry_pb2.Agent()
        info = agent.info
        info.id.value = f"{master}-S{number}"
        info.hostname = f"rack{number // 40}-node{number % 40}.dc1.example.com"
        info.port = 5051
        amounts = {
            "cpus": dice.choice([16, 32]),
            "mem": dice.randrange(60_000, 66_000),
            "disk": 2e6,
        }
        for name, amount in amounts.items():
            info.resources.add(name=name, type=pb.Value.SCALAR, role="*").scalar.value = amount
        ports = info.resources.add(name="ports", type=pb.Value.RANGES, role="*")
        ports.ranges.range.add(begin=31000, end=32000)
        for name in ("rack", "zone", "os"):
            attribute = info.attributes.add(name=name, type=pb.Value.TEXT)
            attribute.text.value = f"{name}{number // 40}"
        records[f"agent/{info.id.value}"] = agent.SerializeToString(deterministic=True)
    return records
