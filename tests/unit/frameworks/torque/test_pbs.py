"""Torque's answers, written after its manuals: Torque itself was never there."""

import logging

import pytest

from frameworks.torque.backend import BatchError
from frameworks.torque.core.records import Job, Node
from frameworks.torque.pbs.reading import read_jobs, read_nodes

JOB = """<Job><Job_Id>{id}.server.example.org</Job_Id><Job_Name>hello</Job_Name>
<Job_Owner>ann@login.example.org</Job_Owner><job_state>{state}</job_state><queue>batch</queue>
<Resource_List><nodect>1</nodect><nodes>{nodes}</nodes>{more}</Resource_List></Job>"""
NODE = """<Node><name>host7.example.org</name><state>{state}</state><np>4</np>
<properties>{properties}</properties><ntype>cluster</ntype>{jobs}
<status>rectime=1700000000,ncpus=8,physmem=2097152kb,availmem=1000kb,state=free</status></Node>"""


def jobs(*records: str) -> list[Job]:
    return read_jobs(f"<Data>{''.join(records)}</Data>")


def job(state: str = "Q", nodes: str = "1", more: str = "") -> Job:
    (read,) = jobs(JOB.format(id=12, state=state, nodes=nodes, more=more))
    return read


def node(state: str = "free", properties: str = "mesospy,host7-n3", there: str = ""):
    held = f"<jobs>{there}</jobs>" if there else ""
    text = NODE.format(state=state, properties=properties, jobs=held)
    return read_nodes(f"<Data>{text}</Data>")


def test_a_job():
    assert job() == Job("12.server.example.org", "hello", "ann", "waiting")


@pytest.mark.parametrize(
    ("nodes", "more", "expected"),
    [
        ("2:ppn=4", "", (2, 4, 0, None)),
        ("2:ppn=4+1:ppn=8", "", (3, 8, 0, None)),
        ("host7+host8:ppn=2", "", (2, 2, 0, None)),
        ("4:ppn=2:big#shared", "", (4, 2, 0, None)),
        ("2", "<mem>1gb</mem><walltime>01:30:00</walltime>", (2, 1, 512, 5400.0)),
        ("1:ppn=2", "<pmem>100mb</pmem><walltime>90</walltime>", (1, 2, 200, 90.0)),
        ("1", "<mem>1025kb</mem>", (1, 1, 2, None)),
        ("1", "<mem>1mw</mem>", (1, 1, 8, None)),
        ("1", "<mem>1</mem>", (1, 1, 1, None)),
    ],
)
def test_what_jobs_ask_for(nodes, more, expected):
    read = job(nodes=nodes, more=more)
    assert (read.nodes, read.cpus, read.mem_mb, read.walltime_s) == expected


@pytest.mark.parametrize(
    ("letter", "state"),
    [("Q", "waiting"), ("H", "held"), ("W", "held"), ("R", "running"), ("E", "running")],
)
def test_states_of_jobs(letter, state):
    assert job(letter).state == state


def test_jobs_that_have_ended_are_not_there():
    assert jobs(JOB.format(id=1, state="C", nodes="1", more="")) == []


def test_no_jobs_is_no_text():
    assert read_jobs("") == []
    assert read_jobs("<Data></Data>") == []


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"state": "?"}, "job_state is '?'"),
        ({"nodes": "0"}, "nodes are '0'"),
        ({"nodes": "1:ppn=x"}, "invalid literal"),
        ({"more": "<mem>much</mem>"}, "memory is 'much'"),
    ],
)
def test_one_job_that_makes_no_sense_is_left_out(fields, why, caplog):
    odd = JOB.format(**{"id": 1, "state": "Q", "nodes": "1", "more": "", **fields})
    with caplog.at_level(logging.WARNING, logger="mesos_py"):
        read = jobs(odd, JOB.format(id=2, state="Q", nodes="1", more=""))
    assert [each.job_id for each in read] == ["2.server.example.org"]
    assert why in caplog.text


@pytest.mark.parametrize("text", ["qstat: cannot connect to server", "<Data>", "<data></data>"])
def test_what_is_no_answer(text):
    with pytest.raises(BatchError, match="qstat -x"):
        read_jobs(text)


def test_a_node():
    free = Node("host7-n3", "up", 4, 2048, 4, 2048, busy=False)
    assert node() == [("host7.example.org", free, [])]


def test_nodes_of_other_people_are_not_ours():
    assert node(properties="big") == []
    assert node(properties="") == []
    assert node(properties="mesospy") == []


@pytest.mark.parametrize(
    "there", ["0/12.server, 1/12.server, 3/13.server", "0-1/12.server, 3/13.server"]
)
def test_a_node_with_jobs(there):
    ((_, seen, jobs_there),) = node(state="job-exclusive", there=there)
    assert (seen.free_cpus, seen.busy, jobs_there) == (1, True, ["12.server", "13.server"])


def test_commas_between_processors():
    ((_, seen, jobs_there),) = node(there="0-1,3/12.server")
    assert (seen.free_cpus, jobs_there) == (1, ["12.server"])


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("free", "up"),
        ("job-exclusive", "up"),
        ("offline", "draining"),
        ("job-exclusive,offline", "draining"),
        ("down", "down"),
        ("down,offline", "down"),
        ("state-unknown", "down"),
        ("", "down"),
    ],
)
def test_states_of_nodes(state, expected):
    ((_, seen, _),) = node(state=state)
    assert seen.state == expected


def test_jobs_of_a_node_that_make_no_sense():
    with pytest.raises(BatchError, match="jobs are"):
        node(there="12.server")
