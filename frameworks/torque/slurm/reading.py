"""What Slurm says of jobs and nodes, from the JSON of its commands (OpenAPI 0.0.38)."""

from __future__ import annotations

import json
from typing import Any, Final

from frameworks.torque.backend import BatchError
from frameworks.torque.core.records import Job, JobState, Node, NodeState
from frameworks.torque.slurm.config import ROOM_NODE
from mesos_py import logs

log = logs.get("torque.slurm")

# Jobs of these states hold nodes, or are about to.
_RUNNING: Final = frozenset(
    {
        "RUNNING",
        "CONFIGURING",
        "COMPLETING",
        "SUSPENDED",
        "STOPPED",
        "SIGNALING",
        "STAGE_OUT",
        "RESIZING",
    }
)
# Those that wait for Slurm; what a `PENDING` one waits for is its reason.
_WAITING: Final = frozenset({"PENDING", "REQUEUED"})
_HELD: Final = frozenset({"REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD", "REQUEUE_FED"})
_ENDED: Final = frozenset(
    {
        "COMPLETED",
        "CANCELLED",
        "FAILED",
        "TIMEOUT",
        "NODE_FAIL",
        "PREEMPTED",
        "BOOT_FAIL",
        "DEADLINE",
        "OUT_OF_MEMORY",
        "REVOKED",
    }
)
# A pending job with such a reason would not run if there were nodes.
_OTHER_REASONS: Final = (
    "Dependency",
    "JobHeld",
    "BeginTime",
    "JobArrayTaskLimit",
    "Assoc",
    "QOS",
    "MaxCpuPerAccount",
    "MaxMemPerLimit",
    "InvalidAccount",
    "InvalidQOS",
    "AccountingPolicy",
    "Licenses",
    "Reservation",
    "Prolog",
    "BadConstraints",
    "Cleaning",
    "LaunchFailedRequeuedHeld",
    "JobLaunchFailure",
    "BurstBuffer",
    "PartitionDown",
    "PartitionInactive",
    "PartitionTimeLimit",
    "NodeDown",
)
_TOO_MUCH: Final = 2**63
_DOWN: Final = frozenset({"down", "unknown", "error", "future"})
_DOWN_FLAGS: Final = frozenset(
    {"NOT_RESPONDING", "FAIL", "POWERED_DOWN", "POWERING_DOWN", "POWERING_UP", "INVALID_REG"}
)
_NOT_NOW_FLAGS: Final = frozenset({"DRAIN", "MAINTENANCE", "REBOOT_REQUESTED"})


def read_jobs(text: str) -> list[Job]:
    """From `squeue --json`: those that have not ended, the most urgent first.  Raises BatchError
    for what is no such answer; a single job that makes no sense is logged and left out."""
    jobs: list[tuple[int, Job]] = []
    for raw in _records("squeue", text, "jobs"):
        try:
            # Of those that have ended much is not there any more.
            if (state := _state(raw)) != "ended":
                jobs.append((_whole("squeue", raw, "priority"), _job(raw, state)))
        except BatchError as error:
            # The others are served all the same.
            log.warning("job is passed over", job=raw.get("job_id"), why=error.message)
    # Among equals the elder one: sorting keeps the order, and ids grow.
    return [job for _, job in sorted(jobs, key=lambda each: -each[0])]


def read_nodes(text: str) -> list[Node]:
    """From `sinfo --json`, without the one that stands for what may come.  Raises BatchError."""
    nodes = [_node(each) for each in _records("sinfo", text, "nodes")]
    return [node for node in nodes if node.name != ROOM_NODE]


def has_room_node(text: str) -> bool:
    return any(each.get("name") == ROOM_NODE for each in _records("sinfo", text, "nodes"))


