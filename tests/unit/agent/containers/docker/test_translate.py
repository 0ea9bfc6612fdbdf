"""A container's description as what dockerd is asked to make."""

import pytest

from agent.containers.docker.request import CreateRequest, MountPoint, Ulimit
from agent.containers.docker.settings import Dockerd, DockerSettings
from agent.containers.docker.translate import Place, create_request, sandbox_directories
from agent.core.volume_uses import VolumeKey, VolumeUse
from mesos_py.errors import InvalidValue
from mesos_py.resources import Resources
from mesos_py.v1 import types_pb2 as pb
from tests.kit.docker_tasks import Docker, container_info, container_spec

PLACE = Place("/srv", 1001, 1002, (1002, 20), "/srv/docker/socket")
SANDBOX = MountPoint("/srv/agents/A1/runs/c1", "/mnt/mesos/sandbox")
PORTS = Resources.of([(31000, 31009)], cpus=1, mem=64)


def request(spec=None, *, dockerd: Dockerd | None = None, **settings) -> CreateRequest:
    made = DockerSettings(**settings)
    return create_request(spec or container_spec(), PLACE, made, dockerd or Dockerd())


def of_container(container: pb.ContainerInfo, resources=PORTS, **settings) -> CreateRequest:
    return request(container_spec(container=container, resources=resources), **settings)


def refusal(container: pb.ContainerInfo, **settings) -> str:
    with pytest.raises(InvalidValue) as caught:
        of_container(container, **settings)
    return f"{caught.value.field}: {caught.value.reason}"


# ---- What is always there -----------------------------------------------------------------


def test_name_labels_and_sandbox_are_the_containers():
    made = request()
    assert (made.name, made.image) == ("mesos-c1", "tiny:1")
    assert made.config["labels"] == {
        "mesos_py.agent_id": "A1",
        "mesos_py.framework_id": "F1",
        "mesos_py.executor_id": "c1",
        "mesos_py.container_id": "c1",
        "mesos_py.sandbox": "agents/A1/runs/c1",
    }
    assert made.mounts == [SANDBOX]


def test_the_environment_is_mesos_without_our_path_and_the_frameworks_wins():
    spec = container_spec()
    spec.environment |= {"MESOS_TASK_ID": "t"}
    spec.command_environment = {"MESOS_TASK_ID": "mine"}
    environment = request(spec).config["environment"]
    assert environment == {
        "MESOS_SANDBOX": "/mnt/mesos/sandbox",
        "MESOS_CONTAINER_NAME": "mesos-c1",
        "MESOS_TASK_ID": "mine",
        "TINI_KILL_PROCESS_GROUP": "1",
    }


def test_a_custom_executor_is_given_the_agents_socket():
    spec = container_spec()
    spec.environment["MESOS_PY_EXECUTOR_ENDPOINT"] = "unix:/srv/executors.sock"
    spec.environment["MESOS_AGENT_ENDPOINT"] = "10.0.0.1:5051"
    made = request(spec)
    environment = made.config["environment"]
    assert environment["MESOS_PY_EXECUTOR_ENDPOINT"] == "unix:/mnt/mesos/agent/executors.sock"
    assert environment["MESOS_AGENT_ENDPOINT"] == "10.0.0.1:5051"
    assert MountPoint("/srv/docker/socket", "/mnt/mesos/agent", read_only=True) in made.mounts


def test_a_dockerd_without_an_init_process_is_asked_for_none():
    made = request(container_spec("exec server"), dockerd=Dockerd(has_init=False))
    assert made.host["init"] is False
    assert "TINI_KILL_PROCESS_GROUP" not in made.config["environment"]
    assert made.config["command"] == ["-c", "exec server"]


def test_a_shells_text_replaces_the_entry_point():
    made = request(container_spec("echo $X"))
    assert made.config["entrypoint"] == ["/bin/sh"]
    # With the init in front, the shell waits for what it runs when both are asked to end.
    assert made.config["command"] == ["-c", "trap exit TERM; echo $X"]


@pytest.mark.parametrize(
    ("value", "arguments", "words"),
    [("prog", ["a", "b"], ["prog", "a", "b"]), ("", ["a"], ["a"]), ("", [], None)],
)
def test_words_are_arguments_of_the_images_entry_point(value, arguments, words):
    command = pb.CommandInfo(shell=False, value=value, arguments=arguments)
    config = request(container_spec(command=command)).config
    assert "entrypoint" not in config
    assert config.get("command") == words


def test_only_a_user_whom_the_command_names_replaces_the_images():
    assert "user" not in request().config
    made = request(container_spec(command=pb.CommandInfo(value="id", user="u")))
    assert made.config["user"] == "1001:1002"
    assert made.host["group_add"] == ["1002", "20"]


def test_an_image_must_be_named():
    assert refusal(container_info(image="")) == "container.docker.image: must name an image"


