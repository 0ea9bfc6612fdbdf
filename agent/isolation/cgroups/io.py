"""Disk traffic: counted; weighed and limited where somebody asks for it (v1: blkio)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from agent.isolation.base import Container
from agent.isolation.cgroups.controller import Controller
from agent.isolation.cgroups.files import Group, device_beneath
from agent.isolation.cgroups.numbers import blkio, io_stat
from mesos_py.errors import InvalidValue

WEIGHT_LABEL: Final = "mesos_py.io_weight"
MAX_LABEL: Final = "mesos_py.io_max"
FLAG: Final = "cgroups-io-max"
# What v2 calls a limit, and the file of v1 for it.
_V1_LIMITS: Final = {
    "rbps": "blkio.throttle.read_bps_device",
    "wbps": "blkio.throttle.write_bps_device",
    "riops": "blkio.throttle.read_iops_device",
    "wiops": "blkio.throttle.write_iops_device",
}
_V1_WEIGHTS: Final = ("blkio.bfq.weight", "blkio.weight")
_V2_WEIGHTS: Final = ("io.weight", "io.bfq.weight")
_V1_WEIGHT: Final = (10, 1000)
_DEVICE: Final = re.compile(r"\*|[0-9]{1,6}:[0-9]{1,7}")
_MAX: Final = 2**63 - 1

Limits = dict[str, dict[str, int]]


def parse_limits(text: str, field: str) -> Limits:
    """ "8:0 rbps=1048576 wiops=100; * wbps=..." by device.  Raises InvalidValue."""
    found: Limits = {}
    for part in filter(None, (each.strip() for each in text.split(";"))):
        device, *items = part.split()
        if not _DEVICE.fullmatch(device):
            raise InvalidValue(field, device, "is no device such as 8:0, nor * for the sandbox's")
        if not items:
            raise InvalidValue(field, part, "names no limit: rbps, wbps, riops, wiops")
        for item in items:
            name, _, value = item.partition("=")
            number = int(value) if value.isascii() and value.isdigit() and len(value) < 20 else 0
            if name not in _V1_LIMITS or not 0 < number <= _MAX:
                raise InvalidValue(field, item, "must be rbps, wbps, riops or wiops=NUMBER above 0")
            found.setdefault(device, {})[name] = number
    return found


def parse_weight(labels: Mapping[str, str]) -> int | None:
    """From 1 to 10000, 100 being usual, as v2 counts.  Raises InvalidValue."""
    text = labels.get(WEIGHT_LABEL)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 6 and 1 <= int(text) <= 10_000):
        raise InvalidValue(f"labels.{WEIGHT_LABEL}", text, "must be a number from 1 to 10000")
    return int(text)


def tightened(limits: Limits, more: Limits) -> Limits:
    """Both together: where both limit the same, the lower one."""
    found = {device: dict(items) for device, items in limits.items()}
    for device, items in more.items():
        mine = found.setdefault(device, {})
        for name, value in items.items():
            mine[name] = min(value, mine.get(name, value))
    return found


class Io(Controller):
    name = "io"

    def prepare(self, container: Container) -> Group:
        group = self.group(container.container_id)
        group.make()
        labels = container.labels
        weight = parse_weight(labels)
        if weight is not None:
            self._weigh(group, weight)
        limits = self._on_disks(parse_limits(self.options.io_max, FLAG))
        if MAX_LABEL in labels:
            asked = self._on_disks(parse_limits(labels[MAX_LABEL], f"labels.{MAX_LABEL}"))
            limits = tightened(limits, asked)
        for device, items in limits.items():
            if self.v1:
                for name, value in items.items():
                    group.write(_V1_LIMITS[name], f"{device} {value}")
            else:
                text = " ".join(f"{name}={value}" for name, value in items.items())
                group.write("io.max", f"{device} {text}")
        return group

    def _on_disks(self, limits: Limits) -> Limits:
        if "*" not in limits:
            return limits
        disk = device_beneath(self.options.work_dir)
        rest = {device: items for device, items in limits.items() if device != "*"}
        return tightened(rest, {disk: limits["*"]})

    def _weigh(self, group: Group, weight: int) -> None:
        names = _V1_WEIGHTS if self.v1 else _V2_WEIGHTS
        name = next((each for each in names if group.has(each)), None)
        if name is None:
            text = f"this kernel has no weights for disks ({' or '.join(names)})"
            raise InvalidValue(f"labels.{WEIGHT_LABEL}", str(weight), text)
        if self.v1:
            low, high = _V1_WEIGHT
            weight = min(max(weight, low), high)
        group.write(name, weight)

    def usage(self, container_id: str) -> dict[str, float]:
        group = self.group(container_id)
        if not self.v1:
            stat = io_stat(group.read_or_none("io.stat"))
            names = ("rbytes", "wbytes", "rios", "wios")
        else:
            data = blkio(group.read_or_none("blkio.throttle.io_service_bytes_recursive"))
            count = blkio(group.read_or_none("blkio.throttle.io_serviced_recursive"))
            stat = {f"bytes {key}": value for key, value in data.items()}
            stat |= {f"count {key}": value for key, value in count.items()}
            names = ("bytes Read", "bytes Write", "count Read", "count Write")
        wanted = ("io_read_bytes", "io_write_bytes", "io_reads", "io_writes")
        return {ours: stat[name] for ours, name in zip(wanted, names, strict=True) if name in stat}
