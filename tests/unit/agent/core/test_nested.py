"""Containers within others: their names, what they may ask for, what they take over."""

import pytest

from agent.core import nested
from agent.core.journal import Kind
from agent.core.nested import Outer, names_of
from mesos_py.errors import InvalidValue
from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import AgentWorld, command, executor_info, for_executor

COMMAND = pb.CommandInfo(value="sleep 1")
Variable = pb.Environment.Variable


def chain(*names: str) -> pb.ContainerID:
    return nested.id_of(names)


def test_a_name_is_that_of_all_that_it_is_in():
    assert names_of("id", chain("c1", "a", "b")) == ("c1", "a", "b")
    assert nested.text_of(("c1", "a", "b")) == "c1.a.b"
    assert nested.mark_of(("c1", "a", "b")) == "c1..a.b"
    assert nested.is_mark("c1..a")
    # The id of a container, and that of a check of it.
    assert not nested.is_mark("c1")
    assert not nested.is_mark("c1.health")


@pytest.mark.parametrize("name", ["", "a.b", "..", "a/b", "a" * 243, "\u00e4", "a\n", "a\0"])
def test_what_would_be_another_name_or_a_path_is_no_id(name):
    for place, given in (
        ("value", chain("c1", "a", name)),
        ("parent.value", chain("c1", name, "b")),
        ("parent.parent.value", chain(name, "a", "b")),
    ):
        with pytest.raises(InvalidValue, match="must be of letters, digits") as caught:
            names_of("id", given)
        assert caught.value.field == f"id.{place}"


def test_they_are_not_in_one_another_without_end():
    most = ["n"] * nested.MAX_DEPTH
    assert len(names_of("id", chain(*most))) == nested.MAX_DEPTH
    with pytest.raises(InvalidValue, match=r"^id: 'n': is in more than 7 others"):
        names_of("id", chain("n", *most))


def test_what_is_wanted():
    environment = pb.Environment(variables=[Variable(name="A", value="1")])
    given = pb.CommandInfo(value="env", user="bob", environment=environment)
    found = nested.wanted(given, pb.ContainerInfo(type=pb.ContainerInfo.MESOS))
    assert (found.executable, found.argv) == ("/bin/sh", ["sh", "-c", "env"])
    assert (found.environment, found.user) == ({"A": "1"}, "bob")
    shared = pb.LinuxInfo(share_pid_namespace=True, share_cgroups=True)
    assert nested.wanted(COMMAND, pb.ContainerInfo(linux_info=shared)).user == ""


REFUSED = {
    "container.type: 'DOCKER'": pb.ContainerInfo(type=pb.ContainerInfo.DOCKER),
    "container.volumes": pb.ContainerInfo(volumes=[pb.Volume(container_path="x")]),
    "container.hostname": pb.ContainerInfo(hostname="h"),
    "container.docker": pb.ContainerInfo(docker=pb.ContainerInfo.DockerInfo()),
    "container.network_infos": pb.ContainerInfo(network_infos=[pb.NetworkInfo(name="n")]),
    "container.rlimit_info": pb.ContainerInfo(rlimit_info=pb.RLimitInfo()),
    "container.tty_info": pb.ContainerInfo(tty_info=pb.TTYInfo()),
    "container.mesos.image": pb.ContainerInfo(mesos=pb.ContainerInfo.MesosInfo(image=pb.Image())),
    "container.linux_info.shm_size": pb.ContainerInfo(linux_info=pb.LinuxInfo(shm_size=1)),
    "container.linux_info.capability_info": pb.ContainerInfo(
        linux_info=pb.LinuxInfo(capability_info=pb.CapabilityInfo())
    ),
    "container.linux_info.bounding_capabilities": pb.ContainerInfo(
        linux_info=pb.LinuxInfo(bounding_capabilities=pb.CapabilityInfo())
    ),
    "container.linux_info.effective_capabilities": pb.ContainerInfo(
        linux_info=pb.LinuxInfo(
            effective_capabilities=pb.CapabilityInfo(capabilities=[pb.CapabilityInfo.NET_ADMIN])
        )
    ),
    "container.linux_info.seccomp": pb.ContainerInfo(
        linux_info=pb.LinuxInfo(seccomp=pb.SeccompInfo(unconfined=True))
    ),
    "container.linux_info.ipc_mode": pb.ContainerInfo(
        linux_info=pb.LinuxInfo(ipc_mode=pb.LinuxInfo.PRIVATE)
    ),
    "container.linux_info.share_pid_namespace: 'false'": pb.ContainerInfo(
        linux_info=pb.LinuxInfo(share_pid_namespace=False)
    ),
    "container.linux_info.share_cgroups": pb.ContainerInfo(
        linux_info=pb.LinuxInfo(share_cgroups=False)
    ),
}


