"""The `parameters` of Mesos' DockerInfo: options of `docker run`, by name.

What there is no use for, what is ours to decide and what would lead out of the
container is refused by name; so is what is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from agent.containers.docker.request import CreateRequest, MountPoint, Ulimit
from agent.containers.docker.settings import LABELS
from mesos_py.config_kinds import parse_size
from mesos_py.errors import InvalidValue
from mesos_py.v1 import types_pb2 as pb

FIELD: Final = "container.docker.parameters"


class _Known(NamedTuple):
    """Where a value goes: an argument of the SDK, of `config` or of HostConfig."""

    name: str
    parse: Callable[[str], Any]
    # Several of it make a list, or a mapping.
    many: bool = False
    in_config: bool = False
    # Values that only an agent that allows privileged containers takes; None: all.
    leads_out: tuple[str, ...] | None = ()


def _text(value: str) -> str:
    if not value:
        raise ValueError("must not be empty")
    return value


def _boolean(value: str) -> bool:
    # As `docker run` takes them; the option alone means yes.
    if value in ("", "true", "1", "True", "TRUE", "t"):
        return True
    if value in ("false", "0", "False", "FALSE", "f"):
        return False
    raise ValueError("must be true or false")


def _integer(value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise ValueError("must be a whole number") from None


def _size(value: str) -> int:
    """As docker writes it: 64m; or as we do: 64MB."""
    return parse_size(f"{value}b" if value[-1:].lower() in ("k", "m", "g") else value)


def _pair(separator: str) -> Callable[[str], tuple[str, str]]:
    def parse(value: str) -> tuple[str, str]:
        name, found, rest = value.partition(separator)
        if not name or not found:
            raise ValueError(f"must be NAME{separator}VALUE")
        return name, rest

    return parse


def _tmpfs(value: str) -> tuple[str, str]:
    path, _, options = value.partition(":")
    if not path.startswith("/"):
        raise ValueError("must be an absolute path, and :OPTIONS")
    return path, options


def _label(value: str) -> tuple[str, str]:
    name, _, rest = value.partition("=")
    if not name or name.startswith(LABELS):
        raise ValueError(f"must be a label, and none that begins with {LABELS}")
    return name, rest


def _entrypoint(value: str) -> list[str]:
    return [_text(value)]


_KNOWN: Final = {
    "add-host": _Known("extra_hosts", _pair(":"), many=True),
    "blkio-weight": _Known("blkio_weight", _integer),
    "cap-add": _Known("cap_add", _text, many=True, leads_out=None),
    "cap-drop": _Known("cap_drop", _text, many=True),
    "cpuset-cpus": _Known("cpuset_cpus", _text),
    "cpuset-mems": _Known("cpuset_mems", _text),
    "device": _Known("devices", _text, many=True, leads_out=None),
    "dns": _Known("dns", _text, many=True),
    "dns-option": _Known("dns_opt", _text, many=True),
    "dns-search": _Known("dns_search", _text, many=True),
    "domainname": _Known("domainname", _text, in_config=True),
    "entrypoint": _Known("entrypoint", _entrypoint, in_config=True),
    "group-add": _Known("group_add", _text, many=True),
    "hostname": _Known("hostname", _text, in_config=True),
    "init": _Known("init", _boolean),
    "ipc": _Known("ipc_mode", _text, leads_out=("host", "container")),
    "label": _Known("labels", _label, many=True, in_config=True),
    "mac-address": _Known("mac_address", _text, in_config=True),
    "memory-reservation": _Known("mem_reservation", _size),
    "memory-swappiness": _Known("mem_swappiness", _integer),
    "oom-score-adj": _Known("oom_score_adj", _integer),
    "pid": _Known("pid_mode", _text, leads_out=("host", "container")),
    "pids-limit": _Known("pids_limit", _integer),
    "read-only": _Known("read_only", _boolean),
    "runtime": _Known("runtime", _text),
    "security-opt": _Known("security_opt", _text, many=True, leads_out=None),
    "shm-size": _Known("shm_size", _size),
    "storage-opt": _Known("storage_opt", _pair("="), many=True),
    "sysctl": _Known("sysctls", _pair("="), many=True),
    "tmpfs": _Known("tmpfs", _tmpfs, many=True),
    "user": _Known("user", _text, in_config=True),
    "userns": _Known("userns_mode", _text, leads_out=("host",)),
    "uts": _Known("uts_mode", _text, leads_out=("host",)),
    "workdir": _Known("working_dir", _text, in_config=True),
}
_SHORT: Final = {
    "e": "env",
    "h": "hostname",
    "l": "label",
    "u": "user",
    "v": "volume",
    "w": "workdir",
    "m": "memory",
    "c": "cpu-shares",
    "p": "publish",
    "t": "tty",
    "i": "interactive",
}

_RESOURCES: Final = "comes from the task's resources"
_NETWORK: Final = "is said by container.docker.network and network_infos"
_OURS: Final = {
    "name": "is given by the agent",
    "cgroup-parent": "is given by the agent",
    "cidfile": "is not needed: the container's name is in MESOS_CONTAINER_NAME",
    "cpu-shares": _RESOURCES,
    "cpu-period": _RESOURCES,
    "cpu-quota": _RESOURCES,
    "cpus": _RESOURCES,
    "memory": _RESOURCES,
    "memory-swap": _RESOURCES,
    "oom-kill-disable": "would keep a task over its memory limit alive",
    "net": _NETWORK,
    "network": _NETWORK,
    "network-alias": _NETWORK,
    "publish": "is said by container.docker.port_mappings",
    "publish-all": "would take ports that were not offered",
    "privileged": "is said by container.docker.privileged",
    "restart": "is for the framework to decide: a task ends when its process does",
    "rm": "is what the agent does anyway",
    "detach": "is what the agent does anyway",
    "log-driver": "is fixed: output goes to the sandbox",
    "log-opt": "is fixed: output goes to the sandbox",
    "tty": "has no use: output goes to the sandbox",
    "interactive": "has no use: there is no input",
    "attach": "has no use: output goes to the sandbox",
    "stop-signal": "has no use: a task is asked to end by SIGTERM",
    "stop-timeout": "is said by the task's kill_policy",
    "link": "names a container that the agent does not know",
    "volumes-from": "names a container that the agent does not know",
    "volume-driver": "is said by the volume itself",
}


def apply(request: CreateRequest, parameters: Iterable[pb.Parameter], *, privileged: bool) -> None:
    """Add the parameters.  Raises InvalidValue naming the first that cannot be had."""
    for parameter in parameters:
        key = parameter.key.lstrip("-")
        key = _SHORT.get(key, key)
        where = f"{FIELD}.{parameter.key}"
        try:
            _apply(request, key, parameter.value, privileged)
        except ValueError as error:
            raise InvalidValue(where, parameter.value, str(error)) from None
        except InvalidValue as error:
            raise InvalidValue(where, parameter.value, error.reason) from None


def _apply(request: CreateRequest, key: str, value: str, privileged: bool) -> None:
    if key in _OURS:
        raise ValueError(_OURS[key])
    if "\0" in value:
        raise ValueError("has a null character")
    if key == "env":
        name, given, text = value.partition("=")
        if not name or not given:
            raise ValueError("must be NAME=VALUE")
        request.config["environment"][name] = text
    elif key == "volume":
        request.mount("volume", volume(value))
    elif key == "ulimit":
        request.ulimits.append(ulimit(value))
    elif key in _KNOWN:
        known = _KNOWN[key]
        leads_out = known.leads_out is None or value.partition(":")[0] in known.leads_out
        if leads_out and not privileged:
            raise ValueError("needs an agent that allows privileged containers")
        arguments = request.config if known.in_config else request.host
        _put(arguments, known, known.parse(value))
    else:
        raise ValueError("is no parameter that this agent knows")


def _put(arguments: dict[str, Any], known: _Known, value: Any) -> None:
    if not known.many:
        arguments[known.name] = value
    elif isinstance(value, tuple):
        arguments.setdefault(known.name, {})[value[0]] = value[1]
    else:
        arguments.setdefault(known.name, []).append(value)


def volume(text: str) -> MountPoint:
    """SOURCE:TARGET[:MODE], as `docker run -v` takes it.  Raises ValueError."""
    source, _, rest = text.partition(":")
    target, _, mode = rest.partition(":")
    if not source or not target.startswith("/"):
        raise ValueError("must be SOURCE:TARGET or SOURCE:TARGET:ro")
    if "/" in source and not source.startswith("/"):
        raise ValueError("must have an absolute path or a volume's name as its source")
    if mode not in ("", "rw", "ro"):
        raise ValueError(f"has the mode {mode!r}: only rw and ro are known")
    return MountPoint(source, target, mode == "ro")


def ulimit(text: str) -> Ulimit:
    """NAME=SOFT[:HARD].  Raises ValueError."""
    name, _, amounts = text.partition("=")
    soft, _, hard = amounts.partition(":")
    try:
        return Ulimit(name, int(soft), int(hard or soft))
    except ValueError:
        raise ValueError("must be NAME=SOFT or NAME=SOFT:HARD") from None
