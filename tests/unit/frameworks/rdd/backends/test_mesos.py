"""The parts of the backend that need no cluster."""

from __future__ import annotations

from frameworks.rdd.backends.mesos import MesosBackend
from frameworks.rdd.messages import Hello


def test_who_joins_and_is_not_wanted_is_not_waited_for_at_the_end():
    """`stop` waited ten seconds for it."""
    backend = MesosBackend("127.0.0.1:1", {"spark.mesos.role": "*"})
    hello = Hello("gone-1", "h", 1, "h:1", (3, 11, 0))
    assert backend.joined(hello) == ""
    backend._join(hello)
    assert backend._none_left.is_set()
    backend.stop()
