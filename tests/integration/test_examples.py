"""The examples of the SDK, run as their own first lines say, on a real cluster."""

import json
import signal
import subprocess
import sys

import pytest

from tests.kit.local import LIMIT_S, Local, environment

ROOT = __file__.rpartition("/tests/")[0]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with Local(tmp_path_factory.mktemp("c"), "--agents", "2") as local:
        yield local


def example(cluster, name, *args):
    return subprocess.run(
        [sys.executable, "-m", f"examples.{name}", *map(str, args)],
        cwd=ROOT,
        env=environment(cluster.master),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )


def frameworks(cluster):
    return cluster.json("frameworks")


def test_hello_runs_five_tasks_and_leaves_nothing(cluster):
    ended = example(cluster, "hello")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("FINISHED") == 5
    assert frameworks(cluster) == []


def test_hello_without_a_cluster_ends_with_what_it_tried():
    ended = subprocess.run(
        [sys.executable, "-m", "examples.hello"],
        cwd=ROOT,
        env=environment("127.0.0.1:1"),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert ended.returncode == 1
    assert "MasterUnreachable" in ended.stderr
    assert "127.0.0.1:1" in ended.stderr


def test_batch_retries_limits_and_sums_up(cluster, tmp_path):
    commands = tmp_path / "commands.txt"
    commands.write_text(
        "# a comment\n\necho one\nexit 3\ntest $BATCH_ATTEMPT = 2\nsleep 600\necho last\n"
    )
    ended = example(cluster, "batch", commands, "--retries", 1, "--limit", 2.5)
    assert ended.returncode == 1, ended.stderr
    assert "3 of 5 commands succeeded" in ended.stdout
    assert "TIMED OUT" in ended.stdout
    assert frameworks(cluster) == []


def test_batch_of_commands_that_all_succeed_says_so_by_its_exit_code(cluster, tmp_path):
    commands = tmp_path / "commands.txt"
    commands.write_text("true\n" * 20)
    ended = example(cluster, "batch", commands)
    assert ended.returncode == 0, ended.stderr
    assert "20 of 20" in ended.stdout


def test_batch_is_told_why_nothing_fits(cluster, tmp_path):
    commands = tmp_path / "commands.txt"
    commands.write_text("true\n")
    batch = subprocess.Popen(
        [sys.executable, "-m", "examples.batch", str(commands), "--cpus", "10000"],
        cwd=ROOT,
        env=environment(cluster.master),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        while not any(row["connected"] for row in frameworks(cluster)):
            assert batch.poll() is None
        told = ""
        while "10000" not in told:
            assert batch.poll() is None
            told = cluster.cli("explain", "--json").out.decode()
        assert "cpus" in json.dumps(told)
    finally:
        batch.send_signal(signal.SIGINT)
        batch.communicate(timeout=LIMIT_S)
    assert frameworks(cluster) == []


def test_custom_executor_shares_a_process_among_tasks_and_exchanges_messages(cluster):
    ended = example(cluster, "custom_executor")
    assert ended.returncode == 0, ended.stderr
    assert "9,592 primes below 100,000" in ended.stdout
    done = [int(line.split()[-2]) for line in ended.stdout.splitlines() if "has done" in line]
    assert sum(done) == 6
    assert frameworks(cluster) == []


def test_mapreduce_programs_write_what_pipelines_write(cluster, tmp_path):
    (tmp_path / "alpha.py").write_text("import beta\nimport sys\n\nprint(beta.x)\n")
    (tmp_path / "beta.py").write_text("from gamma import y\nx = y\n")
    (tmp_path / "gamma.py").write_text("import beta\ny = 1\n")
    ended = example(cluster, "mapreduce_programs", tmp_path)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    rows = [line.split("  ") for line in ended.stdout.splitlines()]
    assert [row[0] for row in rows] == ["word count", "inverted index", "join", "sort"]
    # Two import beta, one imports gamma.
    assert " 3 lines" in ended.stdout
