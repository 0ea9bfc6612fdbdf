"""The `network` isolator: containers with a network namespace of their own.

Each gets a pair of devices to a bridge of the agent's, an address, a default route, the
ports that its tasks were given, and what rates it asks for.  Nothing is kept in files:
what there is, the kernel knows, by aliases and names that hold the full ids.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import os
import socket
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path

try:
    import pyroute2  # noqa: F401
except ModuleNotFoundError:
    raise ModuleNotFoundError("pip install 'mesos-py[network]' brings what it needs") from None

from agent.isolation.base import (
    NETWORKS,
    NOTHING,
    AgentFacts,
    Container,
    Isolator,
    Preparation,
    Recovered,
    Usage,
)
from agent.isolation.network import addresses, asked, links, names, namespaces, rules
from agent.isolation.network.asked import Asked, Kind, PortMapping
from agent.isolation.network.nat import Nat, forget
from agent.isolation.network.rules import Entry
from mesos_py import logs, ranges
from mesos_py.errors import InvalidValue, Refused
from mesos_py.resources import Resources

log = logs.get("agent.isolation.network")

DEFAULT_RANGE = "10.213.0.0/16"


@dataclass(slots=True, eq=False)
class _Member:
    """A container with a network of its own."""

    asked: Asked
    # None in the network "none".
    address: IPv4Address | None = None
    # Held until its first process is in it.
    namespace: int = -1
    entries: tuple[Entry, ...] = ()
    rates: tuple[int | None, int | None] = (None, None)
    # There may be a device that slows down what comes out of it.
    shaped: bool = False


@dataclass(slots=True)
class _Shared:
    """What all containers have in common; used under the isolator's lock."""

    pool: addresses.Pool
    nat: Nat
    # The bridge and the table are there.
    ready: bool = False
    # Which entry holds a port of the machine.
    holders: dict[tuple[str, int], Entry] = field(default_factory=dict)


