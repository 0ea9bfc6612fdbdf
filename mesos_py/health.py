"""Health checks and checks of tasks: what is asked for, read from the wire and checked.

The master refuses what is wrong here before a task is launched; the agent reads the same
plan once more and carries it out.  Rules and defaults: Mesos v1, src/checks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, TypeAlias

from mesos_py.enums import name_of
from mesos_py.errors import InvalidValue
from mesos_py.v1 import types_pb2 as pb

# What counts where the framework says nothing (types.proto of Mesos).
DELAY_S: Final = 15.0
INTERVAL_S: Final = 10.0
TIMEOUT_S: Final = 20.0
GRACE_S: Final = 10.0
FAILURES: Final = 3
# No pause between two probes is shorter, whatever was asked for.
MIN_INTERVAL_S: Final = 0.05
_MAX_S: Final = float(2**33)  # Mesos keeps durations in 64-bit nanoseconds
_MAX_PATH: Final = 4096


@dataclass(frozen=True)
class CommandProbe:
    """Run in the task's container; good if it exits with 0."""

    command: pb.CommandInfo


@dataclass(frozen=True)
class HttpProbe:
    """GET to the loopback address of the task's network; good if the answer is 200-399."""

    port: int
    path: str = "/"
    scheme: str = "http"
    ipv6: bool = False

    @property
    def url(self) -> str:
        host = "[::1]" if self.ipv6 else "127.0.0.1"
        return f"{self.scheme}://{host}:{self.port}{self.path}"


@dataclass(frozen=True)
class TcpProbe:
    """Connect to the loopback address of the task's network; good if that succeeds."""

    port: int
    ipv6: bool = False


Probe: TypeAlias = CommandProbe | HttpProbe | TcpProbe


@dataclass(frozen=True)
class Plan:
    """What is to be tried, and when.  `timeout_s` 0: for as long as it takes."""

    probe: Probe
    delay_s: float = DELAY_S
    interval_s: float = INTERVAL_S
    timeout_s: float = TIMEOUT_S
    # Of health checks: failures before the first success do not count until then.
    grace_s: float = GRACE_S
    # Of health checks: after so many failures in a row the task is killed.
    failures: int = FAILURES


def health_plan(field: str, health: pb.HealthCheck) -> Plan:
    """The plan of a health check.  Raises InvalidValue naming the part of `field`."""
    kind = health.type if health.HasField("type") else _meant(health)
    if kind == pb.HealthCheck.COMMAND:
        _require(field, health, "command")
        probe: Probe = CommandProbe(_command(f"{field}.command", health.command))
    elif kind == pb.HealthCheck.HTTP:
        _require(field, health, "http")
        probe = _http(f"{field}.http", health.http)
    elif kind == pb.HealthCheck.TCP:
        _require(field, health, "tcp")
        ipv6 = _is_ipv6(f"{field}.tcp.protocol", health.tcp.protocol)
        probe = TcpProbe(_port(f"{field}.tcp.port", health.tcp.port), ipv6)
    else:
        name = name_of(pb.HealthCheck.Type, kind)
        raise InvalidValue(f"{field}.type", name, "must be COMMAND, HTTP or TCP")
    failures = health.consecutive_failures if health.HasField("consecutive_failures") else FAILURES
    return Plan(
        probe,
        delay_s=_seconds(field, health, "delay_seconds", DELAY_S),
        interval_s=_interval_s(field, health),
        timeout_s=_seconds(field, health, "timeout_seconds", TIMEOUT_S),
        grace_s=_seconds(field, health, "grace_period_seconds", GRACE_S),
        failures=max(1, failures),
    )


