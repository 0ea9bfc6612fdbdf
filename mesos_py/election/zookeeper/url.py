"""`zk://[user:password@]host:port,.../path` as a value that shows no credentials."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from mesos_py.address import Address, parse_address
from mesos_py.errors import InvalidValue

SCHEME: Final = "zk://"
DEFAULT_PORT: Final = 2181
_HAS_PORT: Final = re.compile(r":[^\]]*$")
# What ZooKeeper takes as a name, without those that it reserves.
_NAME: Final = re.compile(r"[^\x00-\x1f\x7f/\s]+")


@dataclass(frozen=True)
class ZooKeeperUrl:
    """Where an election is held.  Neither `str()` nor `repr()` tell the credentials."""

    hosts: tuple[Address, ...]
    # Begins with a slash and does not end with one.
    path: str
    # `user:password`, or None.
    credentials: str | None = field(default=None, repr=False)

    @property
    def servers(self) -> str:
        """`host:port,host:port`, as clients of ZooKeeper are told."""
        return ",".join(map(str, self.hosts))

    def __str__(self) -> str:
        hidden = "***@" if self.credentials is not None else ""
        return f"{SCHEME}{hidden}{self.servers}{self.path}"


def is_zookeeper(text: str) -> bool:
    return text.strip().lower().startswith(SCHEME)


def parse_url(text: str, field: str = "zk") -> ZooKeeperUrl:
    """Raises InvalidValue naming `field`, with a value that shows no credentials."""
    shown = hide_credentials(text)
    if not is_zookeeper(text):
        raise InvalidValue(field, shown, "must be zk://[user:password@]host:port,.../path")
    rest = text.strip()[len(SCHEME) :]
    # A password may hold any of the characters that part what follows.
    credentials, at, rest = rest.rpartition("@")
    user, colon, password = credentials.partition(":")
    if at and not (user and colon and password):
        raise InvalidValue(field, shown, "credentials must be user:password")
    servers, _, path = rest.partition("/")
    hosts: list[Address] = []
    for part in servers.split(","):
        host = _host(part, field, shown)
        if host in hosts:
            raise InvalidValue(field, shown, f"names {host} twice")
        hosts.append(host)
    return ZooKeeperUrl(tuple(hosts), _path(path, field, shown), credentials if at else None)


def hide_credentials(text: str) -> str:
    """`text` without what stands between the scheme and the last `@`."""
    return re.sub(r"//.*@", "//***@", text.strip(), flags=re.DOTALL)


def _host(text: str, field: str, shown: str) -> Address:
    part = text.strip()
    if not part:
        raise InvalidValue(field, shown, "must name servers, as host:port,host:port")
    if not _HAS_PORT.search(part):
        part = f"{part}:{DEFAULT_PORT}"
    try:
        return parse_address(part, field)
    except InvalidValue as error:
        raise InvalidValue(field, shown, error.reason) from None


def _path(text: str, field: str, shown: str) -> str:
    path = text.strip().rstrip("/")
    if not path:
        raise InvalidValue(field, shown, "must end with a path, such as /mesos")
    for name in path.split("/"):
        if not _NAME.fullmatch(name) or name in (".", ".."):
            raise InvalidValue(field, shown, f"{name!r} cannot be a part of the path")
    return f"/{path}"
