"""The Torque backend against small scripts that answer as Torque's manuals say: Torque itself was
never there."""

import os
from pathlib import Path

import pytest

from frameworks.torque.backend import BatchError
from frameworks.torque.core.records import Size
from frameworks.torque.pbs.server import Torque

# Each notes how it was called, and says what is in a file, or fails with what is in another one.
COMMAND = """#!/bin/sh
here=$(dirname "$0")
echo "$(basename "$0") $*" >> "$here/calls"
if [ -e "$here/$(basename "$0").fails" ]; then cat "$here/$(basename "$0").fails" >&2; exit 1; fi
if [ -e "$here/$(basename "$0").says" ]; then cat "$here/$(basename "$0").says"; fi
"""
NODE = """<Data><Node><name>host7.example.org</name><state>{state}</state><np>4</np>
<properties>mesospy,host7-n3</properties><ntype>cluster</ntype><jobs>{jobs}</jobs></Node></Data>"""
NAMES = ("qmgr", "qstat", "pbsnodes", "qrerun", "qdel", "qalter")


class Fake:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        for name in NAMES:
            (directory / name).write_text(COMMAND)
            (directory / name).chmod(0o755)
        self.server = Torque(0, f"{directory}{os.pathsep}/usr/bin{os.pathsep}/bin")

    def says(self, name: str, text: str) -> None:
        (self.directory / f"{name}.says").write_text(text)

    def fails(self, name: str, text: str) -> None:
        (self.directory / f"{name}.fails").write_text(text)

    def calls(self) -> list[str]:
        """Those that change something."""
        path = self.directory / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line for line in lines if not line.endswith(" -x")]


@pytest.fixture
def torque(tmp_path) -> Fake:
    return Fake(tmp_path)


def test_without_jobs_and_nodes(torque):
    torque.fails("pbsnodes", "pbsnodes: cannot locate specified nodes: No nodes found")
    assert torque.server.jobs() == []
    assert torque.server.nodes() == []


def test_a_node_is_made_once(torque):
    torque.fails("pbsnodes", "pbsnodes: No nodes found")
    torque.server.register("host7-n3", Size(4, 100), "host7.example.org", None)
    made = "qmgr -c create node host7.example.org np=4,properties='mesospy,host7-n3'"
    assert torque.calls() == [made]
    (torque.directory / "pbsnodes.fails").unlink()
    torque.says("pbsnodes", NODE.format(state="free", jobs=""))
    torque.server.register("host7-n3", Size(4, 100), "host7.example.org", None)
    assert torque.calls() == [made]


def test_it_is_drained_and_taken_back_by_its_host(torque):
    torque.says("pbsnodes", NODE.format(state="free", jobs=""))
    torque.server.drain("host7-n3", "idle")
    torque.server.resume("host7-n3")
    torque.server.drain("of-nobody", "idle")
    assert torque.calls() == ["pbsnodes -o host7.example.org", "pbsnodes -c host7.example.org"]


def test_jobs_of_a_node_that_is_gone_begin_anew(torque):
    torque.says("pbsnodes", NODE.format(state="down", jobs="0/12.server"))
    torque.server.lose("host7-n3", "gone")
    assert torque.calls() == ["qrerun -f 12.server", "qmgr -c delete node host7.example.org"]


def test_or_are_closed_if_they_must_not(torque):
    torque.says("pbsnodes", NODE.format(state="down", jobs="0/12.server"))
    torque.fails("qrerun", "qrerun: Job is not rerunnable MSG=... 12.server")
    torque.server.lose("host7-n3", "gone")
    assert torque.calls()[1:] == ["qdel -p 12.server", "qmgr -c delete node host7.example.org"]


def test_what_is_not_found_is_no_error(torque):
    torque.says("pbsnodes", NODE.format(state="down", jobs="0/12.server"))
    torque.fails("qrerun", "qrerun: Unknown Job Id 12.server")
    torque.fails("qmgr", "qmgr obj=host7.example.org svr=default: Unknown node")
    torque.fails("qalter", "qalter: Unknown Job Id Error 12.server")
    torque.server.lose("host7-n3", "gone")
    torque.server.tell("12.server", "asks for too much")


def test_another_failure_is_one(torque):
    torque.fails("pbsnodes", "pbsnodes: cannot connect to server")
    torque.fails("qmgr", "qmgr: cannot connect to server")
    with pytest.raises(BatchError, match="cannot connect"):
        torque.server.nodes()
    with pytest.raises(BatchError, match="must run before this"):
        torque.server.start()
    assert not torque.server.alive()