class NetworkIsolator(Isolator):
    """Flag: network_range."""

    provides = frozenset({NETWORKS})

    def __init__(self, facts: AgentFacts) -> None:
        super().__init__(facts)
        network = addresses.parse_range(facts.flags.get("network_range", DEFAULT_RANGE))
        self._bridge = names.bridge(facts.agent_id)
        self._shared = _Shared(addresses.Pool(network), Nat(names.table(facts.agent_id)))
        self._lock = threading.Lock()
        self._members: dict[str, _Member] = {}
        # Until then there may be devices of an earlier run.
        self._recovered = False
        # In a thread: pyroute2 has an event loop of its own, and so may the caller.
        with _refusing("this machine cannot give containers networks of their own"):
            namespaces.in_thread(self._probe)
        if Path("/proc/sys/net/ipv4/ip_forward").read_text().strip() == "0":
            raise Refused(
                "net.ipv4.ip_forward is 0: nothing would get from the containers' networks to "
                "others, nor back; set it to 1 (sysctl -w net.ipv4.ip_forward=1)"
            )

    def _probe(self) -> None:
        """Try what is needed.  Raises OSError."""
        os.close(namespaces.create())
        self._shared.nat.exists()
        self._check_range()

    # ---- The life of a container ---------------------------------------------------

    def prepare(self, container: Container) -> Preparation:
        wanted = asked.parse(container.info)
        if wanted.kind is Kind.HOST:
            return NOTHING
        member = self._members[container.container_id] = _Member(wanted)
        with _refusing("cannot make the container's network"):
            if wanted.kind is Kind.NONE:
                member.namespace = namespaces.create()
                links.loopback(member.namespace)
                environment = {}
            else:
                self._connect(container, member)
                environment = {"MESOS_CONTAINER_IP": str(member.address)}
        return Preparation(
            environment=environment, namespaces=(namespaces.path_of(member.namespace),)
        )

    def join(self, container_id: str, pid: int) -> Preparation:
        namespace = Path(f"/proc/{pid}/ns/net")
        # Also of one that we know nothing of any more: never into the machine's by mistake.
        if namespace.samefile("/proc/self/ns/net"):
            return NOTHING
        member = self._members.get(container_id)
        address = member.address if member is not None else None
        return Preparation(
            environment={"MESOS_CONTAINER_IP": str(address)} if address is not None else {},
            namespaces=(str(namespace),),
        )

    def isolate(self, container_id: str, pid: int) -> None:
        member = self._members.get(container_id)
        if member is not None:
            _let_go(member)

    def update(self, container_id: str, resources: Resources) -> None:
        member = self._members.get(container_id)
        if member is None or member.address is None:
            return
        self._map(member, _still_mapped(member.asked, resources, member.address))
        self._limit(container_id, member, asked.rates_of(member.asked, resources))

    def usage(self, container_id: str) -> Usage:
        member = self._members.get(container_id)
        if member is None or member.address is None:
            return {}
        try:
            seen = links.traffic(names.veth(self.facts.agent_id, container_id))
        except OSError:
            return {}
        if seen is None:
            return {}
        # What the host's end sends, the container receives.
        return {
            f"net_{inside}_{what}": seen[f"{outside}_{what}"]
            for inside, outside in (("rx", "tx"), ("tx", "rx"))
            for what in ("bytes", "packets", "dropped")
        }

    def addresses(self, container_id: str) -> tuple[str, ...]:
        member = self._members.get(container_id)
        return () if member is None or member.address is None else (str(member.address),)

    def cleanup(self, container_id: str) -> None:
        member = self._members.get(container_id)
        if member is None:
            if not self._recovered:
                self._remove_devices(container_id)
            return
        _let_go(member)
        self._map(member, ())
        if member.address is not None:
            self._remove_devices(container_id, shaper=member.shaped)
            with self._lock:
                self._shared.pool.release(member.address, container_id)
        self._members.pop(container_id, None)

    def close(self) -> None:
        with self._lock:
            if not len(self._shared.pool):
                self._shared.ready = False
                self._shared.nat.drop()
                links.remove(self._bridge, names.bridge_alias(self.facts.agent_id))

    # ---- After a restart -------------------------------------------------------------

    def recover(self, containers: Sequence[Recovered]) -> None:
        with _refusing("cannot take up the networks of an earlier run"):
            namespaces.in_thread(lambda: self._recover(containers))
        self._recovered = True

    def _recover(self, containers: Sequence[Recovered]) -> None:
        running = {each.container_id: each for each in containers}
        with self._lock:
            for device in links.devices():
                owner = names.owner_of(device.alias)
                if owner is None or owner.agent_id != self.facts.agent_id:
                    continue
                if owner.container_id not in running:
                    log.info("device of an ended container removed", device=device.name)
                    links.remove(device.name, names.alias(owner))
                    self._shared.pool.rest(owner.address)
                elif owner.container_id not in self._members:
                    self._take_up(running[owner.container_id], owner.address)
            self._take_up_the_rest(running.values())

    def _take_up(self, container: Recovered, address: IPv4Address) -> None:
        pool = self._shared.pool
        if address not in pool.network:
            raise InvalidValue(
                addresses.FIELD,
                str(pool.network),
                f"container {container.container_id} still runs with the address {address}: "
                "end what runs before the range is changed",
            )
        pool.hold(address, container.container_id)
        wanted = _asked_before(container)
        entries = _still_mapped(wanted, container.resources, address)
        self._shared.holders.update((each.key, each) for each in entries)
        self._members[container.container_id] = _Member(
            wanted,
            address,
            entries=tuple(entries),
            rates=asked.rates_of(wanted, container.resources),
            shaped=True,
        )

    def _take_up_the_rest(self, running: Iterable[Recovered]) -> None:
        """Namespaces without devices, and what all containers have in common."""
        for each in running:
            if each.container_id not in self._members:
                wanted = _asked_before(each)
                if wanted.kind is Kind.BRIDGED:
                    log.warning("container has lost its network", container=each.container_id)
                elif wanted.kind is Kind.NONE:
                    self._members[each.container_id] = _Member(wanted)
        self._make_ready()

    # ---- Making and removing -----------------------------------------------------------

    def _connect(self, container: Container, member: _Member) -> None:
        agent_id, container_id = self.facts.agent_id, container.container_id
        mappings = asked.mappings_of(member.asked, container.resources)
        rates = asked.rates_of(member.asked, container.resources)
        self._check_unused(mappings)
        pool = self._shared.pool
        with self._lock:
            if not self._shared.ready:
                self._check_range()
                self._make_ready()
            member.address = pool.take(container_id)
        member.namespace = namespaces.create()
        links.connect(
            member.namespace,
            names.veth(agent_id, container_id),
            self._bridge,
            names.alias(names.Owner(agent_id, container_id, member.address)),
            IPv4Interface((member.address, pool.network.prefixlen)),
            pool.gateway,
        )
        self._limit(container_id, member, rates)
        self._map(member, rules.entries(mappings, member.address))

    def _make_ready(self) -> None:
        """Have the bridge and the table, with all ports that are held.  Under the lock."""
        shared = self._shared
        alias = names.bridge_alias(self.facts.agent_id)
        links.make_bridge(self._bridge, alias, shared.pool.gateway, shared.pool.network)
        shared.nat.make(self._bridge, shared.pool.network, list(shared.holders.values()))
        shared.ready = True

    def _map(self, member: _Member, wanted: Sequence[Entry]) -> None:
        """Have these ports lead to the container, and no others."""
        with self._lock:
            holders = self._shared.holders
            keep = set(wanted)
            mine = {e for e in member.entries if holders.get(e.key) == e}
            removed = mine - keep
            # A port may still be that of a container that has ended, not cleaned up yet.
            taken = (holders.get(e.key) for e in wanted)
            removed.update(e for e in taken if e is not None and e not in keep)
            added = [e for e in wanted if e not in mine]
            if removed or added:
                self._change(sorted(removed), added)
            member.entries = tuple(wanted)

    def _change(self, removed: Sequence[Entry], added: Sequence[Entry]) -> None:
        shared = self._shared
        holders = dict(shared.holders)
        for each in removed:
            del holders[each.key]
        holders.update((each.key, each) for each in added)
        try:
            shared.nat.change(removed, added)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.EEXIST, errno.EBUSY):
                raise
            # Somebody has changed the table: a firewall that is set up anew flushes all.
            log.warning("table of port mappings is made anew", error=error)
            shared.nat.make(self._bridge, shared.pool.network, list(holders.values()))
        shared.holders = holders
        try:
            forget(removed)
        except OSError as error:
            log.warning("datagrams may go astray", error=error)

    def _limit(
        self, container_id: str, member: _Member, rates: tuple[int | None, int | None]
    ) -> None:
        agent_id = self.facts.agent_id
        assert member.address is not None
        if rates == member.rates:
            return
        name, (egress, ingress) = names.veth(agent_id, container_id), rates
        alias = names.alias(names.Owner(agent_id, container_id, member.address))
        member.shaped = member.shaped or egress is not None
        links.limit_ingress(name, ingress)
        links.limit_egress(name, names.shaper(agent_id, container_id), alias, egress)
        member.rates = rates

    def _remove_devices(self, container_id: str, *, shaper: bool = True) -> None:
        agent_id = self.facts.agent_id
        mark = f"{names.bridge_alias(agent_id)} {container_id} "
        links.remove(names.veth(agent_id, container_id), mark)
        if shaper:
            links.remove(names.shaper(agent_id, container_id), mark)

    # ---- Checks --------------------------------------------------------------------------

    def _check_range(self) -> None:
        network = self._shared.pool.network
        others = (each for each in links.addresses() if each[0] != self._bridge)
        found = addresses.overlap(network, others)
        if found is not None:
            device, address = found
            reason = f"overlaps with {address} of the device {device}"
            if device.startswith(names.BRIDGES):
                reason += (
                    ", the bridge of another agent: each agent of a machine needs a range of its "
                    f"own; if that one is gone for good, remove it (ip link delete {device})"
                )
            raise InvalidValue(addresses.FIELD, str(network), reason)

    def _check_unused(self, mappings: Iterable[PortMapping]) -> None:
        for each in mappings:
            kind = socket.SOCK_STREAM if each.protocol == "tcp" else socket.SOCK_DGRAM
            with socket.socket(socket.AF_INET, kind) as trying:
                if each.protocol == "tcp":
                    trying.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    trying.bind(("0.0.0.0", each.host_port))
                except OSError as error:
                    if error.errno != errno.EADDRINUSE:
                        raise
                    raise InvalidValue(
                        "resources.ports",
                        each.host_port,
                        f"is in use on this machine ({each.protocol}), by another process",
                    ) from None


