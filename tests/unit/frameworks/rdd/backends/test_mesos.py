"""The parts of the backend that need no cluster."""

from __future__ import annotations

import pytest

from frameworks.rdd.backends.mesos import MesosBackend
from frameworks.rdd.core.fleet import Start
from frameworks.rdd.messages import Hello
from mesos_py import AgentID, Offer


def test_who_joins_and_is_not_wanted_is_not_waited_for_at_the_end():
    """`stop` waited ten seconds for it."""
    backend = MesosBackend("127.0.0.1:1", {"spark.mesos.role": "*"})
    hello = Hello("gone-1", "h", 1, "h:1", (3, 11, 0))
    assert backend.joined(hello) == ""
    backend._join(hello)
    assert backend._none_left.is_set()
    backend.stop()


@pytest.mark.parametrize("image", ["", "registry/rdd:1"])
def test_the_python_that_runs_executors(image):
    """An image that starts something by itself was given Python as an argument of that."""
    conf = {
        "spark.mesos.executor.docker.image": image,
        "spark.pyspark.python": "/opt/python",
        "spark.driver.host": "127.0.0.1",
    }
    offer = Offer(agent_id=AgentID(value="a"), hostname="h")
    task = MesosBackend("127.0.0.1:1", conf)._task(Start("rdd-1", offer))
    command, docker = task.command, task.container.docker
    # As agents put them together; without a container the value is the program, too.
    words = [command.value, *list(command.arguments)[0 if image else 1 :]]
    assert not command.shell
    assert docker.image == image
    if image:
        assert [(each.key, each.value) for each in docker.parameters] == [
            ("entrypoint", "/opt/python")
        ]
        words.insert(0, "/opt/python")
    assert words == ["/opt/python", "-m", "frameworks.rdd.executor"]
