"""Programs that cannot be started, and what is said of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from frameworks.mapreduce.job import Program
from frameworks.mapreduce.worker.failures import AttemptFailed
from frameworks.mapreduce.worker.functions import Form
from frameworks.mapreduce.worker.programs import Launcher


def failure(cwd: Path, command: str) -> AttemptFailed:
    launcher = Launcher(cwd, {"PATH": os.environ["PATH"]})
    with pytest.raises(AttemptFailed) as caught:
        launcher.start(Program(command=command), "mapper", Form(coded=False))
    return caught.value


@pytest.mark.parametrize("command", ["./nothere", "bin/nothere"])
def test_what_is_missing_has_the_same_name_for_all_attempts(tmp_path, command):
    failed = failure(tmp_path, command)
    assert failed.missing == command.removeprefix("./")
    assert str(tmp_path) not in failed.message


def test_so_has_a_missing_interpreter(tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    failed = failure(tmp_path, "./script")
    assert failed.missing == "the interpreter of script"
