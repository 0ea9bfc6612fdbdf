from __future__ import annotations

from frameworks.mapreduce import names
from frameworks.mapreduce.job import JobSpec, Piece, Program, Split
from frameworks.mapreduce.work import Work
from frameworks.mapreduce.worker import environment

SPEC = JobSpec(
    job_id="job_1_0001",
    name="words",
    user="ann",
    inputs=("/a", "/b"),
    output="/out",
    mapper=Program(command="cat"),
    reduces=3,
    conf={"mapreduce.task.io.sort.mb": "5", "my.own-name": "x"},
)
MAP = "attempt_1_0001_m_000007_2"
REDUCE = "attempt_1_0001_r_000002_0"


def properties(attempt, **work):
    name = names.parse_attempt(attempt)
    assert name is not None
    return environment.task_properties(
        SPEC, Work(attempt=attempt, job_url="", **work), name, local_dir="/jobs"
    )


def of(given=None, found=None, env=None):
    return environment.of_program(given or {}, found or {}, env or {}, cwd="/cwd", tmp="/tmp/x")


def test_a_map_finds_its_split():
    split = Split((Piece("/a", 100, 50), Piece("/b", 0, 5)), 55)
    found = properties(MAP, split=split, maps=9)
    assert found["mapreduce.map.input.file"] == "/a"
    assert found["mapreduce.map.input.start"] == "100"
    assert found["mapreduce.map.input.length"] == "50"
    assert found["mapreduce.task.partition"] == "7"
    assert found["mapreduce.task.id"] == "task_1_0001_m_000007"
    assert found["mapreduce.job.maps"] == "9"


def test_the_length_of_a_packed_file_is_that_of_the_split():
    found = properties(MAP, split=Split((Piece("/a.gz", 0, -1),), 1234))
    assert found["mapreduce.map.input.length"] == "1234"


def test_a_reduce_has_no_input_file_and_its_output_directory():
    found = properties(REDUCE, out="/out/_temporary/x/part-00002")
    assert "mapreduce.map.input.file" not in found
    assert found["mapreduce.task.ismap"] == "false"
    assert found["mapreduce.task.output.dir"] == "/out/_temporary/x"
    assert found["mapreduce.job.reduces"] == "3"


def test_properties_are_there_by_old_and_new_names():
    env = of(found=properties(MAP, split=Split((), 0)))
    assert env["mapreduce_task_io_sort_mb"] == env["io_sort_mb"] == "5"
    assert env["mapreduce_task_attempt_id"] == env["mapred_task_id"] == MAP
    assert env["mapreduce_job_local_dir"] == env["job_local_dir"] == "/jobs"
    assert env["mapred_input_dir"] == "/a,/b"
    assert env["my_own_name"] == "x"


def test_what_the_job_sets_wins_over_properties_and_these_over_the_worker():
    env = of({"A": "worker", "b_c": "worker", "D": "worker"}, {"b.c": "conf"}, {"A": "job"})
    assert (env["A"], env["b_c"], env["D"]) == ("job", "conf", "worker")


def test_the_directory_of_the_attempt_is_first_in_path():
    assert of({"PATH": "/bin"})["PATH"] == "/cwd:/bin"
    assert of({"PATH": "/bin"}, env={"PATH": "/own"})["PATH"] == "/cwd:/own"
    assert of()["PATH"].startswith("/cwd:/usr/local/bin")
    assert of()["TMPDIR"] == "/tmp/x"


def test_what_the_kernel_does_not_take_is_left_out():
    env = of(found={"long": "x" * environment.MAX_VALUE, "nul": "a\0b", "ok": "1"})
    assert "long" not in env
    assert "nul" not in env
    assert env["ok"] == "1"
    many = {f"n{number}": "x" * 60_000 for number in range(100)}
    assert sum(map(len, of(found=many).values())) < environment.MAX_ALL + 1000
