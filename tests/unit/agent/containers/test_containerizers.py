"""Who may be named to run containers."""

import dataclasses

import pytest

from agent.containers import containerizers
from mesos_py.errors import InvalidValue
from tests.kit.docker_tasks import saved_container


@pytest.mark.parametrize("names", [("posix",), ("posix", "docker"), ("docker", "posix")])
def test_known_ones_are_taken(names):
    containerizers.check(names)


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (("posix", "rkt"), "'rkt': is not known; known are: posix, docker"),
        (("posix", "posix"), "names one twice"),
        (("docker",), "must have posix"),
        ((), "must have posix"),
    ],
)
def test_others_are_refused(names, reason):
    with pytest.raises(InvalidValue, match=reason):
        containerizers.check(names)


def test_docker_needs_its_sdk(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(InvalidValue, match=r"pip install 'mesos-py\[docker\]'"):
        containerizers.check(("posix", "docker"))


def test_saved_containers_go_to_whom_their_type_says():
    docker, plain = saved_container("d", 1), saved_container("p", 2)
    plain = dataclasses.replace(plain, info=None)
    both = ("posix", "docker")
    assert containerizers.split([docker, plain], both) == ([docker], [plain])
    assert containerizers.split([plain], ("posix",)) == ([], [plain])
    with pytest.raises(InvalidValue, match="must have docker"):
        containerizers.split([docker, plain], ("posix",))
