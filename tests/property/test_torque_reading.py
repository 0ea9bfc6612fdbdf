"""Answers of batch systems, whole and broken: they are read, or refused, and nothing else."""

import contextlib
import json
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frameworks.torque.backend import BatchError
from frameworks.torque.core.records import Job
from frameworks.torque.pbs import reading as pbs
from frameworks.torque.slurm import reading as slurm

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)
JOB = {
    "job_id": 8,
    "job_state": "PENDING",
    "array_task_string": "1-3",
    "node_count": 1,
    "cpus": 4,
    "memory_per_node": None,
    "memory_per_cpu": 20,
    "time_limit": 10,
    "state_reason": "Resources",
    "state_description": "",
    "user_name": "ann",
    "name": "hello",
    "priority": 7,
    "admin_comment": "",
}
NODE = {
    "name": "one-n2",
    "cpus": 2,
    "real_memory": 64,
    "alloc_cpus": 0,
    "alloc_memory": 0,
    "state": "idle",
    "state_flags": ["DRAIN"],
    "reason": "",
}
PBS_JOB = """<Job><Job_Id>{id}</Job_Id><Job_Name>{name}</Job_Name><Job_Owner>{owner}</Job_Owner>
<job_state>{state}</job_state><Resource_List><nodes>{nodes}</nodes><mem>{mem}</mem>
<walltime>{walltime}</walltime></Resource_List></Job>"""
PBS_NODE = """<Node><name>{name}</name><state>{state}</state><np>{np}</np>
<properties>mesospy,{name}</properties><jobs>{jobs}</jobs><status>{status}</status></Node>"""
# Near to what it should be.
WORDS = st.text("0123456789:+-=,/.xppnmkgtbw# ", max_size=16) | st.text(max_size=6)


def answer(key: str, *records: object) -> str:
    return json.dumps({"errors": [], key: list(records)})


def changed(record: dict) -> st.SearchStrategy:
    """With some fields that are anything, or are not there."""
    fields = st.dictionaries(st.sampled_from(sorted(record)), VALUES, max_size=3)
    missing = st.sets(st.sampled_from(sorted(record)), max_size=2)
    return st.builds(
        lambda new, gone: {k: v for k, v in {**record, **new}.items() if k not in gone},
        fields,
        missing,
    )


@given(st.lists(changed(JOB), max_size=3))
def test_jobs_of_slurm_that_make_no_sense_take_nobody_with_them(records):
    good = {**JOB, "job_id": 4711}
    read = slurm.read_jobs(answer("jobs", *records, good))
    assert "4711" in [job.job_id for job in read]
    for job in read:
        assert job.nodes >= 1
        assert job.cpus >= 1
        assert job.mem_mb >= 0
        assert job.count >= 1


@given(changed(NODE))
def test_nodes_of_slurm_are_read_or_refused(record):
    with contextlib.suppress(BatchError):
        for node in slurm.read_nodes(answer("nodes", record)):
            assert 0 <= node.free_cpus <= node.cpus
            assert 0 <= node.free_mem_mb <= node.mem_mb


@given(st.text() | VALUES.map(json.dumps) | st.builds(answer, st.just("jobs"), VALUES))
def test_what_is_no_answer_of_slurm(text):
    for read in (slurm.read_jobs, slurm.read_nodes, slurm.has_room_node):
        with contextlib.suppress(BatchError):
            read(text)


@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.integers(0, 30), st.integers(1, 5)), min_size=1, max_size=4
    ),
    st.sampled_from(["", "%2"]),
)
def test_sizes_of_arrays(ranges, most):
    words = [f"{a}-{a + more}:{step}" if more else f"{a}" for a, more, step in ranges]
    size = sum(len(range(a, a + more + 1, step)) for a, more, step in ranges)
    assert slurm.array_size(",".join(words) + most) == size


@given(st.integers(1, 9), st.integers(1, 64), st.integers(0, 10**6), st.none() | st.integers(0, 99))
def test_what_a_job_of_slurm_asks_for(nodes, cpus, mem_mb, minutes):
    asked = {"node_count": nodes, "cpus": cpus * nodes, "memory_per_node": mem_mb}
    (job,) = slurm.read_jobs(answer("jobs", {**JOB, **asked, "time_limit": minutes}))
    wall_s = None if minutes is None else minutes * 60.0
    assert (job.nodes, job.cpus, job.mem_mb, job.walltime_s) == (nodes, cpus, mem_mb, wall_s)


@given(
    st.fixed_dictionaries(
        dict.fromkeys(("id", "name", "owner", "state", "nodes", "mem", "walltime"), WORDS)
    )
)
def test_jobs_of_torque_that_make_no_sense_take_nobody_with_them(fields):
    odd = PBS_JOB.format(**{name: xml(text) for name, text in fields.items()})
    good = PBS_JOB.format(
        id="4711", name="n", owner="u@h", state="Q", nodes="2:ppn=3", mem="1gb", walltime="1:00"
    )
    read = pbs.read_jobs(f"<Data>{odd}{good}</Data>")
    assert read[-1] == Job("4711", "n", "u", "waiting", 2, 3, 512, 60.0)
    for job in read:
        assert job.nodes >= 1
        assert job.cpus >= 1
        assert job.mem_mb >= 0
        assert job.walltime_s is None or job.walltime_s >= 0


@given(st.fixed_dictionaries(dict.fromkeys(("name", "state", "np", "jobs", "status"), WORDS)))
def test_nodes_of_torque_are_read_or_refused(fields):
    text = PBS_NODE.format(**{name: xml(text) for name, text in fields.items()})
    with contextlib.suppress(BatchError):
        for _, node, _ in pbs.read_nodes(f"<Data>{text}</Data>"):
            assert 0 <= node.free_cpus <= max(0, node.cpus)
            assert node.mem_mb >= 0


@given(st.text())
def test_what_is_no_answer_of_torque(text):
    for read in (pbs.read_jobs, pbs.read_nodes):
        with contextlib.suppress(BatchError):
            read(text)


@pytest.mark.parametrize("jobs", ["0-99999999999/1.server", "5-1/1.server"])
def test_processors_that_cannot_be(jobs):
    text = PBS_NODE.format(name="n", state="free", np=4, jobs=jobs, status="")
    with pytest.raises(BatchError, match="jobs are"):
        pbs.read_nodes(f"<Data>{text}</Data>")


def xml(text: str) -> str:
    """As XML can have it: of control characters it has only some."""
    return escape("".join(c for c in text if c.isprintable()))
