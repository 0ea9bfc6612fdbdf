"""Unmodified mrjob programs run through mrjob's hadoop runner on our `hadoop` command: without
a cluster, with the same output as mrjob's inline runner."""

import re
import signal
import subprocess

import pytest

from frameworks.mapreduce.hadoop import home as homes
from tests.kit.local import environment
from tests.kit.mrjob_runs import lines, run
from tests.kit.waiting import until

TEXT = """\
The quick brown fox jumps over the lazy dog.
It's the dog that sleeps; the fox doesn't.

Zwölf Boxkämpfer jagen Viktor quer über den Sylter Deich.
the end\twith a tab, "quotes" and \\ backslashes
"""
PEOPLE = """\
person,Ann,2
city,1,Oslo
person,Bob,1
city,2,Bergen
person,Cid,2
person,Dee,3
"""


@pytest.fixture
def home(tmp_path):
    where = tmp_path / "hadoop"
    homes.make(where, local=2)
    return where


@pytest.fixture
def here(tmp_path):
    where = tmp_path / "here"
    where.mkdir()
    (where / "a.txt").write_text(TEXT * 20)
    (where / "b.txt").write_text(TEXT)
    (where / "people.csv").write_text(PEOPLE)
    return where


@pytest.mark.parametrize(
    ("program", "args"),
    [
        ("word_count", ["--jobconf", "mapreduce.job.reduces=3", "a.txt", "b.txt"]),
        ("most_used_word", ["a.txt"]),
        ("join", ["--jobconf", "mapreduce.job.reduces=2", "people.csv"]),
        ("map_only", ["b.txt"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value[-2:]),
)
def test_the_output_is_that_of_the_inline_runner(home, here, program, args):
    found = run(program, "hadoop", *args, directory=here, home=home)
    assert lines(found) == lines(run(program, "inline", *args, directory=here))
    # mrjob has removed what it had put there, and so have we.
    assert [path for path in (home / "fs").rglob("*") if path.is_file()] == []


def test_counters_come_back(home, here):
    done = run("word_count", "hadoop", "b.txt", directory=here, home=home)
    assert lines(done)
    counters = done.stderr.partition("Counters: ")[2]
    assert "\t\twith words=4\n\t\twithout words=1\n" in counters
    assert "\t\tMap input records=5\n" in counters


def test_files_variables_and_setup_reach_the_tasks(home, here):
    (here / "wanted").write_text("The the\n")
    (here / "helper.sh").write_text("export GREETING=$BASE-from-setup\n")
    args = ["--wanted", "wanted", "--setup", ". helper.sh#", "--cmdenv", "BASE=hello", "b.txt"]
    done = run("lookup", "hadoop", *args, directory=here, home=home)
    assert lines(done) == [
        '"The"\t["hello-from-setup", ["quick brown fox jumps over the lazy dog."]]',
        '"the"\t["hello-from-setup", ["end\\twith a tab, \\"quotes\\" and \\\\ backslashes"]]',
    ]


def test_input_on_hdfs_and_output_kept_there(home, here):
    (home / "fs" / "books").mkdir()
    for name in ("a.txt", "b.txt"):
        (home / "fs" / "books" / name).write_text(TEXT)
    args = ["--output-dir", "hdfs:///counted", "--no-cat-output", "hdfs:///books/*.txt"]
    done = run("word_count", "hadoop", *args, directory=here, home=home)
    assert lines(done) == []
    kept = home / "fs" / "counted"
    assert (kept / "_SUCCESS").exists()
    assert '"fox"\t4\n' in (kept / "part-00000").read_text()


def test_the_user_is_shown_the_traceback_of_the_program(home, here):
    (here / "c.txt").write_text("good\nsome poison INFO here: too\n")
    done = run("failing", "hadoop", "c.txt", directory=here, home=home)
    assert done.returncode != 0
    assert done.stdout == ""
    cause = done.stderr.partition("Probable cause of failure:")[2]
    assert re.search(
        r"Traceback \(most recent call last\):\n(?:.*\n)+"
        r"ValueError: cannot digest 'some poison INFO here: too'",
        cause,
    )
    assert "while reading input from" in cause
    # As often as Hadoop: four times.
    assert done.stderr.count("Status : FAILED") == 4


def test_a_job_ends_with_the_terminal_that_mrjob_gave_it(home, here):
    mark = here / "mark"
    child = subprocess.Popen(
        [
            *(home / "bin" / "hadoop", "jar", "hadoop-streaming.jar"),
            *("-input", f"file://{here}/a.txt", "-output", "hdfs:///out", "-numReduceTasks", "0"),
            *("-mapper", f"sh -c 'touch {mark}; sleep 600'"),
        ],
        env={**environment(), "TMPDIR": str(here)},
        stderr=subprocess.PIPE,
    )
    until(mark.exists)
    assert child.stderr is not None
    child.stderr.close()
    child.send_signal(signal.SIGHUP)
    assert child.wait(timeout=60) == 1
    assert not (home / "fs" / "out").exists()


def test_an_output_that_is_there_is_refused(home, here):
    (home / "fs" / "counted").mkdir()
    args = ["--output-dir", "hdfs:///counted", "b.txt"]
    done = run("word_count", "hadoop", *args, directory=here, home=home)
    assert done.returncode != 0
    assert "exists already" in done.stderr
    assert [path.name for path in (home / "fs" / "counted").iterdir()] == []
