"""A warden of an earlier agent: which version of the protocol it speaks."""

from __future__ import annotations

import socket

import pytest

from agent.containers import wire
from agent.containers.warden_client import Attached


@pytest.mark.parametrize(("version", "can"), [(1, False), (wire.VERSION, True)])
def test_whether_it_has_containers_within_others_is_told_by_the_version_it_says(version, can):
    said = [["have", "c1", 7], ["ended", "c2", 0], ["ready", version], ["started", "c3", 8]]
    with socket.socket(socket.AF_UNIX) as link:
        found = Attached(link, 1, said, wire.Unpacker()).version
    assert found == version
    assert (found >= wire.WITHIN) is can
