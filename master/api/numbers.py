"""The numbers of a master that may or may not lead."""

from __future__ import annotations

from typing import Final, Protocol

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from master.api.exporter import PREFIX, families, registry_families
from master.api.shell import Shell
from master.registry.registrar import Registrar
from mesos_py.v1 import types_pb2 as pb

_HELP: Final = {
    "leading": "Whether this master leads",
    "epoch": "The number of the leadership; 0 without",
    "elections": "How often this process was elected",
    "doubts": "How often it was not sure any more that it led",
}


class Led(Protocol):
    """What is told of the leaderships of this process."""

    elections: int
    doubts: int
    # That of the present leadership.
    registrar: Registrar | None

    @property
    def shell(self) -> Shell | None: ...

    @property
    def epoch(self) -> int: ...


class Numbers:
    """For GET_METRICS of a master that does not lead, and for Prometheus."""

    def __init__(self, led: Led) -> None:
        self._led = led

    def local(self) -> list[pb.Metric]:
        """What is about this process."""
        found = {**self._gauges(), **self._counters()}
        return [pb.Metric(name=f"master/{name}", value=found[name]) for name in sorted(found)]

    def families(self) -> list[Metric]:
        """All numbers, those of the leadership, if there is one, included."""
        found: list[Metric] = [
            GaugeMetricFamily(PREFIX + name, _HELP[name], value=value)
            for name, value in self._gauges().items()
        ]
        found.extend(
            CounterMetricFamily(PREFIX + name, _HELP[name], value=value)
            for name, value in self._counters().items()
        )
        shell = self._led.shell
        if shell is not None:
            found.extend(families(shell.core.cluster, shell.failures))
            held, help = shell.certainty.held, "What had to wait for certainty, since it leads"
            found.append(CounterMetricFamily(f"{PREFIX}held", help, value=held))
        registrar = self._led.registrar
        if registrar is not None:
            found.extend(registry_families(registrar.figures, registrar.waiting))
        return found

    def _gauges(self) -> dict[str, float]:
        return {"leading": self._led.shell is not None, "epoch": self._led.epoch}

    def _counters(self) -> dict[str, float]:
        return {"elections": self._led.elections, "doubts": self._led.doubts}


__all__ = ["Led", "Numbers"]
