"""What Torque says of jobs and nodes: `qstat -x` and `pbsnodes -x`, as its manuals have it."""

from __future__ import annotations

import re
from typing import Final
from xml.etree import ElementTree

from frameworks.torque.backend import BatchError
from frameworks.torque.core.records import Job, JobState, Node, NodeState
from mesos_py import logs

log = logs.get("torque.pbs")

# qstat's one-letter states; "W" waits for its time, "T" is being moved.
_STATES: Final[dict[str, JobState]] = {
    "Q": "waiting",
    "H": "held",
    "W": "held",
    "T": "held",
    "S": "running",
    "R": "running",
    "E": "running",
    "C": "ended",
}
# What nodes of ours have, and then the name that we have for each.
PROPERTY: Final = "mesospy"
_PREFIXES: Final = ("", "k", "m", "g", "t")
_WORD_BYTES: Final = 8
# Of one node.
_MOST_CPUS: Final = 100_000
_DOWN: Final = frozenset({"down", "state-unknown"})


def read_jobs(text: str) -> list[Job]:
    """From `qstat -x`: those that have not ended, in the order of the queue.  With no jobs it
    says nothing at all.  Raises BatchError for what is no such answer; a single job that makes
    no sense is logged and left out."""
    jobs = []
    for element in _elements("qstat", text, "Job"):
        try:
            job = _job(element)
        except ValueError as error:
            log.warning("job is passed over", job=_text(element, "Job_Id"), why=str(error))
            continue
        if job.state != "ended":
            jobs.append(job)
    return jobs


def read_nodes(text: str) -> list[tuple[str, Node, list[str]]]:
    """From `pbsnodes -x`, our nodes: for each its host, it as we call it, and its jobs.  Raises
    BatchError."""
    try:
        found = [_node(element) for element in _elements("pbsnodes", text, "Node")]
    except ValueError as error:
        raise BatchError(f"pbsnodes -x: {error}") from error
    return [each for each in found if each is not None]


def _job(element: ElementTree.Element) -> Job:
    letter = _text(element, "job_state")
    state = _STATES.get(letter)
    if state is None:
        raise ValueError(f"job_state is {letter!r}")
    nodes, cpus = _chunks(_text(element, "Resource_List/nodes") or "1")
    memory = _text(element, "Resource_List/mem")
    each = _text(element, "Resource_List/pmem")
    # mem is of the whole job, pmem of each process.
    mem_mb = _megabytes(each) * cpus if each else -(-_megabytes(memory or "0b") // nodes)
    walltime = _text(element, "Resource_List/walltime")
    return Job(
        job_id=_text(element, "Job_Id"),
        name=_text(element, "Job_Name"),
        user=_text(element, "Job_Owner").partition("@")[0],
        state=state,
        nodes=nodes,
        cpus=cpus,
        mem_mb=mem_mb,
        walltime_s=_seconds(walltime) if walltime else None,
        why=_text(element, "comment"),
        note=_text(element, "comment"),
    )


def _chunks(text: str) -> tuple[int, int]:
    """Of "2:ppn=4+1:ppn=8": three nodes, each as large as the largest needs.  A name instead of
    a number is one node; properties are those of no node of ours and say nothing of a size."""
    nodes, most = 0, 1
    for chunk in text.partition("#")[0].split("+"):
        first, *rest = chunk.split(":")
        nodes += int(first) if first.isdecimal() else 1
        for word in rest:
            name, _, value = word.partition("=")
            if name == "ppn":
                most = max(most, int(value))
    if nodes < 1:
        raise ValueError(f"nodes are {text!r}")
    return nodes, most


def _megabytes(text: str) -> int:
    """Of "512mb", "1gb", "100kw" (words), "2048" (bytes); rounded up."""
    found = re.fullmatch(r"(\d+)([kmgt]?)([bw]?)", text.strip().lower())
    if found is None:
        raise ValueError(f"memory is {text!r}")
    number, prefix, kind = found.groups()
    factor = _WORD_BYTES if kind == "w" else 1
    size = int(number) * factor << 10 * _PREFIXES.index(prefix)
    return -(-size >> 20)


def _seconds(text: str) -> float:
    """Of "1:30:00", "90:00" or "5400"."""
    seconds = 0
    for part in text.split(":"):
        seconds = seconds * 60 + int(part)
    return float(seconds)


def _node(element: ElementTree.Element) -> tuple[str, Node, list[str]] | None:
    """None for one of other people.  Torque calls nodes by their hosts; what we call it is its
    property after ours."""
    properties = [word.strip() for word in _text(element, "properties").split(",")]
    if PROPERTY not in properties[:-1]:
        return None
    words = {word.strip() for word in _text(element, "state").split(",")}
    cpus = int(_text(element, "np") or "1")
    there = _jobs_there(_text(element, "jobs"))
    mem_mb = _physmem_mb(_text(element, "status"))
    state: NodeState = "up"
    if words & _DOWN or words == {""}:
        state = "down"
    elif "offline" in words:
        state = "draining"
    node = Node(
        name=properties[properties.index(PROPERTY) + 1],
        state=state,
        cpus=cpus,
        mem_mb=mem_mb,
        free_cpus=max(0, cpus - len(there)),
        # Torque keeps no account of what jobs have of it.
        free_mem_mb=mem_mb,
        busy=bool(there),
        why=_text(element, "note"),
    )
    return _text(element, "name"), node, list(dict.fromkeys(there))


def _jobs_there(text: str) -> list[str]:
    """For each virtual processor that has one, the job: "0/12.server, 1/12.server" or, from
    Torque 5 on, "0-1/12.server"."""
    jobs: list[str] = []
    for entry in filter(None, (each.strip() for each in text.split(", "))):
        where, _, job_id = entry.partition("/")
        for part in where.split(","):
            first, _, last = part.partition("-")
            if not job_id or not first.isdecimal() or (last and not last.isdecimal()):
                raise ValueError(f"jobs are {text!r}")
            count = int(last or first) - int(first) + 1
            if not 0 < count <= _MOST_CPUS:
                raise ValueError(f"jobs are {text!r}")
            jobs += [job_id] * count
    return jobs


def _physmem_mb(status: str) -> int:
    for pair in status.split(","):
        name, _, value = pair.partition("=")
        if name.strip() == "physmem":
            return _megabytes(value)
    return 0


def _elements(command: str, text: str, tag: str) -> list[ElementTree.Element]:
    if not text.strip():
        return []
    try:
        root = ElementTree.fromstring(text)  # the batch server's own words
    except ElementTree.ParseError as error:
        raise BatchError(f"{command} -x has given no XML ({error}): {text[:200]!r}") from error
    if root.tag != "Data":
        raise BatchError(f"{command} -x has given <{root.tag}> instead of <Data>")
    return root.findall(tag)


def _text(element: ElementTree.Element, path: str) -> str:
    return (element.findtext(path) or "").strip()


__all__ = ["PROPERTY", "read_jobs", "read_nodes"]