# ---- Limits -----------------------------------------------------------------------------------


def test_limits_are_those_of_the_resources():
    host = request(container_spec(resources=Resources.of(cpus=0.5, mem=100))).host
    limits = {name: host.get(name) for name in ("cpu_shares", "mem_limit", "memswap_limit")}
    assert limits == {"cpu_shares": 512, "mem_limit": 100 << 20, "memswap_limit": 100 << 20}
    assert "cpu_quota" not in host


def test_the_agents_bound_on_processes_holds_and_may_be_lowered():
    assert request(pids_limit=100).host["pids_limit"] == 100
    fewer, more, endless = container_info(), container_info(), container_info()
    fewer.docker.parameters.add(key="pids-limit", value="10")
    more.docker.parameters.add(key="pids-limit", value="101")
    endless.docker.parameters.add(key="pids-limit", value="-1")
    assert of_container(fewer, pids_limit=100).host["pids_limit"] == 10
    assert of_container(more).host["pids_limit"] == 101
    for each in (more, endless):
        text = "container.docker.parameters.pids-limit: must be 1 to 100 on this agent"
        assert refusal(each, pids_limit=100) == text


@pytest.mark.parametrize(
    ("driver", "parent"),
    [
        ("cgroupfs", "/mesos_py/A1-S0"),
        ("systemd", "mesos_py-A1\\x2dS0.slice"),
    ],
)
def test_the_cgroup_parent_carries_the_full_id_of_the_agent(driver, parent):
    spec = container_spec(agent_id="A1-S0")
    dockerd = Dockerd(cgroup_driver=driver)
    assert request(spec, dockerd=dockerd, cgroup_root="mesos_py").host["cgroup_parent"] == parent
    assert request(spec, dockerd=dockerd).host["cgroup_parent"] is None


def test_rlimits_are_ulimits():
    container = container_info()
    kinds = pb.RLimitInfo.RLimit
    container.rlimit_info.rlimits.add(type=kinds.RLMT_NOFILE, soft=10, hard=20)
    container.rlimit_info.rlimits.add(type=kinds.RLMT_CORE)
    assert of_container(container).ulimits == [Ulimit("nofile", 10, 20), Ulimit("core", -1, -1)]


@pytest.mark.parametrize(
    ("rlimit", "reason"),
    [
        ({"type": pb.RLimitInfo.RLimit.RLMT_AS}, ".type: is no limit that docker can set"),
        ({"type": 99}, ".type: is no limit that docker can set"),
        (
            {"type": pb.RLimitInfo.RLimit.RLMT_CPU, "soft": 1},
            ": must have both soft and hard, or neither",
        ),
        (
            {"type": pb.RLimitInfo.RLimit.RLMT_CPU, "soft": 2, "hard": 1},
            ".soft: is over the hard limit 1",
        ),
    ],
)
def test_rlimits_that_docker_cannot_set_are_refused(rlimit, reason):
    container = container_info()
    container.rlimit_info.rlimits.add(**rlimit)
    assert refusal(container) == f"container.rlimit_info.rlimits[0]{reason}"


# ---- Volumes ----------------------------------------------------------------------------------


def test_persistent_volumes_are_mounts_and_relative_paths_are_in_the_sandbox():
    key = VolumeKey("ads/x", "v1")
    spec = container_spec()
    spec.volumes = [VolumeUse(key, "data"), VolumeUse(key, "/d/", read_only=True)]
    kept = "/srv/volumes/roles/ads x/v1"
    assert request(spec).mounts == [
        SANDBOX,
        MountPoint(kept, "/mnt/mesos/sandbox/data"),
        MountPoint(kept, "/d", read_only=True),
    ]


def test_two_slashes_at_the_beginning_are_one():
    spec = container_spec()
    keys = [VolumeKey("ads", name) for name in ("v1", "v2")]
    spec.volumes = [VolumeUse(keys[0], "/d"), VolumeUse(keys[1], "//d")]
    with pytest.raises(InvalidValue, match="is mounted already"):
        request(spec)


def test_a_persistent_volume_is_not_mounted_over_another():
    spec = container_spec()
    spec.volumes = [VolumeUse(VolumeKey("ads", name), "data") for name in ("v1", "v2")]
    with pytest.raises(InvalidValue, match="is mounted already"):
        request(spec)


def test_volumes_are_mounts_and_relative_paths_are_the_sandboxes():
    container = container_info()
    container.volumes.add(host_path="/data:1", container_path="/d", mode=pb.Volume.RO)
    container.volumes.add(host_path="a/./b", container_path="c", mode=pb.Volume.RW)
    assert of_container(container).mounts == [
        SANDBOX,
        MountPoint("/data:1", "/d", read_only=True),
        MountPoint("/srv/agents/A1/runs/c1/a/b", "/mnt/mesos/sandbox/c"),
    ]
    assert sandbox_directories(container) == [("a", "b")]


