"""What the echo server repeats is what went over the streams."""

from bench.master_cpu.recording import AGENT, FRAMEWORK, Script, load, save
from mesos_py.v1 import agent_pb2, scheduler_pb2


def test_scripts_come_back_with_their_messages_and_are_counted(tmp_path):
    pong = agent_pb2.Calls(calls=[agent_pb2.Call(type=agent_pb2.Call.PONG)] * 3)
    ping = agent_pb2.Events(events=[agent_pb2.Event(type=agent_pb2.Event.PING)], epoch=1)
    script = Script(AGENT, [(False, ping), (True, pong), (False, ping)])
    silent = Script(FRAMEWORK, [(False, scheduler_pb2.Events())])
    traffic = save([script, silent], tmp_path / "recording")
    assert (traffic[AGENT].messages_in, traffic[AGENT].entries_in) == (1, 3)
    assert (traffic[AGENT].messages_out, traffic[AGENT].entries_out) == (2, 2)
    assert traffic[AGENT].bytes_in == pong.ByteSize()
    # One that sends nothing would wait for ever; the others begin with what they send.
    (repeated,) = load(tmp_path / "recording")
    assert repeated.kind == AGENT
    assert repeated.entries == [(True, pong), (False, ping), (False, ping)]
