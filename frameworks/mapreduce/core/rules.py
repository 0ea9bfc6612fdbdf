"""What a job's properties say about how it is to be run, parsed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from frameworks.mapreduce import conf as props
from mesos_py.resources import Resources


@dataclass(frozen=True, slots=True)
class PhaseRules:
    """Of the maps or the reduces.  limit: a task that has failed so often is failed.
    tolerated: so many of the tasks may be, without failing the job."""

    needs: Resources
    mem_mb: int
    cpus: float
    limit: int
    tolerated: int
    speculative: bool


@dataclass(frozen=True, slots=True)
class JobRules:
    """start_reduces_at: so many maps must be done before reduces start."""

    priority: str
    maps: PhaseRules
    reduces: PhaseRules
    start_reduces_at: int
    failures_per_agent: int
    wait_host_s: float
    wait_rack_s: float


def rules_of(conf: Mapping[str, str], maps: int) -> JobRules:
    """Raises InvalidValue that names the property."""
    conf = props.normalised(conf)
    percent = props.MAX_MAP_FAILURES_PERCENT.of(conf)
    slowstart = props.SLOWSTART.of(conf)
    return JobRules(
        priority=props.PRIORITY.of(conf),
        maps=_phase(
            props.MAP_CPUS.of(conf),
            props.MAP_MEMORY_MB.of(conf),
            props.MAP_ATTEMPTS.of(conf),
            maps * percent // 100,
            props.MAP_SPECULATIVE.of(conf),
        ),
        reduces=_phase(
            props.REDUCE_CPUS.of(conf),
            props.REDUCE_MEMORY_MB.of(conf),
            props.REDUCE_ATTEMPTS.of(conf),
            0,
            props.REDUCE_SPECULATIVE.of(conf),
        ),
        start_reduces_at=-int(-slowstart * maps // 1),
        failures_per_agent=props.FAILURES_PER_AGENT.of(conf),
        wait_host_s=props.WAIT_HOST_S.of(conf),
        wait_rack_s=props.WAIT_RACK_S.of(conf),
    )


def _phase(cpus: float, mem_mb: int, limit: int, tolerated: int, speculative: bool) -> PhaseRules:
    needs = Resources.of(cpus=cpus, mem=mem_mb)
    return PhaseRules(needs, mem_mb, cpus, limit, tolerated, speculative)