def _job(raw: dict[str, Any], state: JobState) -> Job:
    said = "squeue"
    nodes = max(1, _whole(said, raw, "node_count"))
    cpus = max(1, -(-_whole(said, raw, "cpus") // nodes))
    per_cpu = _maybe_whole(said, raw, "memory_per_cpu") or 0
    per_node = _maybe_whole(said, raw, "memory_per_node")
    limit_min = _maybe_whole(said, raw, "time_limit")
    why = str(raw.get("state_description") or raw.get("state_reason") or "")
    return Job(
        job_id=str(_whole(said, raw, "job_id")),
        name=str(raw.get("name", "")),
        user=str(raw.get("user_name", "")),
        state=state,
        nodes=nodes,
        cpus=cpus,
        mem_mb=per_cpu * cpus if per_node is None else per_node,
        walltime_s=None if limit_min is None else limit_min * 60.0,
        count=array_size(str(raw.get("array_task_string") or "")),
        why="" if why == "None" else why,
        note=str(raw.get("admin_comment") or ""),
    )


def _state(raw: dict[str, Any]) -> JobState:
    state = str(raw.get("job_state", ""))
    if state in _RUNNING:
        return "running"
    if state in _HELD:
        return "held"
    if state in _WAITING:
        reason = str(raw.get("state_reason") or "")
        # "Reservation" and the like: of the partition's limits those may be waited for.
        return "held" if reason.startswith(_OTHER_REASONS) else "waiting"
    if state in _ENDED:
        return "ended"
    raise BatchError(f"squeue --json: job_state is {raw.get('job_state')!r}")


def array_size(text: str) -> int:
    """How many jobs "1-10%2", "0,3,5-7" or "0-8:4" are; of a shortened text at least as many."""
    count = 0
    for part in text.partition("%")[0].split(","):
        first, _, rest = part.partition("-")
        last, _, step = rest.partition(":")
        if first.isdecimal() and last.isdecimal():
            by = int(step) if step.isdecimal() and int(step) else 1
            count += max(0, (int(last) - int(first)) // by + 1)
        elif first.isdecimal():
            count += 1
    return max(1, count)


def _node(raw: dict[str, Any]) -> Node:
    said = "sinfo"
    cpus, mem_mb = _whole(said, raw, "cpus"), _whole(said, raw, "real_memory")
    used = _whole(said, raw, "alloc_cpus")
    name, state, flags = raw.get("name"), raw.get("state"), raw.get("state_flags") or []
    if not name or not isinstance(name, str) or not isinstance(flags, list):
        raise BatchError(f"sinfo --json: a node is {name!r} with flags {flags!r}")
    return Node(
        name=name,
        state=_node_state(str(state), set(map(str, flags))),
        cpus=cpus,
        mem_mb=mem_mb,
        free_cpus=max(0, cpus - used),
        free_mem_mb=max(0, mem_mb - _whole(said, raw, "alloc_memory")),
        busy=used > 0 or "COMPLETING" in flags or state in ("allocated", "mixed"),
        why=str(raw.get("reason") or ""),
    )


def _node_state(state: str, flags: set[str]) -> NodeState:
    if state in _DOWN or flags & _DOWN_FLAGS:
        return "down"
    return "draining" if flags & _NOT_NOW_FLAGS else "up"


def _records(command: str, text: str, key: str) -> list[dict[str, Any]]:
    try:
        answer = json.loads(text)
        errors, found = answer["errors"], answer[key]
    except (ValueError, KeyError, TypeError) as error:
        raise BatchError(f"{command} --json has given no list of {key}: {text[:200]!r}") from error
    if errors:
        raise BatchError(f"{command} --json: {str(errors)[:500]}")
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise BatchError(f"{command} --json: {key} is no list of objects")
    return found


def _whole(command: str, raw: dict[str, Any], key: str) -> int:
    value = raw.get(key)
    if type(value) is not int or not 0 <= value < _TOO_MUCH:
        raise BatchError(f"{command} --json: {key} is {value!r}, not a whole number")
    return value


def _maybe_whole(command: str, raw: dict[str, Any], key: str) -> int | None:
    return None if raw.get(key) is None else _whole(command, raw, key)


__all__ = ["array_size", "has_room_node", "read_jobs", "read_nodes"]
