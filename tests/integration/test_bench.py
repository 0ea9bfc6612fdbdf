"""The benches run; what they measure on a busy machine is nobody's business here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.cli import BENCHES
from tests.kit.local import LIMIT_S


def test_every_bench_runs_and_saves_its_result(tmp_path):
    run_and_check(tmp_path, [name for name in BENCHES if name != "isolation"])


@pytest.mark.needs("apache2", "httperf", "runc", "root")
def test_the_bench_that_needs_other_programs_runs_too(tmp_path):
    run_and_check(tmp_path, ["isolation"])


def run_and_check(tmp_path: Path, names: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench", "--quick", "--results", str(tmp_path), *names],
        capture_output=True,
        text=True,
        timeout=3 * LIMIT_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for name in names:
        found = json.loads((tmp_path / f"{name}.json").read_text())
        assert found["name"] == name
        assert found["machine"]["quick"] is True
        assert any(row["floor"] for row in found["rows"])
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
