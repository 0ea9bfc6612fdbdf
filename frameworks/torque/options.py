"""What whoever brings a batch server up may choose."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from frameworks.common.pool import PoolRules
from mesos_py import InvalidValue


@dataclass(frozen=True, slots=True, kw_only=True)
class TorqueOptions:
    """
    master: `host:port`, `h1:p1,h2:p2` or `zk://h1,h2/path`.
    state_dir: of this batch server alone; its queue and ours are kept there.
    name, role, user: of the framework; user: who nodes run as ("": who runs this).
    min_nodes, max_nodes: how many there are.
    idle_s: a node without a job for so long is given back.
    start_s: a node that has not come so long after its start is given up.
    ip: where the batch server is for nodes; a loopback address: all is on this machine.
    port, node_port: of the batch server and of its nodes; 0: picked once.
    munge_socket: of the munged that all machines have; None: one of our own.
    job_mem_mb: memory for each cpu of a job that does not say.
    beyond_guarantee: take more than the guaranteed share, which may be taken back.
    poll_s: how often the queue is looked at.
    failover_s: so long the cluster keeps the nodes when no wrapper is there.
    """

    master: str
    state_dir: Path
    backend: Literal["slurm", "torque"] = "slurm"
    name: str = "torque"
    role: str = "*"
    user: str = ""
    min_nodes: int = 0
    max_nodes: int = 100
    idle_s: float = 60.0
    start_s: float = 60.0
    ip: str = "127.0.0.1"
    port: int = 0
    node_port: int = 0
    munge_socket: Path | None = None
    job_mem_mb: int = 256
    beyond_guarantee: bool = False
    poll_s: float = 1.0
    failover_s: float = 7 * 24 * 3600.0

    def __post_init__(self) -> None:
        """Raises InvalidValue."""
        if self.min_nodes > self.max_nodes:
            raise InvalidValue(
                "min-nodes", self.min_nodes, f"is above --max-nodes, {self.max_nodes}"
            )
        if not self.on_one_machine and self.backend == "slurm" and self.munge_socket is None:
            raise InvalidValue(
                "munge-socket",
                "",
                f"must be given with --ip {self.ip}: all machines need a munged with the same key",
            )

    @property
    def on_one_machine(self) -> bool:
        return self.ip.startswith("127.")

    def rules(self, one_per_agent: bool) -> PoolRules:
        return PoolRules(
            least=self.min_nodes,
            most=self.max_nodes,
            start_s=self.start_s,
            idle_s=self.idle_s,
            one_per_agent=one_per_agent,
        )


__all__ = ["TorqueOptions"]
