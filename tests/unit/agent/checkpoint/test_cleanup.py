"""What a cleanup reads of the run that it forgets, and what it keeps."""

import pytest

from agent.checkpoint import cleanup, store
from agent.checkpoint.store import Checkpoint
from agent.core.journal import RESERVED_KEY, VOLUMES_KEY, Change, Kind
from agent.core.recovery import Record
from mesos_py.errors import InvalidValue
from mesos_py.v1 import checkpoint_pb2
from mesos_py.v1 import types_pb2 as pb
from tests.kit.reserving import amount, by

OWN = checkpoint_pb2.Agent(info=pb.AgentInfo(id=pb.AgentID(value="A1"))).SerializeToString()
RESERVED = checkpoint_pb2.Reserved(resources=amount(by("ads"), cpus=1).to_proto())
AGENT = Change(Kind.AGENT, ("agent",), OWN)
KEPT = Change(Kind.RESERVED, RESERVED_KEY, RESERVED.SerializeToString())


def write(work_dir, *changes):
    checkpoint = Checkpoint(work_dir)
    checkpoint.write(changes)
    checkpoint.close()


def read(work_dir):
    checkpoint = Checkpoint(work_dir)
    try:
        return checkpoint.read()
    finally:
        checkpoint.close()


def test_a_cleanup_knows_whose_run_it_was_although_something_is_reserved(tmp_path):
    """It is told no resources, of which anything could be reserved."""
    write(tmp_path, AGENT, KEPT)
    assert cleanup._read(tmp_path) == ("A1", {})


def test_a_cleanup_forgets_the_run_and_keeps_what_is_reserved(tmp_path):
    volumes = Change(Kind.VOLUMES, VOLUMES_KEY, b"?")
    write(tmp_path, AGENT, KEPT, volumes, Change(Kind.TASK, ("F", "t", "c"), b"?"))
    for _ in range(2):
        cleanup._forget(tmp_path, keep_reserved=True)
        assert read(tmp_path) == [Record(*KEPT), Record(*volumes)]


def test_what_is_reserved_stays_also_when_it_cannot_be_read(tmp_path):
    """The next start says so, instead of giving to all what is somebody's."""
    write(tmp_path, AGENT, KEPT)
    checkpoint = Checkpoint(tmp_path)
    checkpoint._db.execute("UPDATE records SET crc = crc + 1 WHERE kind = 'reserved'")
    checkpoint.close()
    cleanup._forget(tmp_path, keep_reserved=True)
    assert [(each.kind, each.data) for each in read(tmp_path)] == [(Kind.RESERVED, None)]


@pytest.mark.parametrize("kept", [True, False], ids=["reserved", "not"])
def test_who_wants_it_forgets_what_is_reserved_too(tmp_path, kept):
    write(tmp_path, AGENT, *([KEPT] if kept else []))
    cleanup._forget(tmp_path, keep_reserved=False)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_where_nothing_was_reserved(tmp_path):
    write(tmp_path, AGENT)
    cleanup._forget(tmp_path, keep_reserved=True)
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_of_which_nothing_is_readable_stays_and_the_way_out_is_named(tmp_path):
    """Who knows what was reserved there?"""
    (tmp_path / store.NAME).write_bytes(b"rubbish " * 1000)
    with pytest.raises(InvalidValue, match=r"cannot be kept.*not a database.*--recover forget"):
        cleanup._forget(tmp_path, keep_reserved=True)
    assert (tmp_path / store.NAME).read_bytes() == b"rubbish " * 1000
    cleanup._forget(tmp_path, keep_reserved=False)
    assert list(tmp_path.iterdir()) == []
