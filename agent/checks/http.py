"""HTTP probes: what a server answers to a GET."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any, Final

import aiohttp
from yarl import URL

from agent.checks.dial import open_socket
from agent.checks.tcp import why
from agent.core.health import Outcome
from mesos_py.errors import shortened
from mesos_py.health import HttpProbe
from mesos_py.version import VERSION

_MAX_REDIRECTS: Final = 10
_HEADERS: Final = {"User-Agent": f"mesos-py/{VERSION} (health check)"}


async def tried(probe: HttpProbe, namespaces: Sequence[str]) -> Outcome:
    """GET, redirects followed; any certificate will do.  The body is not read."""

    def dialled(address: Any) -> socket.socket:
        return open_socket(address[0], namespaces)

    connector = aiohttp.TCPConnector(ssl=False, force_close=True, socket_factory=dialled)
    try:
        async with (
            aiohttp.ClientSession(
                connector=connector,
                headers=_HEADERS,
                cookie_jar=aiohttp.DummyCookieJar(),
                # The core keeps the time.
                timeout=aiohttp.ClientTimeout(total=None),
            ) as session,
            session.get(URL(probe.url, encoded=True), max_redirects=_MAX_REDIRECTS) as answer,
        ):
            return _judged(probe, answer.status)
    except aiohttp.ClientConnectorError as error:
        return _failed(probe, why(error.os_error))
    except aiohttp.TooManyRedirects:
        return _failed(probe, f"more than {_MAX_REDIRECTS} redirects")
    except (aiohttp.ClientError, OSError, ValueError) as error:
        return _failed(probe, shortened(error, 200) or type(error).__name__)


def _judged(probe: HttpProbe, status: int) -> Outcome:
    return Outcome(200 <= status < 400, status, f"GET {_shown(probe)} was answered {status}")


def _failed(probe: HttpProbe, reason: str) -> Outcome:
    return Outcome(False, None, f"GET {_shown(probe)}: {reason}")


def _shown(probe: HttpProbe) -> str:
    return shortened(probe.url, 100)
