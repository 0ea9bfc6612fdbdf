"""The isolator's contract and limits on cgroup v2: Debian's cloud kernel under QEMU."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit import vm

WITHIN_S = 600.0
TESTS = "python3 -m pytest -q -p no:cacheprovider -o addopts=--import-mode=importlib --durations=5"


@pytest.mark.needs("qemu-system-x86_64", "debootstrap", "mke2fs", "root")
def test_the_contract_and_the_limits_hold_on_cgroup_v2(tmp_path: Path):
    vm.build()
    status, output = vm.run(f"{TESTS} tests/system/test_cgroups.py", tmp_path, WITHIN_S)
    assert status == 0, output[-8000:]
