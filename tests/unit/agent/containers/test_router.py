"""Containers go to whom their type says, and orders to whoever has them."""

from agent.containers.router import Router
from agent.core.effects import Signal
from mesos_py.resources import Resources
from tests.kit.docker_tasks import container_spec


class Noted:
    """A launcher that only remembers."""

    def __init__(self) -> None:
        self.orders: list[tuple[str, str]] = []
        self.flushes = 0

    def __contains__(self, container_id: str) -> bool:
        return ("launch", container_id) in self.orders

    def launch(self, spec) -> None:
        self.orders.append(("launch", spec.container_id))

    def kill(self, container_id, number) -> None:
        self.orders.append((number.name, container_id))

    def update(self, container_id, resources) -> None:
        self.orders.append((str(resources), container_id))

    def forget(self, container_id) -> None:
        self.orders.append(("forget", container_id))

    def flush(self) -> None:
        self.flushes += 1


def test_each_container_has_its_launcher():
    posix, docker = Noted(), Noted()
    router = Router(posix, docker)
    plain = container_spec(container_id="p")
    plain.container = None
    router.launch(container_spec(container_id="d"))
    router.launch(plain)
    for container_id in ("d", "p", "unknown"):
        router.kill(container_id, Signal.KILL)
        router.update(container_id, Resources.of(cpus=1))
        router.forget(container_id)
    router.flush()
    assert docker.orders == [("launch", "d"), ("KILL", "d"), ("cpus:1", "d"), ("forget", "d")]
    assert posix.orders == [
        *(("launch", "p"), ("KILL", "p"), ("cpus:1", "p"), ("forget", "p")),
        *(("KILL", "unknown"), ("cpus:1", "unknown"), ("forget", "unknown")),
    ]
    assert (posix.flushes, docker.flushes) == (1, 1)
