"""Usage by processes: those of this test, told apart by session and environment."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from agent.usage.processes import BASICS, sample, total

START = "import sys, os; print(flush=True); sys.stdin.read()"
CHILD = "import os\nif os.fork() == 0: os.setsid()\n" + START


@pytest.fixture
def start() -> Iterator[Callable[[str, str], int]]:
    """Start a container's first process; its pid, once it runs."""
    running: list[subprocess.Popen[bytes]] = []

    def begin(container_id: str, program: str) -> int:
        process = subprocess.Popen(
            [sys.executable, "-c", program],
            env={"MESOS_CONTAINER_ID": container_id},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stdout is not None
        lines = program.count("fork") + 1
        for _ in range(lines):
            process.stdout.readline()
        running.append(process)
        return process.pid

    yield begin
    for process in running:
        process.communicate()


def test_each_container_has_its_own_processes_and_no_other(start):
    leaders = {"c1": start("c1", START), "c2": start("c2", CHILD)}
    found = sample(leaders)
    assert {cid: numbers["pids"] for cid, numbers in found.items()} == {"c1": 1, "c2": 2}
    for numbers in found.values():
        assert numbers.keys() >= BASICS
        assert numbers["memory_rss_bytes"] == numbers["memory_bytes"] > 1_000_000
        assert numbers["cpu_user_seconds"] >= 0


def test_a_probe_counts_as_its_containers(start):
    leaders = {"c1": start("c1", START)}
    start("c1.health", START)
    start("c9", START)
    assert sample(leaders)["c1"]["pids"] == 2


def test_a_container_without_processes_has_no_numbers(start):
    pid = start("c1", START)
    assert sample({}) == {}
    assert "c9" not in sample({"c1": pid, "c9": 2**22 + 1})


def test_processes_that_have_just_ended_are_passed_over():
    assert total([2**22 + 1])["pids"] == 0
