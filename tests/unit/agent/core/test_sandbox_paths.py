"""Volumes that are directories in sandboxes: what can be had, and what is refused in words."""

from typing import Any

import pytest

from agent.core.sandbox_paths import Link, links_of
from mesos_py.errors import InvalidValue
from mesos_py.v1 import types_pb2 as pb

Source = pb.Volume.Source
SandboxPath = Source.SandboxPath


def container(**volume: Any) -> pb.ContainerInfo:
    """With one that is fine but for what is said."""
    given = {"container_path": "shown", "mode": pb.Volume.RW, **volume}
    return pb.ContainerInfo(type=pb.ContainerInfo.MESOS, volumes=[pb.Volume(**given)])


def sandbox_path(type: int = SandboxPath.PARENT, path: str = "data") -> Source:
    found = SandboxPath(path=path)
    found.type = type  # type: ignore[assignment]
    return Source(type=Source.SANDBOX_PATH, sandbox_path=found)


def test_without_volumes_there_are_no_links():
    assert links_of("container", pb.ContainerInfo()) == []


@pytest.mark.parametrize(
    ("volume", "field", "of_parent"),
    [
        ({"host_path": "data"}, "host_path", False),
        ({"source": sandbox_path(SandboxPath.SELF)}, "source.sandbox_path.path", False),
        ({"source": sandbox_path()}, "source.sandbox_path.path", True),
    ],
)
def test_what_a_task_of_a_group_can_have(volume, field, of_parent):
    where = "container.volumes[0]"
    (link,) = links_of("container", container(**volume), in_group=True)
    assert link == Link(where, f"{where}.{field}", "shown", "data", of_parent)


@pytest.mark.parametrize(
    ("volume", "text"),
    [
        ({}, "volumes[0]: 'neither': must have either"),
        ({"host_path": "data", "source": sandbox_path()}, "volumes[0]: 'both': must have either"),
        ({"image": pb.Image()}, "volumes[0].image: 'shown': this agent mounts nothing"),
        ({"host_path": "/data"}, "volumes[0].host_path: '/data': must be a path beneath"),
        ({"host_path": "../data"}, "volumes[0].host_path: '../data': must not contain '..'"),
        ({"host_path": ""}, "volumes[0].host_path: '': must be a path beneath"),
        ({"host_path": "data", "mode": pb.Volume.RO}, "volumes[0].mode: 'RO': must be RW"),
        ({"host_path": "data", "mode": 0}, "volumes[0].mode: 'UNSPECIFIED': must be RW"),
        (
            {"host_path": "data", "container_path": "/mnt"},
            "volumes[0].container_path: '/mnt': must be a path beneath",
        ),
        (
            {"host_path": "data", "container_path": "a/../../b"},
            "volumes[0].container_path: 'a/../../b': must not contain '..'",
        ),
        (
            {"host_path": "data", "container_path": "stdout"},
            "volumes[0].container_path: 'stdout': is where the agent has something",
        ),
        (
            {"host_path": "data", "container_path": "stderr.1"},
            "volumes[0].container_path: 'stderr.1': is where the agent has something",
        ),
        ({"source": sandbox_path(path="/x")}, "volumes[0].source.sandbox_path.path: '/x': must"),
        ({"source": sandbox_path(path="a/..")}, "volumes[0].source.sandbox_path.path: 'a/..'"),
        ({"source": sandbox_path(0)}, "sandbox_path.type: 'UNKNOWN': must be SELF or PARENT"),
        ({"source": Source()}, "volumes[0].source.type: 'UNKNOWN': must be SANDBOX_PATH"),
        (
            {"source": Source(type=Source.HOST_PATH)},
            "volumes[0].source.type: 'HOST_PATH': must be SANDBOX_PATH",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_field_and_value(volume, text):
    with pytest.raises(InvalidValue) as caught:
        links_of("container", container(**volume), in_group=True)
    assert text in caught.value.message


def test_who_is_alone_has_no_parent():
    with pytest.raises(InvalidValue, match="'PARENT': must be SELF: only tasks of a group"):
        links_of("container", container(source=sandbox_path()))


def test_the_volume_that_is_wrong_is_told():
    two = container(host_path="data")
    two.volumes.append(container(host_path="/x").volumes[0])
    with pytest.raises(InvalidValue, match=r"executor\.container\.volumes\[1\]\.host_path"):
        links_of("executor.container", two)
