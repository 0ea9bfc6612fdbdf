"""By what address others reach this machine."""

from __future__ import annotations

import socket

from mesos_py.errors import InvalidValue


def address_of(hostname: str) -> str:
    """An IPv4 address of the host, "" if its name means nothing here."""
    try:
        return socket.getaddrinfo(hostname, None, socket.AF_INET)[0][4][0]  # type: ignore[return-value]
    except OSError:
        return ""


def own_address(towards: str, option: str) -> str:
    """The address of this machine from which that one is reached.  Nothing is sent.

    Raises InvalidValue, which names the option that would say it, if there is none.
    """
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((towards, 9))
            return str(probe.getsockname()[0])
    except OSError as error:
        raise InvalidValue(option, "", f"give it: {towards!r} is not reached: {error}") from None
