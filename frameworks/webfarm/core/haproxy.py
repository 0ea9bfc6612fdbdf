"""What haproxy is told and what it says (2.4 and later), as texts.  Pure.

Its manuals: the configuration manual, and the chapters "statistics" and "Unix socket
commands" of the management guide.
"""

from __future__ import annotations

import csv
import io
import ipaddress
from dataclasses import dataclass
from typing import Final

from frameworks.webfarm.core.balancer import Mode, Reading, Slot
from mesos_py.errors import InternalError

BACKEND: Final = "farm"
FRONTEND: Final = "web"
SOCKET_FILE: Final = "haproxy.sock"
STATE_FILE: Final = "haproxy.state"
# Where a slot points while nobody is in it.  The name resolves nowhere and is never asked for
# (`init-addr`); with a name, haproxy restores the address of a slot from its state file.
_NOWHERE: Final = "127.0.0.1"
_NO_NAME: Final = "slot.invalid"

# Of `show servers state`: bits of srv_admin_state that we set or that mean "not in use".
_MAINTENANCE: Final = 0x01 | 0x02 | 0x20
_DRAINED: Final = 0x08 | 0x10
_STATE_VERSION: Final = "1"
_LOG: Final = "    log global\n    option httplog\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """
    bind, port: where users come.
    slots: servers there can be at the same time, old ones that still drain included.
    check_path: what the balancer asks servers for to see whether they are well.
    check_s: how often.
    log_requests: a line for each request, to standard output.
    """

    bind: str = ""
    port: int = 8080
    slots: int = 64
    check_path: str = "/"
    check_s: float = 1.0
    connect_s: float = 2.0
    idle_s: float = 30.0
    close_s: float = 30.0
    log_requests: bool = False


def configuration(front: Front) -> str:
    """The whole file; paths in it are of the directory in which haproxy is started.

    A connection to a server is for one request: none is idle when its server is to end, and
    none is used that the server is just closing.
    A request whose server cannot be reached or ends without a word is tried again at another
    one, only GET if it may have been carried out.
    """
    return f"""\
# Written once by mesos-py webfarm; servers come and go through the socket.
global
    stats socket unix@{SOCKET_FILE} mode 600 level admin
    server-state-file {STATE_FILE}
    hard-stop-after {_ms(front.close_s)}
{"    log stdout format raw daemon" if front.log_requests else ""}
defaults
    mode http
{_LOG if front.log_requests else ""}\
    timeout connect {_ms(front.connect_s)}
    timeout client {_ms(front.idle_s)}
    timeout server {_ms(front.idle_s)}
    timeout queue {_ms(front.connect_s * 5)}
    option http-server-close
    retries 3
    option redispatch 1
    retry-on conn-failure empty-response
    load-server-state-from-file global

frontend {FRONTEND}
    bind {_bind(front)}
    http-request disable-l7-retry if ! METH_GET
    default_backend {BACKEND}

backend {BACKEND}
    balance leastconn
    option httpchk GET {front.check_path}
    default-server init-addr last,{_NOWHERE} check inter {_ms(front.check_s)} fall 2 rise 1
    default-server fastinter {_ms(front.check_s / 10)} downinter {_ms(front.check_s / 4)}
    default-server observe layer4 error-limit 1
    server-template s 1-{front.slots} {_NO_NAME}:1 disabled
"""


def put(slot: str, address: str, port: int) -> list[str]:
    """Commands that put a server into a slot: it is held, and not well before a look at it."""
    server = f"{BACKEND}/{slot}"
    return [
        f"set server {server} addr {address} port {port}",
        f"set server {server} state drain",
        # haproxy takes a server that leaves maintenance for well until it has looked.
        f"set server {server} health down",
    ]


def state(slot: str, word: str) -> list[str]:
    """word: ready, drain or maint."""
    return [f"set server {BACKEND}/{slot} state {word}"]


def complaint(answer: str) -> str:
    """What haproxy has against a command of `put` or `state`; empty: nothing."""
    lines = [line.strip() for line in answer.splitlines() if line.strip()]
    ok = ("IP changed", "port changed", "no need to change")
    return "; ".join(line for line in lines if not line.startswith(ok))


def reading(stat: str, servers: str, info: str) -> Reading:
    """From the answers to `show stat`, `show servers state` and `show info`.

    Raises InternalError for what is not that.
    """
    rows = statistics(stat)
    try:
        front = rows[FRONTEND, "FRONTEND"]
        back = rows[BACKEND, "BACKEND"]
        return Reading(
            epoch=_epoch(info),
            sessions=int(back["stot"]),
            errors=int(front["hrsp_5xx"]),
            retries=int(back["wretr"]) + int(back["wredis"]),
            slots=tuple(
                Slot(
                    each.name,
                    each.mode,
                    each.address,
                    each.port,
                    sessions=int(rows[BACKEND, each.name]["scur"]),
                    total=int(rows[BACKEND, each.name]["stot"]),
                    well=each.well,
                )
                for each in slots(servers)
            ),
        )
    except (KeyError, ValueError) as error:
        raise InternalError(f"haproxy says what we do not understand: {error!r}") from error


def statistics(text: str) -> dict[tuple[str, str], dict[str, str]]:
    """`show stat` by proxy and server.  Raises InternalError."""
    if not text.startswith("# pxname,svname,"):
        raise InternalError(f"haproxy's statistics begin with {text[:40]!r}")
    rows = csv.DictReader(io.StringIO(text.removeprefix("# ")))
    return {(row["pxname"], row["svname"]): row for row in rows if row["svname"]}


def slots(text: str) -> list[Slot]:
    """`show servers state` of our backend, without counts.  Raises InternalError."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines or lines[0] != _STATE_VERSION or len(lines) < 2 or lines[1][:2] != "# ":
        raise InternalError(f"haproxy's state of servers begins with {text[:40]!r}")
    names = lines[1][2:].split()
    found = []
    for line in lines[2:]:
        row = dict(zip(names, line.split(), strict=False))
        try:
            if row["be_name"] == BACKEND:
                found.append(_slot(row))
        except (KeyError, ValueError) as error:
            raise InternalError(f"haproxy's state of servers has {line!r}") from error
    return found


def _slot(row: dict[str, str]) -> Slot:
    admin = int(row["srv_admin_state"])
    if admin & _MAINTENANCE:
        mode = Mode.FREE
    else:
        mode = Mode.HELD if admin & _DRAINED else Mode.OPEN
    well = mode is not Mode.FREE and int(row["srv_op_state"]) == 2
    return Slot(row["srv_name"], mode, row["srv_addr"], int(row["srv_port"]), well=well)


def _epoch(info: str) -> str:
    fields = dict(line.split(": ", 1) for line in info.splitlines() if ": " in line)
    return f"{int(fields['Pid'])}@{int(fields['Start_time_sec'])}"


def _bind(front: Front) -> str:
    if not front.bind or front.bind == "*":
        return f":{front.port}"
    if ipaddress.ip_address(front.bind).version == 6:
        return f"[{front.bind}]:{front.port}"
    return f"{front.bind}:{front.port}"


def _ms(seconds: float) -> str:
    return f"{max(1, round(seconds * 1000))}ms"


__all__ = [
    "BACKEND",
    "FRONTEND",
    "SOCKET_FILE",
    "STATE_FILE",
    "Front",
    "complaint",
    "configuration",
    "put",
    "reading",
    "slots",
    "state",
    "statistics",
]