@pytest.mark.parametrize(
    ("volume", "refused"),
    [
        ({"host_path": "/x", "container_path": "/y"}, "mode: must be RW or RO"),
        (
            {"host_path": "/x", "container_path": "", "mode": 1},
            "container_path: must be a path in the container",
        ),
        (
            {"host_path": "/x", "container_path": "a/../../b", "mode": 1},
            "container_path: must be a path in the container",
        ),
        ({"container_path": "/y", "mode": 1}, "host_path: must be a path of the host"),
        (
            {"host_path": "../up", "container_path": "/y", "mode": 1},
            "host_path: must be an absolute path, or one beneath the sandbox",
        ),
        (
            {"host_path": "/x", "container_path": "/mnt/mesos/sandbox", "mode": 1},
            "container_path: is mounted already",
        ),
    ],
)
def test_volumes_that_cannot_be_are_refused(volume, refused):
    container = container_info()
    container.volumes.add(**volume)
    assert refusal(container) == f"container.volumes[0].{refused}"


def test_a_directory_outside_the_sandbox_is_not_made():
    container = container_info()
    container.volumes.add(host_path="a/../../b", container_path="/y", mode=pb.Volume.RW)
    with pytest.raises(InvalidValue, match="beneath the sandbox"):
        sandbox_directories(container)


# ---- Networks ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("network", "mode"),
    [(Docker.HOST, "host"), (Docker.BRIDGE, "bridge"), (Docker.NONE, "none"), (0, "host")],
)
def test_the_network_is_the_one_that_is_asked_for(network, mode):
    assert of_container(container_info(network)).host["network_mode"] == mode


def test_a_network_of_dockers_is_named_by_network_infos():
    container = container_info(Docker.USER)
    text = "container.network_infos: must name one network of docker's for USER"
    assert refusal(container) == text
    container.network_infos.add(name="blue")
    assert of_container(container).host["network_mode"] == "blue"
    container.network_infos.add(name="green")
    assert refusal(container) == text


def test_a_name_is_of_no_use_for_other_networks():
    container = container_info(Docker.BRIDGE)
    container.network_infos.add(name="blue")
    assert refusal(container) == (
        "container.network_infos.name: is for the network USER, not BRIDGE"
    )


def test_a_host_name_needs_a_network_of_its_own():
    container = container_info(Docker.BRIDGE)
    container.hostname = "h"
    assert of_container(container).config["hostname"] == "h"
    container.docker.network = Docker.HOST
    assert refusal(container).startswith("container.hostname: cannot be given")


def mapped(*mappings: tuple[int, int, str], network=Docker.BRIDGE) -> pb.ContainerInfo:
    container = container_info(network)
    for host_port, container_port, protocol in mappings:
        container.docker.port_mappings.add(
            host_port=host_port, container_port=container_port, protocol=protocol or None
        )
    return container


def test_ports_are_mapped_exactly_as_offered():
    made = of_container(mapped((31000, 80, ""), (31001, 80, "TCP"), (31000, 53, "udp")))
    assert made.host["port_bindings"] == {"80/tcp": [31000, 31001], "53/udp": [31000]}
    assert made.config["ports"] == [(80, "tcp"), (53, "udp")]


@pytest.mark.parametrize(
    ("container", "refused"),
    [
        (mapped((31010, 80, "")), "[0].host_port: is not among the ports that the task was given"),
        (mapped((0, 80, "")), "[0].host_port: is not among the ports that the task was given"),
        (mapped((31000, 0, "")), "[0].container_port: is no port"),
        (mapped((31000, 65536, "")), "[0].container_port: is no port"),
        (mapped((31000, 80, "icmp")), "[0].protocol: must be tcp, udp or sctp"),
        (mapped((31000, 80, ""), (31000, 81, "tcp")), "[1].host_port: is mapped twice"),
        (mapped((31000, 80, ""), network=Docker.HOST), ": are for the networks BRIDGE and USER"),
        (mapped((31000, 80, ""), network=Docker.NONE), ": are for the networks BRIDGE and USER"),
    ],
)
def test_ports_that_were_not_offered_are_refused(container, refused):
    assert refusal(container) == f"container.docker.port_mappings{refused}"


def test_port_mappings_in_the_wrong_place_are_not_left_out():
    container = container_info(Docker.BRIDGE)
    container.network_infos.add().port_mappings.add(host_port=31000, container_port=80)
    assert "are in container.docker.port_mappings" in refusal(container)


# ---- Privileges --------------------------------------------------------------------------------


def test_privileged_is_for_agents_that_allow_it():
    container = container_info(privileged=True)
    assert refusal(container) == (
        "container.docker.privileged: this agent runs no privileged containers"
    )
    assert of_container(container, privileged=True).host["privileged"] is True
