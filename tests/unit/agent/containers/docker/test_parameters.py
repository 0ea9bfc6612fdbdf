"""Options of `docker run` that tasks may give, and those that they may not."""

import pytest

from agent.containers.docker.parameters import apply
from agent.containers.docker.request import CreateRequest, MountPoint, Ulimit
from mesos_py.errors import InvalidValue
from mesos_py.v1 import types_pb2 as pb


def applied(*pairs: tuple[str, str], privileged: bool = False) -> CreateRequest:
    request = CreateRequest("n", "i", config={"environment": {}, "labels": {}})
    parameters = [pb.Parameter(key=key, value=value) for key, value in pairs]
    apply(request, parameters, privileged=privileged)
    return request


def refusal(key: str, value: str = "x", **options) -> str:
    with pytest.raises(InvalidValue) as caught:
        applied((key, value), **options)
    assert caught.value.field == f"container.docker.parameters.{key}"
    assert caught.value.value == value
    return str(caught.value.reason)


@pytest.mark.parametrize(
    ("key", "value", "argument", "expected"),
    [
        ("dns", "1.1.1.1", "dns", ["1.1.1.1"]),
        ("--dns", "1.1.1.1", "dns", ["1.1.1.1"]),
        ("add-host", "h:1.2.3.4", "extra_hosts", {"h": "1.2.3.4"}),
        ("cap-drop", "ALL", "cap_drop", ["ALL"]),
        ("cpuset-cpus", "0-1", "cpuset_cpus", "0-1"),
        ("init", "false", "init", False),
        ("read-only", "", "read_only", True),
        ("shm-size", "64m", "shm_size", 64 << 20),
        ("shm-size", "1GB", "shm_size", 1 << 30),
        ("memory-reservation", "1024", "mem_reservation", 1024),
        ("sysctl", "net.core.somaxconn=9", "sysctls", {"net.core.somaxconn": "9"}),
        ("tmpfs", "/tmp:size=1m", "tmpfs", {"/tmp": "size=1m"}),
        ("ipc", "private", "ipc_mode", "private"),
    ],
)
def test_known_ones_become_arguments_of_the_host_config(key, value, argument, expected):
    assert applied((key, value)).host == {argument: expected}


@pytest.mark.parametrize(
    ("key", "value", "argument", "expected"),
    [
        ("workdir", "/w", "working_dir", "/w"),
        ("w", "/w", "working_dir", "/w"),
        ("user", "1:2", "user", "1:2"),
        ("entrypoint", "/e", "entrypoint", ["/e"]),
        ("env", "A=b=c", "environment", {"A": "b=c"}),
        ("label", "k", "labels", {"k": ""}),
    ],
)
def test_others_are_of_the_container_itself(key, value, argument, expected):
    assert applied((key, value)).config[argument] == expected


def test_what_may_be_given_several_times_adds_up():
    made = applied(("dns", "1.1.1.1"), ("dns", "8.8.8.8"), ("env", "A=1"), ("env", "B=2"))
    assert made.host == {"dns": ["1.1.1.1", "8.8.8.8"]}
    assert made.config["environment"] == {"A": "1", "B": "2"}


def test_volumes_and_ulimits_are_understood():
    made = applied(
        ("volume", "/a:/b:ro"), ("v", "named:/c"), ("ulimit", "nofile=5:10"), ("ulimit", "core=0")
    )
    assert made.mounts == [MountPoint("/a", "/b", True), MountPoint("named", "/c")]
    assert [each.is_volume for each in made.mounts] == [False, True]
    assert made.ulimits == [Ulimit("nofile", 5, 10), Ulimit("core", 0, 0)]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("cap-add", "SYS_ADMIN"),
        ("device", "/dev/kvm"),
        ("security-opt", "seccomp=unconfined"),
        ("pid", "host"),
        ("pid", "container:other"),
        ("ipc", "host"),
        ("userns", "host"),
        ("uts", "host"),
    ],
)
def test_what_leads_out_of_the_container_needs_an_agent_that_allows_it(key, value):
    assert refusal(key, value) == "needs an agent that allows privileged containers"
    assert applied((key, value), privileged=True).host


@pytest.mark.parametrize(
    "key",
    [
        *("name", "memory", "m", "cpus", "cpu-shares", "net", "network", "publish", "p"),
        *("privileged", "restart", "rm", "cgroup-parent", "log-driver", "tty", "volumes-from"),
    ],
)
def test_what_is_the_agents_to_decide_is_refused_with_why(key):
    assert len(refusal(key, privileged=True)) > 10


def test_unknown_ones_are_refused_by_name():
    assert refusal("no-such") == "is no parameter that this agent knows"
    assert refusal("") == "is no parameter that this agent knows"


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("env", "A", "must be NAME=VALUE"),
        ("label", "mesos_py.agent_id=A2", "none that begins with mesos_py."),
        ("add-host", "h", "must be NAME:VALUE"),
        ("init", "maybe", "must be true or false"),
        ("pids-limit", "1.5", "must be a whole number"),
        ("shm-size", "big", "is not a size"),
        ("dns", "", "must not be empty"),
        ("dns", "a\0b", "has a null character"),
        ("volume", "/a", "must be SOURCE:TARGET"),
        ("volume", "./a:/b", "must have an absolute path"),
        ("volume", "/a:/b:z", "has the mode 'z'"),
        ("ulimit", "nofile=x", "must be NAME=SOFT"),
        ("tmpfs", "tmp", "must be an absolute path"),
    ],
)
def test_malformed_values_are_refused_with_why(key, value, reason):
    assert reason in refusal(key, value)


def test_two_mounts_at_one_place_are_refused():
    with pytest.raises(InvalidValue, match="is mounted already"):
        applied(("volume", "/a:/b"), ("volume", "/c:/b"))
