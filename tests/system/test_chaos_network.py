"""The network that faults are tried in: it must have them itself."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

from tests.kit.chaos.hosts import Host, Network
from tests.kit.chaos.wires import Drop, Wires, both_ways, lossy, one_way
from tests.kit.networks import device_names

pytestmark = pytest.mark.needs("root", "nft")

PORT = 7
SENT = 2000


@pytest.fixture
def network() -> Iterator[Network]:
    with Network() as made:
        yield made


def arrived(source: Host, target: Host, count: int = 1) -> int:
    """How many of so many packets arrive."""
    receiving = target.inside(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    sending = source.inside(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    with receiving, sending:
        receiving.bind((target.address, PORT))
        found = 0
        for _ in range(count):
            sending.sendto(b"x", (target.address, PORT))
            # On this network a packet has arrived when `sendto` returns, once both
            # hosts know each other's hardware address.
            receiving.settimeout(0.2 if found == 0 and count == 1 else 0.001)
            try:
                found += len(receiving.recv(10))
            except TimeoutError:
                continue
        return found


def test_hosts_reach_each_other_and_the_machine_sees_no_device_of_theirs(network):
    before = device_names()
    a, b = network.host("a"), network.host("b")
    assert (arrived(a, b), arrived(b, a)) == (1, 1)
    assert device_names() == before


def test_a_cut_is_one_way_or_both_and_heals(network):
    a, b, c = (network.host(name) for name in "abc")
    wires = Wires(network)
    assert arrived(a, b) == arrived(b, a) == 1
    wires.add(one_way(a, b))
    assert (arrived(a, b), arrived(b, a), arrived(a, c)) == (0, 1, 1)
    assert wires.dropped() == 1
    wires.add(both_ways(a, b))
    wires.remove(one_way(a, b))
    assert (arrived(a, b), arrived(b, a), arrived(b, c)) == (0, 0, 1)
    wires.remove(both_ways(a, b))
    assert (arrived(a, b), arrived(b, a)) == (1, 1)


def test_one_port_can_be_blocked(network):
    a, b = network.host("a"), network.host("b")
    wires = Wires(network)
    wires.add([Drop(a.address, b.address, port=2181)])
    assert connects(a, b, 2181) is False
    assert connects(a, b, 2182) is True


def connects(source: Host, target: Host, port: int) -> bool:
    with target.inside(lambda: socket.create_server((target.address, port))):
        with source.inside(socket.socket) as trying:
            trying.settimeout(0.3)
            try:
                trying.connect((target.address, port))
            except TimeoutError:
                return False
            return True


def test_packets_are_lost_at_the_given_rate(network):
    a, b = network.host("a"), network.host("b")
    wires = Wires(network)
    wires.add(lossy(50))
    # 5 % of 2000 are 100; the standard deviation is 10.
    assert SENT - 200 < arrived(a, b, SENT) < SENT - 20


def test_a_slow_link_is_slow_and_fast_again(network):
    a, b = network.host("a"), network.host("b")
    wires = Wires(network)
    wires.slow(a, 100_000)
    slow_s = transfer_s(a, b, 200_000)
    wires.fast(a)
    # The bucket lets the first 64 KB through at once.
    assert slow_s > 1.0
    # One of a few: any of them may meet a machine that is busy with something else.
    assert min(transfer_s(a, b, 200_000) for _ in range(5)) < slow_s / 2


def transfer_s(source: Host, target: Host, size: int) -> float:
    begun = time.monotonic()
    with target.inside(lambda: socket.create_server((target.address, PORT))) as server:
        with source.inside(lambda: socket.create_connection((target.address, PORT))) as sending:
            receiving, _ = server.accept()
            with receiving:
                sending.settimeout(30)
                receiving.settimeout(30)
                sent = got = 0
                sending.setblocking(False)
                while got < size:
                    if sent < size:
                        try:
                            sent += sending.send(b"x" * min(16_384, size - sent))
                        except BlockingIOError:
                            pass
                    receiving.setblocking(sent == size)
                    try:
                        got += len(receiving.recv(65_536))
                    except BlockingIOError:
                        continue
    return time.monotonic() - begun