def check_plan(field: str, check: pb.CheckInfo) -> Plan:
    """The plan of a check.  Raises InvalidValue naming the part of `field`."""
    if check.type == pb.CheckInfo.COMMAND:
        _require(field, check, "command")
        where = f"{field}.command.command"
        probe: Probe = CommandProbe(_command(where, check.command.command))
    elif check.type == pb.CheckInfo.HTTP:
        _require(field, check, "http")
        port = _port(f"{field}.http.port", check.http.port)
        probe = HttpProbe(port, _path(f"{field}.http.path", check.http.path))
    elif check.type == pb.CheckInfo.TCP:
        _require(field, check, "tcp")
        probe = TcpProbe(_port(f"{field}.tcp.port", check.tcp.port))
    else:
        name = name_of(pb.CheckInfo.Type, check.type)
        raise InvalidValue(f"{field}.type", name, "must be COMMAND, HTTP or TCP")
    return Plan(
        probe,
        delay_s=_seconds(field, check, "delay_seconds", DELAY_S),
        interval_s=_interval_s(field, check),
        timeout_s=_seconds(field, check, "timeout_seconds", TIMEOUT_S),
    )


def _meant(health: pb.HealthCheck) -> pb.HealthCheck.Type.ValueType:
    """Older frameworks set no type, and knew no TCP."""
    if health.HasField("command"):
        return pb.HealthCheck.COMMAND
    return pb.HealthCheck.HTTP if health.HasField("http") else pb.HealthCheck.UNKNOWN


def _require(field: str, message: pb.HealthCheck | pb.CheckInfo, name: str) -> None:
    # The three have the same names in both messages.
    if not message.HasField(name):  # type: ignore[arg-type]
        raise InvalidValue(f"{field}.{name}", "", f"is missing; the type is {name.upper()}")


def _command(field: str, command: pb.CommandInfo) -> pb.CommandInfo:
    if not command.value:
        shell = command.shell or not command.HasField("shell")
        what = "the shell's command line" if shell else "the program to run"
        raise InvalidValue(f"{field}.value", command.value, f"must be there: {what}")
    for text in (command.value, *command.arguments):
        if "\0" in text:
            raise InvalidValue(field, text, "must not contain a NUL character")
    for variable in command.environment.variables:
        where, name = f"{field}.environment", variable.name
        if not name or "=" in name or "\0" in name + variable.value:
            raise InvalidValue(where, name, "is no usable name or value")
        if variable.type == pb.Environment.Variable.SECRET:
            raise InvalidValue(where, name, "must be a VALUE; secrets are not supported")
    return command


def _http(field: str, http: pb.HealthCheck.HTTPCheckInfo) -> HttpProbe:
    scheme = http.scheme or "http"
    if scheme not in ("http", "https"):
        raise InvalidValue(f"{field}.scheme", http.scheme, "must be http or https")
    return HttpProbe(
        port=_port(f"{field}.port", http.port),
        path=_path(f"{field}.path", http.path),
        scheme=scheme,
        ipv6=_is_ipv6(f"{field}.protocol", http.protocol),
    )


def _path(field: str, path: str) -> str:
    if not path:
        return "/"
    if not path.startswith("/"):
        raise InvalidValue(field, path, "must begin with /")
    if len(path) > _MAX_PATH:
        raise InvalidValue(field, path, f"is longer than {_MAX_PATH} characters")
    if any(char.isspace() or not char.isprintable() for char in path):
        raise InvalidValue(field, path, "must not contain spaces or control characters")
    return path


def _port(field: str, port: int) -> int:
    if not 0 < port < 2**16:
        raise InvalidValue(field, port, "must be a port from 1 to 65535")
    return port


def _is_ipv6(field: str, protocol: pb.NetworkInfo.Protocol.ValueType) -> bool:
    if protocol not in pb.NetworkInfo.Protocol.values():
        raise InvalidValue(field, protocol, "must be IPv4 or IPv6")
    return protocol == pb.NetworkInfo.IPv6


def _seconds(
    field: str, message: pb.HealthCheck | pb.CheckInfo, name: str, default_s: float
) -> float:
    if not message.HasField(name):  # type: ignore[arg-type]
        return default_s
    value: float = getattr(message, name)
    if math.isnan(value) or not 0 <= value < _MAX_S:
        raise InvalidValue(f"{field}.{name}", value, "must be zero or more seconds")
    return value


def _interval_s(field: str, message: pb.HealthCheck | pb.CheckInfo) -> float:
    return max(MIN_INTERVAL_S, _seconds(field, message, "interval_seconds", INTERVAL_S))
