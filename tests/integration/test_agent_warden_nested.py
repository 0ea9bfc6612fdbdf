"""Containers within others, as the warden starts and ends them."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.waiting import gone, until
from tests.kit.warden import Warden, make, sh


@pytest.fixture
def warden(tmp_path: Path) -> Iterator[Warden]:
    made = Warden(tmp_path)
    yield made
    made.close()


def within(name: str, container: str, script: str, **request: Any) -> list[Any]:
    """To be started within `container`."""
    sandbox = ["agents", "A", "runs", container, "containers", name.partition("..")[2]]
    return ["within", make(name, *sh(script), **{"sandbox": sandbox, **request}), [container, None]]


def test_a_container_within_another_has_a_directory_of_its_own_and_ends_alone(warden):
    warden.start("c1", *sh("sleep 600"))
    warden.hear("started", "c1")
    warden.send(within("c1..a", "c1", "echo $MESOS_CONTAINER_ID; sleep 600 & exit 3"))
    assert warden.hear("probing", "c1..a") > 0
    assert warden.hear("probed", "c1..a") == [3 << 8, "", ""]
    directory = warden.sandbox("c1") / "containers"
    assert [each.name for each in directory.iterdir()] == ["a"]
    assert (directory / "a" / "stdout").read_text() == "c1..a\n"
    # TERM has no KILL after it: what the first process leaves behind ends with it.
    warden.send(within("c1..b", "c1", "(trap '' TERM; echo; exec sleep 600) & echo; wait"))
    warden.hear("probing", "c1..b")
    until(lambda: (directory / "b" / "stdout").read_text() == "\n\n")
    warden.signal("c1..b", signal.SIGTERM)
    assert warden.hear("probed", "c1..b")[0] == signal.SIGTERM
    assert not warden.heard("ended", "c1")


def test_the_end_of_a_container_is_told_after_that_of_those_within_it(warden):
    warden.start("c1", *sh("exec sleep 600"))
    warden.hear("started", "c1")
    pids = []
    for name in ("c1..a", "c1..b"):
        warden.send(within(name, "c1", "exec sleep 600"))
        pids.append(warden.hear("probing", name))
    warden.signal("c1", signal.SIGKILL)
    assert warden.hear("ended", "c1") == signal.SIGKILL
    assert all(gone(pid) for pid in pids)
    for name in ("c1..a", "c1..b"):
        assert warden.heard("probed", name)
    warden.send(within("c1..c", "c1", "true"))
    assert warden.hear("unprobed", "c1..c").startswith("its container has ended")


def test_a_container_within_another_that_cannot_be_started_is_told_of(warden, tmp_path):
    warden.start("c1", *sh("exec sleep 600"))
    warden.hear("started", "c1")
    warden.send(within("c1..a", "c1", "", exe="/no/such"))
    status, _, why = warden.hear("probed", "c1..a")
    assert (status, why) == (None, "cannot run '/no/such': No such file or directory")
    # Somebody else's place, by a link of the task's.
    (warden.sandbox("c1") / "containers" / "b").symlink_to(tmp_path)
    warden.send(within("c1..b", "c1", "true"))
    assert warden.hear("probed", "c1..b")[0] is None
    files = [str(tmp_path / "not there")] * 3
    request = make("c1..s", *sh("true"), sandbox=["agents", "A", "runs", "c1"])
    warden.send(["within", request, ["c1", files]])
    assert "not there" in warden.hear("unprobed", "c1..s")
    warden.signal("c1", signal.SIGKILL)
    assert warden.hear("ended", "c1") == signal.SIGKILL
