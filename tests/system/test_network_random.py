"""Random lives of containers with networks, on the real kernel: what it holds is what is asked."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest

from agent.isolation.network import names
from agent.isolation.network.isolator import NetworkIsolator
from agent.isolation.network.nat import Nat
from mesos_py.resources import Resources
from tests.kit.network_containers import (
    AGENT,
    BRIDGE,
    PLAIN,
    Inside,
    container,
    info,
    isolator,
    labels,
    recovered,
)
from tests.kit.networks import device_names, rates_of

pytestmark = pytest.mark.needs("root")

STEPS = 40
PORTS = range(31000, 31006)


class Lives:
    """Some containers, and what each has by rights."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.network: NetworkIsolator = isolator()
        self.network.recover([])
        self.numbers: Iterator[int] = iter(range(1000))
        self.running: dict[str, Inside] = {}
        self.ports: dict[str, list[int]] = {}
        self.egress: dict[str, str | None] = {}
        # Ended, and not cleaned up yet.
        self.ended: list[str] = []

    def free(self) -> list[int]:
        taken = {port for name in self.running for port in self.ports[name]}
        return [port for port in PORTS if port not in taken]

    def some(self, ports: list[int]) -> list[int]:
        return sorted(self.random.sample(ports, self.random.randint(0, len(ports))))

    def asked(self, name: str):
        rate = self.egress[name]
        return info(labels=labels(egress=rate)) if rate else info()

    # ---- Steps ----------------------------------------------------------------------

    def start(self) -> None:
        name = f"c{next(self.numbers)}"
        self.egress[name] = self.random.choice([None, None, "10mbit"])
        self.ports[name] = self.some(self.free())
        made = self.network.prepare(container(name, *self.ports[name], asked=self.asked(name)))
        self.running[name] = Inside(made)
        self.network.isolate(name, os.getpid())

    def update(self) -> None:
        if self.running:
            name = self.random.choice(sorted(self.running))
            ports = self.ports[name] = self.some([*self.free(), *self.ports[name]])
            pairs = [(port, port) for port in ports]
            given = Resources.of(cpus=1, ports=pairs) if pairs else Resources.of(cpus=1)
            self.network.update(name, given)

    def end(self) -> None:
        if self.running:
            name = self.random.choice(sorted(self.running))
            self.running.pop(name).end()
            self.ended.append(name)

    def cleanup(self) -> None:
        if self.ended:
            name = self.random.choice(self.ended)
            self.network.cleanup(name)
            if self.random.random() < 0.8:
                self.ended.remove(name)  # else it comes twice

    def restart(self) -> None:
        self.network = isolator()
        self.network.recover(
            [recovered(n, *self.ports[n], asked=self.asked(n)) for n in self.running]
        )
        self.ended.clear()

    def check(self) -> None:
        """After all that has ended is cleaned up."""
        for name in self.ended:
            self.network.cleanup(name)
        self.ended.clear()
        mapped = {
            (e.protocol, e.host_port, str(e.address)) for e in Nat(names.table(AGENT)).ports()
        }
        assert mapped == {
            (protocol, port, inside.address)
            for name, inside in self.running.items()
            for port in self.ports[name]
            for protocol in ("tcp", "udp")
        }
        veths = {names.veth(AGENT, name) for name in self.running}
        shaped = {names.shaper(AGENT, name) for name in self.running if self.egress[name]}
        assert device_names() == {*PLAIN, BRIDGE, *veths, *shaped}
        assert all(rates_of(each) == [10_000_000] for each in shaped)
        addresses = [inside.address for inside in self.running.values()]
        assert len(set(addresses)) == len(addresses)


@pytest.mark.parametrize("seed", range(3))
def test_whatever_happens_each_container_has_what_is_its_own(here, seed):
    lives = Lives(seed)
    steps = [lives.start, lives.start, lives.end, lives.cleanup, lives.update, lives.restart]
    try:
        for number in range(STEPS):
            lives.random.choice(steps)()
            if number % 8 == 7:
                lives.check()
        lives.check()
    finally:
        for inside in lives.running.values():
            inside.end()
    lives.running.clear()
    lives.restart()
    lives.network.close()
    assert device_names() == PLAIN
