"""What a cleanup reads of the run that it forgets."""

from agent.checkpoint import cleanup
from agent.checkpoint.store import Checkpoint
from agent.core.journal import RESERVED_KEY, Change, Kind
from mesos_py.v1 import checkpoint_pb2
from mesos_py.v1 import types_pb2 as pb
from tests.kit.reserving import amount, by


def test_a_cleanup_knows_whose_run_it_was_although_something_is_reserved(tmp_path):
    """It is told no resources, of which anything could be reserved."""
    own = checkpoint_pb2.Agent(info=pb.AgentInfo(id=pb.AgentID(value="A1")))
    reserved = checkpoint_pb2.Reserved(resources=amount(by("ads"), cpus=1).to_proto())
    checkpoint = Checkpoint(tmp_path)
    checkpoint.write(
        [
            Change(Kind.AGENT, ("agent",), own.SerializeToString()),
            Change(Kind.RESERVED, RESERVED_KEY, reserved.SerializeToString()),
        ]
    )
    checkpoint.close()
    assert cleanup._read(tmp_path) == ("A1", {})
