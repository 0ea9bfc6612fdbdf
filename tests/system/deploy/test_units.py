"""systemd takes the units as they are."""

import subprocess
import sys
from pathlib import Path

import pytest

UNITS = Path(__file__).parents[3] / "deploy" / "systemd"


@pytest.mark.needs("systemd-analyze")
@pytest.mark.parametrize("daemon", ["master", "agent"])
def test_systemd_finds_no_fault_with_a_unit(daemon, tmp_path):
    name = f"mesos-py-{daemon}.service"
    text = (UNITS / name).read_text()
    # The one thing that is not here: where it is installed.
    installed = "/opt/mesos-py/bin/mesos-py"
    assert installed in text
    (tmp_path / name).write_text(text.replace(installed, sys.executable))
    verify = ["systemd-analyze", "verify", "--man=no", str(tmp_path / name)]
    ended = subprocess.run(verify, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert (ended.returncode, ended.stderr) == (0, "")
