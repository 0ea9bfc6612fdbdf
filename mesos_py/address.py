"""`host:port` as a value."""

from __future__ import annotations

import ipaddress
import re
from typing import NamedTuple

from mesos_py.errors import InvalidValue

_PORT = re.compile(r"[0-9]{1,5}", re.ASCII)
# Deliberately wider than RFC 1123: Docker and compose names have underscores.
_HOST = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_.])?", re.ASCII)


class Address(NamedTuple):
    """Where a daemon can be reached.  `str()` is the text that `parse_address` reads."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class MasterAddress(Address):
    """Where a master can be reached by our own peers; `http`, if it is known, is where by
    clients of HTTP.  Equal to the same address without that."""

    http: Address | None = None


def parse_address(text: str, field: str = "address") -> Address:
    """Read `host:port`, `1.2.3.4:port` or `[v6]:port`.

    Raises InvalidValue naming `field`.  Port 0 is refused: nobody can be reached
    there (what to bind is a different thing, see the port flag of the daemons).
    """
    host, colon, port = text.strip().rpartition(":")
    if not text.strip():
        raise InvalidValue(field, text, "must not be empty; give host:port")
    if "://" in text:
        raise InvalidValue(field, text, "must be host:port, without a scheme")
    if not colon or host.endswith(":") or (host.startswith("[") and not host.endswith("]")):
        raise InvalidValue(field, text, "has no port; give host:port, or [v6]:port")
    if host.startswith("["):
        host = host[1:-1]
        try:
            ipaddress.IPv6Address(host)
        except ValueError as error:
            raise InvalidValue(field, text, f"{host!r} is not an IPv6 address") from error
    elif not _HOST.fullmatch(host):
        reason = "an IPv6 address needs brackets" if ":" in host else "that is not a host name"
        raise InvalidValue(field, text, f"{host!r}: {reason}")
    if not _PORT.fullmatch(port) or not 1 <= int(port) <= 65535:
        raise InvalidValue(field, text, f"port {port!r} is not a number from 1 to 65535")
    return Address(host, int(port))
