import os
import subprocess

import pytest

from frameworks.torque.views import View, read
from mesos_py import MesosPyError


def test_a_view_knows_whether_its_wrapper_runs(tmp_path):
    path = tmp_path / "status.json"
    View(running=2, never={"7": "too large"}).write(path)
    view = read(path)
    assert (view.running, view.never, view.pid) == (2, {"7": "too large"}, os.getpid())
    assert view.is_served


def test_another_process_with_its_number_is_not_the_wrapper(tmp_path):
    path = tmp_path / "status.json"
    View().write(path)
    view = read(path)
    view.since_s -= 100
    assert not view.is_served


def test_a_wrapper_that_has_ended_serves_nobody():
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    assert not View(pid=ended.pid, since_s=1.0).is_served
    assert not View().is_served


@pytest.mark.parametrize("text", ["", "[]", '{"nodes": [{}]}', '{"nodes": [], "other": 1}'])
def test_what_is_no_view_is_an_error(tmp_path, text):
    path = tmp_path / "status.json"
    path.write_text(text)
    with pytest.raises(MesosPyError, match="is damaged"):
        read(path)


def test_without_a_view_nothing_was_brought_up(tmp_path):
    with pytest.raises(MesosPyError, match="nothing was brought up"):
        read(tmp_path / "status.json")