@pytest.mark.parametrize("field", REFUSED)
def test_what_it_would_have_for_itself_is_refused_by_name(field):
    with pytest.raises(InvalidValue) as caught:
        nested.wanted(COMMAND, REFUSED[field])
    assert str(caught.value).startswith(field)


def test_resources_limits_and_uris_are_refused_by_name():
    nothing = pb.ContainerInfo()
    with pytest.raises(InvalidValue, match=r"^resources: 'cpus'"):
        nested.wanted(COMMAND, nothing, [pb.Resource(name="cpus")])
    with pytest.raises(InvalidValue, match=r"^limits: 'mem'"):
        nested.wanted(COMMAND, nothing, (), {"mem": pb.Value.Scalar(value=1)})
    fetching = pb.CommandInfo(value="ls", uris=[pb.CommandInfo.URI(value="x")])
    with pytest.raises(InvalidValue, match=r"^command.uris: 'x'"):
        nested.wanted(fetching, nothing)
    for missing in (None, pb.CommandInfo()):
        with pytest.raises(InvalidValue, match=r"^command.*: must be there"):
            nested.wanted(missing, nothing)


def test_a_session_may_have_a_terminal_of_some_size():
    def terminal(tty: pb.TTYInfo) -> nested.Size | None:
        return nested.wanted(COMMAND, pb.ContainerInfo(tty_info=tty), session=True).terminal

    assert nested.wanted(COMMAND, pb.ContainerInfo(), session=True).terminal is None
    assert terminal(pb.TTYInfo()) == (0, 0)
    window = pb.TTYInfo.WindowSize
    assert terminal(pb.TTYInfo(window_size=window(rows=33, columns=77))) == (33, 77)
    with pytest.raises(InvalidValue, match=r"^container.tty_info.window_size.columns: 65536"):
        terminal(pb.TTYInfo(window_size=window(rows=1, columns=65536)))


def outer(world: AgentWorld, executor_id: str) -> Outer:
    state = world.core.state
    return nested.outer(state, state.containers[world.container(executor_id)])


def test_of_a_command_it_takes_over_user_directory_and_environment():
    world = AgentWorld()
    task = command("t1", "env")
    task.command.environment.variables.add(name="GIVEN", value="1")
    world.run(task)
    found = outer(world, "t1")
    spec = world.specs()[-1]
    assert found == Outer("root", spec.environment | spec.command_environment, spec.sandbox)
    assert found.environment["GIVEN"] == "1"
    assert found.environment["MESOS_TASK_ID"] == "t1"


def test_of_an_executor_the_same_also_when_it_has_no_task():
    world = AgentWorld()
    own = pb.CommandInfo(value="./executor", user="bob")
    world.run(for_executor("t1", executor_info(command=own)))
    found = outer(world, "ex")
    spec = world.specs()[-1]
    assert found == Outer("bob", spec.environment | spec.command_environment, spec.sandbox)
    world.core.state.containers[world.container("ex")].tasks.clear()
    assert outer(world, "ex").environment["MESOS_EXECUTOR_ID"] == "ex"


@pytest.mark.parametrize("kind", [Kind.FRAMEWORK, Kind.TASK])
def test_whose_user_was_written_down_and_is_damaged_takes_in_nobody(kind):
    world = AgentWorld()
    world.run(command("t1"), for_executor("t2"))
    for name in ("t1", "ex"):
        world.started(name)
    damaged = [key for key in world.records if key[0] is kind]
    assert damaged
    world.restart(damaged=damaged)
    executors = world.core.state.executors.values()
    unknown = [each for each in executors if kind is Kind.FRAMEWORK or not each.custom]
    assert unknown
    for each in unknown:
        with pytest.raises(InvalidValue, match=r"^container_id.parent: 'c\d': its user is not"):
            nested.outer(world.core.state, each)


def test_a_user_of_its_own_is_known_without_its_framework():
    world = AgentWorld()
    world.run(command("t1", command=pb.CommandInfo(value="env", user="bob")))
    world.started("t1")
    world.restart(damaged=[key for key in world.records if key[0] is Kind.FRAMEWORK])
    (executor,) = world.core.state.executors.values()
    assert nested.outer(world.core.state, executor).user == "bob"


def test_the_environment_within_is_its_own_and_a_session_has_that_of_the_other():
    names = ("c1", "a")
    found = nested.environment_within(names, "/s/containers/a", {"A": "1", "PATH": "/opt"})
    assert found == {
        "PATH": "/opt",
        "MESOS_SANDBOX": "/s/containers/a",
        "MESOS_DIRECTORY": "/s/containers/a",
        "A": "1",
        "MESOS_CONTAINER_ID": "c1..a",
    }
    other = Outer("", {"B": "2", "A": "0", "MESOS_CONTAINER_ID": "c1"}, ())
    assert nested.environment_of_session(names, other, {"A": "1"}) == {
        "B": "2",
        "A": "1",
        "MESOS_CONTAINER_ID": "c1..a",
    }