def _still_mapped(wanted: Asked, resources: Resources, address: IPv4Address) -> list[Entry]:
    """What is asked, without mappings of ports that the container has no more."""
    if wanted.mappings is not None:
        given = resources.ranges.get("ports", ())
        kept = (m for m in wanted.mappings if ranges.contains(given, ((m.host_port, m.host_port),)))
        wanted = dataclasses.replace(wanted, mappings=tuple(kept))
    return rules.entries(asked.mappings_of(wanted, resources), address)


def _asked_before(container: Recovered) -> Asked:
    """What a container asked for that runs already: nothing of it can be refused now."""
    try:
        wanted = asked.parse(container.info)
        asked.rates_of(wanted, container.resources)
    except InvalidValue as error:
        log.warning(
            "container asks for what is not known any more",
            container=container.container_id,
            error=error,
        )
        return Asked(Kind.BRIDGED)
    return wanted


def _let_go(member: _Member) -> None:
    if member.namespace >= 0:
        fd, member.namespace = member.namespace, -1
        os.close(fd)


@contextlib.contextmanager
def _refusing(what: str) -> Iterator[None]:
    """Say in words what the kernel refuses."""
    try:
        yield
    except OSError as error:
        lacking = error.errno in (errno.EPERM, errno.EACCES)
        hint = "; the agent needs root's rights for it" if lacking else ""
        raise Refused(f"{what}: {error.strerror}{hint}") from error
