"""Jobs that ask for more than they can ever have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from frameworks.torque.core.records import Job, Size


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """
    most_nodes: as the operator of the batch server has said.
    share: what its nodes may be together; None: not known, or any size.
    limit: what its role may have at most; None: not known, or any size.
    agents: all there are, each with what a node there can be; None: not known.
    one_per_agent: whether jobs on several nodes need as many agents.
    """

    most_nodes: int
    share: Size | None
    limit: Size | None
    agents: Sequence[Size] | None
    one_per_agent: bool


def never(job: Job, bounds: Bounds) -> str:
    """Why the job cannot run as things are, in one line; empty if it can."""
    if job.nodes > bounds.most_nodes:
        return f"asks for {job.nodes} nodes, there are never more than {bounds.most_nodes}"
    why = _over(job, bounds.limit, "its role is limited to {}")
    why = why or _over(job, bounds.share, "no more than {} are guaranteed")
    if why:
        return why
    if bounds.agents is None:
        return ""
    return _no_agents(job, bounds.agents, bounds.one_per_agent)


def _over(job: Job, most: Size | None, words: str) -> str:
    cpus, mem_mb = job.cpus * job.nodes, job.mem_mb * job.nodes
    if most is not None and cpus > most.cpus:
        return f"asks for {cpus} cpus, {words.format(most.cpus)}"
    if most is not None and mem_mb > most.mem_mb:
        return f"asks for {mem_mb} MB of memory, {words.format(most.mem_mb)}"
    return ""


def _no_agents(job: Job, agents: Sequence[Size], one_per_agent: bool) -> str:
    if not agents:
        return ""  # They may come yet; that there are none is said elsewhere.
    cpus = max(size.cpus for size in agents)
    if job.cpus > cpus:
        return f"asks for {job.cpus} cpus on a node, the largest agent has {cpus}"
    mem_mb = max(size.mem_mb for size in agents)
    if job.mem_mb > mem_mb:
        return f"asks for {job.mem_mb} MB of memory on a node, the largest agent has {mem_mb}"
    fit = sum(_times(size, job, one_per_agent) for size in agents)
    if fit < job.nodes:
        return (
            f"asks for {job.nodes} nodes with {job.cpus} cpus and {job.mem_mb} MB each, "
            f"the cluster has room for {fit}"
        )
    return ""


def _times(size: Size, job: Job, one_per_agent: bool) -> int:
    """How many of the job's nodes fit on an agent of this size."""
    by_cpus = size.cpus // job.cpus if job.cpus else job.nodes
    by_mem = size.mem_mb // job.mem_mb if job.mem_mb else job.nodes
    most = 1 if one_per_agent else job.nodes
    # An agent may have less than a node takes beside its jobs.
    return max(0, min(by_cpus, by_mem, most))


__all__ = ["Bounds", "never"]
