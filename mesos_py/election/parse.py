"""What `--master` and `--zk` say, as detectors and contenders."""

from __future__ import annotations

from typing import Final

from mesos_py.address import Address, parse_address
from mesos_py.election.base import Contender, Detector
from mesos_py.election.standalone import StandaloneContender, StandaloneDetector
from mesos_py.election.zookeeper.url import ZooKeeperUrl, is_zookeeper, parse_url
from mesos_py.errors import InvalidValue

# That of Mesos.
SESSION_TIMEOUT_S: Final = 10.0


def parse_where(text: str, field: str = "master") -> ZooKeeperUrl | list[Address]:
    """Where masters are found: `zk://h1:p1,h2:p2/path`, `h:p`, or `h1:p1,h2:p2`.

    Raises InvalidValue naming `field`; credentials are not in its text.
    """
    if is_zookeeper(text):
        return parse_url(text, field)
    if not text.strip():
        reason = "must not be empty; give host:port, h1:p1,h2:p2 or zk://h1:p1,h2:p2/path"
        raise InvalidValue(field, text, reason)
    addresses: list[Address] = []
    for part in text.strip().split(","):
        address = parse_address(part, field)
        if address in addresses:
            raise InvalidValue(field, text, f"names {address} twice")
        addresses.append(address)
    return addresses


def parse_master(
    text: str, field: str = "master", session_timeout_s: float = SESSION_TIMEOUT_S
) -> Detector:
    """The detector for what `parse_where` reads.

    `session_timeout_s` is what ZooKeeper is asked for.  Raises InvalidValue.
    """
    where = parse_where(text, field)
    if isinstance(where, ZooKeeperUrl):
        # Only who uses ZooKeeper pays for loading its client.
        from mesos_py.election.zookeeper.detector import ZooKeeperDetector

        return ZooKeeperDetector(where, session_timeout_s)
    return StandaloneDetector(where)


def parse_contender(
    text: str | None, field: str = "zk", session_timeout_s: float = SESSION_TIMEOUT_S
) -> Contender:
    """The contender for a `zk://...` text; without one, a master that always leads.

    Raises InvalidValue.
    """
    if text is None:
        return StandaloneContender()
    url = parse_url(text, field)
    from mesos_py.election.zookeeper.contender import ZooKeeperContender

    return ZooKeeperContender(url, session_timeout_s)
