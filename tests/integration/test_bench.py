"""The benches run; what they measure on a busy machine is nobody's business here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.cli import BENCHES
from tests.kit.local import LIMIT_S

APART = ("http", "isolation", "mapreduce", "mpi", "rdd", "torque", "webfarm")


def test_every_bench_runs_and_saves_its_result(tmp_path):
    run_and_check(tmp_path, [name for name in BENCHES if name not in APART])


@pytest.mark.parametrize("name", ["mapreduce", "rdd"])
def test_the_bench_of_a_framework_runs_too(tmp_path, name):
    run_and_check(tmp_path, [name])


def test_the_bench_of_the_http_api_runs_too(tmp_path):
    run_and_check(tmp_path, ["http"])


@pytest.mark.needs("apache2", "httperf", "runc", "root")
def test_the_bench_that_needs_other_programs_runs_too(tmp_path):
    run_and_check(tmp_path, ["isolation"])


@pytest.mark.needs("apache2", "haproxy")
def test_the_bench_of_the_web_farm_runs_too(tmp_path):
    run_and_check(tmp_path, ["webfarm"])


@pytest.mark.needs("slurmctld", "slurmd", "munged", "qsub", "unshare", "root")
def test_the_bench_of_the_batch_system_runs_too(tmp_path):
    run_and_check(tmp_path, ["torque"])


@pytest.mark.needs("hpcc", "mpirun.openmpi", "orted")
def test_the_bench_of_mpi_runs_too(tmp_path):
    run_and_check(tmp_path, ["mpi"])


def run_and_check(tmp_path: Path, names: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench", "--quick", "--results", str(tmp_path), *names],
        capture_output=True,
        text=True,
        timeout=10 * LIMIT_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for name in names:
        found = json.loads((tmp_path / f"{name}.json").read_text())
        assert found["name"] == name
        assert found["machine"]["quick"] is True
        assert any(row["floor"] for row in found["rows"])
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
