"""What an agent tells an executor through its environment (Mesos v1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from mesos_py.address import parse_address
from mesos_py.config_kinds import parse_duration
from mesos_py.errors import InvalidValue
from mesos_py.ids import check_id

# Ours: where the agent's gRPC service for executors is.  Mesos' own variable names the
# agent's HTTP API; agents before that was there gave the gRPC service in it.
ENDPOINT: Final = "MESOS_PY_EXECUTOR_ENDPOINT"
_OF_MESOS: Final = "MESOS_AGENT_ENDPOINT"
HTTP: Final = "http://"
# Mesos: DEFAULT_EXECUTOR_SHUTDOWN_GRACE_PERIOD, RECOVERY_TIMEOUT, and the back-off of
# the executor library.
SHUTDOWN_GRACE_S: Final = 5.0
RECOVERY_TIMEOUT_S: Final = 15 * 60.0
BACKOFF_MAX_S: Final = 2.0


@dataclass(frozen=True)
class ExecutorEnvironment:
    """`agent_endpoint`: `unix:/path` or `host:port` is the gRPC service of an agent of ours,
    `http://host:port` the HTTP API of any agent, also of Apache Mesos.

    `checkpoint`: the executor outlives its agent and waits for it to come back, for
    `recovery_timeout_s`, trying after random pauses of up to `backoff_max_s`.
    `token`: shown to agents that authenticate their executors; over HTTP."""

    agent_endpoint: str
    framework_id: str
    executor_id: str
    checkpoint: bool = False
    recovery_timeout_s: float = RECOVERY_TIMEOUT_S
    backoff_max_s: float = BACKOFF_MAX_S
    shutdown_grace_s: float = SHUTDOWN_GRACE_S
    sandbox: str = ""
    token: str = field(default="", repr=False)

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> ExecutorEnvironment:
        """Raises InvalidValue that names the variable that is missing or malformed."""
        return cls(
            agent_endpoint=_endpoint(environ),
            framework_id=_id(environ, "MESOS_FRAMEWORK_ID"),
            executor_id=_id(environ, "MESOS_EXECUTOR_ID"),
            # Set to "0" where there is no checkpointing.
            checkpoint=environ.get("MESOS_CHECKPOINT", "0") not in ("", "0"),
            recovery_timeout_s=_seconds(environ, "MESOS_RECOVERY_TIMEOUT", RECOVERY_TIMEOUT_S),
            backoff_max_s=_seconds(environ, "MESOS_SUBSCRIPTION_BACKOFF_MAX", BACKOFF_MAX_S),
            shutdown_grace_s=_seconds(
                environ, "MESOS_EXECUTOR_SHUTDOWN_GRACE_PERIOD", SHUTDOWN_GRACE_S
            ),
            sandbox=environ.get("MESOS_SANDBOX", ""),
            token=environ.get("MESOS_EXECUTOR_AUTHENTICATION_TOKEN", ""),
        )


def _endpoint(environ: Mapping[str, str]) -> str:
    """The gRPC service where there is one, else the HTTP API."""
    ours, of_mesos = environ.get(ENDPOINT, ""), environ.get(_OF_MESOS, "")
    if not ours and not of_mesos:
        reason = f"is not set, nor is {_OF_MESOS}; an executor is started by an agent"
        raise InvalidValue(ENDPOINT, "", reason)
    if ours:
        return _http(ENDPOINT, ours[len(HTTP) :]) if ours.startswith(HTTP) else ours
    return of_mesos if of_mesos.startswith("unix:") else _http(_OF_MESOS, of_mesos)


def _http(name: str, text: str) -> str:
    return f"{HTTP}{parse_address(text.removesuffix('/'), name)}"


def _needed(environ: Mapping[str, str], name: str) -> str:
    value = environ.get(name, "")
    if not value:
        raise InvalidValue(name, value, "is not set; an executor is started by an agent")
    return value


def _id(environ: Mapping[str, str], name: str) -> str:
    return check_id(name, _needed(environ, name))


def _seconds(environ: Mapping[str, str], name: str, default: float) -> float:
    value = environ.get(name, "")
    if not value:
        return default
    try:
        return parse_duration(value)
    except ValueError as error:
        raise InvalidValue(name, value, str(error)) from None


__all__ = ["ENDPOINT", "HTTP", "ExecutorEnvironment"]
