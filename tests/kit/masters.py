"""Several masters that elect their leader through ZooKeeper, agents that follow it.

::

    with Masters(tmp_path) as masters:
        agent = masters.start_agent("a")
        with Framework(masters.url) as framework:
            ...
            masters.leader().kill()

Daemons are as in `cluster.py`: processes of their own, signalled by their pids, asked to
end in peace when the block ends, and nothing that they started may be left.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Final, Self

import grpc

from mesos_py import rpc
from mesos_py.operator import OperatorClient
from mesos_py.v1 import operator_pb2 as op
from mesos_py.v1.operator_pb2_grpc import OperatorServiceStub
from tests.kit.cluster import LOOPBACK, PLENTY, Cluster, Daemon
from tests.kit.waiting import until
from tests.kit.zookeeper import Ensemble

# A machine that stands still for a second or two costs nobody the lead.
SESSION: Final = "4s"
ASK_S: Final = 10.0


class Masters(Cluster):
    """`flags` are those of all masters; `servers` how many servers of ZooKeeper."""

    def __init__(self, directory: Path, *, count: int = 3, servers: int = 1, **flags: str) -> None:
        super().__init__(directory)
        self._stack = ExitStack()
        # Frameworks of tests keep offers until they have a use for them.
        own = {} if flags.get("offer_timeout") == "0s" else {"first_offer_timeout": "0s"}
        self._flags = {"zk_session_timeout": SESSION, **own, **flags}
        self._count = count
        self.zookeeper = Ensemble(directory / "zookeeper", servers)
        self.masters = []

    def __enter__(self) -> Self:
        self._stack.enter_context(self.zookeeper)
        try:
            for number in range(self._count):
                self.masters.append(self._master(f"master-{number}").launch())
            for each in self.masters:
                each.ready()
                each.flags["port"] = str(each.port)
            self.wait_for_leader()
        except BaseException:
            self._kill_all()
            self._stack.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        with self._stack:
            super().__exit__(kind, *rest)

    def _master(self, name: str) -> Daemon:
        return Daemon("master", name, self.directory, {"zk": self.url, **self._flags})

    # ---- As the rest of the kit sees it ------------------------------------------

    @property
    def url(self) -> str:
        return self.zookeeper.url("/mesos")

    @property
    def address(self) -> str:
        """What agents, frameworks and the command line are told."""
        return self.url

    def others(self) -> set[int]:
        return {server.pid for server in self.zookeeper.servers if server.alive}

    # ---- Who leads -----------------------------------------------------------------

    def ask(self, master: Daemon) -> op.Response.GetMaster | None:
        """What this very master says of itself; None if it does not answer."""
        with grpc.insecure_channel(
            f"{LOOPBACK}:{master.port}", options=rpc.channel_options()
        ) as channel:
            call = op.Call(type=op.Call.GET_MASTER)
            try:
                return OperatorServiceStub(channel).Execute(call, timeout=ASK_S).get_master
            except grpc.RpcError:
                return None

    def leaders(self, *, of: list[Daemon] | None = None) -> list[Daemon]:
        """Those that say that they lead."""
        asked = [m for m in (self.masters if of is None else of) if m.alive and not m.paused]
        answers = [(master, self.ask(master)) for master in asked]
        return [master for master, answer in answers if answer is not None and answer.leading]

    def leader(self) -> Daemon:
        """The one that leads now, or will in a moment."""
        return self.wait_for_leader()

    def wait_for_leader(self, *, other_than: Daemon | None = None) -> Daemon:
        of = [master for master in self.masters if master is not other_than]
        found: list[Daemon] = []

        def look() -> bool:
            found[:] = self.leaders(of=of)
            return len(found) == 1

        until(look)
        return found[0]

    def epoch(self) -> int:
        """That of whoever leads."""
        epochs: list[int] = []

        def look() -> bool:
            answer = self.ask(self.leader())
            epochs[:] = [answer.epoch] if answer is not None and answer.leading else []
            return bool(epochs)

        until(look)
        return epochs[0]


__all__ = ["PLENTY", "Masters", "OperatorClient"]
