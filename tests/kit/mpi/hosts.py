"""A cluster whose master, agents and user are hosts of their own, each with several interfaces.

Beside the one that all of them reach, each host has one with the same address everywhere, as
docker's bridge has: whoever offers that to others is not found.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from pyroute2 import IPRoute

from tests.kit.chaos.daemons import HostDaemon
from tests.kit.chaos.hosts import Host, Network
from tests.kit.chaos.wires import Drop, Wires, both_ways
from tests.kit.cluster import Cluster
from tests.kit.networks import set_up

EVERYWHERE: Final = "172.17.0.1"
# A cut of seconds is noticed.
_MASTER: Final = {
    "agent_ping_interval": "1s",
    "max_agent_ping_timeouts": "4",
    "agent_reregister_timeout": "1s",
    "first_offer_timeout": "2s",
    "port": "5050",
}


class MpiHosts(Cluster):
    """A network, a master, and `head`, where jobs are started; made by `mpi_hosts`."""

    def __init__(self, directory: Path, network: Network) -> None:
        super().__init__(directory)
        self.network = network
        self.wires = Wires(network)
        self.head = self._host("head")
        self.master = HostDaemon("master", self._host("master"), directory, dict(_MASTER))
        self.masters = [self.master]

    @property
    def address(self) -> str:
        return f"{self.network.hosts['master'].address}:5050"

    def agent(self, name: str, resources: str = "", **flags: str) -> HostDaemon:
        own = {"master": self.address, "hostname": name, "resources": resources}
        own |= {"tasks_on_exit": "end", **flags}
        made = HostDaemon("agent", self._host(name), self.directory, own)
        self.agents.append(made)
        return made

    def cut(self, name: str) -> list[Drop]:
        """All that goes between this host and others."""
        hosts = self.network.hosts
        others = hosts.keys() - {name}
        return [drop for other in others for drop in both_ways(hosts[name], hosts[other])]

    def idle(self) -> list[str]:
        """Agents that are there, and of which nothing is used."""
        rows = json.loads(self.head.inside(lambda: self.cli("agents", "--json")).out)
        free = [row for row in rows if row["state"] == "connected" and not row["allocated"]]
        return sorted(row["hostname"] for row in free)

    def _host(self, name: str) -> Host:
        host = self.network.host(name)
        host.inside(_add_one_more)
        return host


def _add_one_more() -> None:
    with IPRoute() as route:
        route.link("add", ifname="docker0", kind="veth", peer={"ifname": "inside0"})
        route.link("set", index=route.link_lookup(ifname="inside0")[0], state="up")
    set_up("docker0", EVERYWHERE, 16)


@contextmanager
def mpi_hosts(directory: Path, *agents: str, resources: str) -> Iterator[MpiHosts]:
    """Raises PermissionError without the rights to make hosts."""
    with ExitStack() as stack:
        cluster = MpiHosts(directory, stack.enter_context(Network()))
        with cluster:
            for name in agents:
                cluster.agent(name, resources).launch()
            for agent in cluster.agents:
                agent.ready()
            yield cluster
