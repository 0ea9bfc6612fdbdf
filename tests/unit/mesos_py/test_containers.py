"""Containers from few words."""

import pytest

from mesos_py.containers import docker_container, volume
from mesos_py.errors import InvalidValue
from mesos_py.tasks import command_task, custom_executor
from mesos_py.v1.types_pb2 import ContainerInfo, Volume

Docker = ContainerInfo.DockerInfo


def test_a_container_has_all_that_was_said():
    made = docker_container(
        "redis:7",
        network="bridge",
        volumes=["/data:/d:ro", "cache:/c"],
        ports={6379: 31000},
        parameters=[("dns", "1.1.1.1"), ("dns", "8.8.8.8")],
        hostname="h",
        privileged=True,
        force_pull=True,
    )
    assert (made.type, made.docker.image) == (ContainerInfo.DOCKER, "redis:7")
    assert made.docker.network == Docker.BRIDGE
    assert [(v.host_path, v.container_path, v.mode) for v in made.volumes] == [
        ("/data", "/d", Volume.RO),
        ("cache", "/c", Volume.RW),
    ]
    (port,) = made.docker.port_mappings
    assert (port.container_port, port.host_port) == (6379, 31000)
    assert [p.value for p in made.docker.parameters] == ["1.1.1.1", "8.8.8.8"]
    assert (made.hostname, made.docker.privileged, made.docker.force_pull_image) == (
        "h",
        True,
        True,
    )


def test_a_container_of_which_nothing_is_said_has_mesos_defaults():
    made = docker_container("i")
    assert made.docker.network == Docker.HOST
    for name in ("privileged", "force_pull_image"):
        assert not made.docker.HasField(name)
    assert not made.HasField("hostname")


def test_any_other_word_is_a_network_of_dockers():
    made = docker_container("i", network="blue")
    assert made.docker.network == Docker.USER
    assert [each.name for each in made.network_infos] == ["blue"]


@pytest.mark.parametrize("text", ["", "/a", ":/b", "/a:", "/a:/b:z"])
def test_a_malformed_volume_is_an_error(text):
    with pytest.raises(InvalidValue, match="volumes"):
        volume(text)


@pytest.mark.parametrize("given", [{"image": ""}, {"image": "i", "network": ""}])
def test_an_empty_name_is_an_error(given):
    with pytest.raises(InvalidValue):
        docker_container(**given)


def test_words_of_a_task_in_a_container_are_the_images_arguments():
    container = docker_container("i")
    task = command_task("n", "t", "a1", ["echo", "echo"], cpus=1, container=container)
    assert task.container == container
    assert (task.command.value, list(task.command.arguments)) == ("echo", ["echo"])
    shell = command_task("n", "t", "a1", "echo $A", cpus=1, container=container)
    assert (shell.command.shell, shell.command.value) == (True, "echo $A")
    executor = custom_executor("e", ["python3", "x.py"], container=container)
    assert executor.container == container
    assert list(executor.command.arguments) == ["x.py"]
