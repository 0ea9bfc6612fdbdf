"""Names of jobs, tasks and attempts."""

import pytest

from frameworks.mapreduce import names
from frameworks.mapreduce.names import AttemptName
from mesos_py.errors import InvalidValue
from mesos_py.ids import check_id

JOB = "job_20261128141500_0001"


def test_names_have_hadoops_form():
    assert names.job_id("20261128141500", 1) == JOB
    assert names.task_id(JOB, "map", 7) == "task_20261128141500_0001_m_000007"
    attempt = AttemptName(JOB, "reduce", 7, 2)
    assert str(attempt) == "attempt_20261128141500_0001_r_000007_2"
    assert attempt.task_id == "task_20261128141500_0001_r_000007"


@pytest.mark.parametrize("number", [1, 9999, 10_000, 123_456])
def test_what_is_written_is_read(number):
    job = names.job_id("1", number)
    attempt = AttemptName(job, "map", number, 12)
    assert names.checked_job_id("job", job) == job
    assert names.parse_attempt(str(attempt)) == attempt
    # It is the id of a task in the cluster.
    assert check_id("task_id", str(attempt)) == str(attempt)


@pytest.mark.parametrize(
    "text",
    [
        "",
        JOB,
        "attempt_1_0001_m_000007",
        "attempt_1_0001_x_000007_0",
        "attempt_1_0001_m_000007_0/..",
        "attempt_1_0001_m_000007_0\n",
        " attempt_1_0001_m_000007_0",
        f"attempt_{'9' * 30}_0001_m_000007_0",
    ],
)
def test_what_is_no_attempt_is_none(text):
    assert names.parse_attempt(text) is None


@pytest.mark.parametrize("text", ["", "job_1_1", "job_1_0001/..", "../job_1_0001", "job_1_0001\n"])
def test_what_is_no_job_is_refused_by_field(text):
    with pytest.raises(InvalidValue) as caught:
        names.checked_job_id("JOB", text)
    assert caught.value.field == "JOB"
