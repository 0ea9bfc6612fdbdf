"""The docker launcher on a real dockerd: what becomes of containers, whatever happens."""

import asyncio
import shlex

import pytest

from agent.containers.docker.launcher import GONE
from agent.containers.launcher import STOPPED
from agent.core.effects import Signal
from agent.core.records import Exit
from mesos_py.errors import Refused, Unavailable
from mesos_py.resources import Resources
from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_master import eventually
from tests.kit.docker_tasks import Docker, Rig, container_info, container_spec, rig
from tests.kit.dockerd import NEEDS

pytestmark = pytest.mark.needs(*NEEDS)

OK = Exit(0)


def code(number: int) -> Exit:
    return Exit(number << 8)


@pytest.fixture
async def here(dockerd, tmp_path):
    async with rig(dockerd, tmp_path / "agent") as made:
        yield made


async def ended(here: Rig, container_id: str = "c1") -> Exit:
    exit: Exit = (await here.heard.until("ended", container_id))[2]
    return exit


async def message(here: Rig, container_id: str = "c1") -> str:
    text: str = (await here.heard.until("failed", container_id))[2]
    return text


# ---- Output and files ------------------------------------------------------------------


async def test_all_output_arrives_however_much_and_however_late(here):
    here.launcher.launch(container_spec("seq 1 50000; echo err >&2; echo -n end"))
    assert await ended(here) == OK
    assert here.output() == "".join(f"{n}\n" for n in range(1, 50_001)) + "end"
    assert here.output(name="stderr") == "err\n"


async def test_lines_longer_than_dockers_pieces_stay_whole(here):
    here.launcher.launch(container_spec("yes | tr -d '\\n' | head -c 100000; exit 0"))
    assert await ended(here) == OK
    assert here.output() == "y" * 100_000


async def test_files_that_dockerd_rotates_cost_no_line_and_double_none(dockerd, tmp_path):
    script = "i=0; while [ $i -lt 250 ]; do seq 1 100; i=$((i+1)); sleep 0.01; done"
    async with rig(dockerd, tmp_path / "agent", log_size="1m") as here:
        here.launcher.launch(container_spec(script))
        assert await ended(here) == OK
        assert here.output() == 250 * "".join(f"{n}\n" for n in range(1, 101))


async def test_volumes_are_read_only_writable_or_of_the_sandbox(here, tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "in").write_text("there")
    container = container_info()
    container.volumes.add(host_path=str(shared), container_path="/ro", mode=pb.Volume.RO)
    container.volumes.add(host_path=str(shared), container_path="/rw", mode=pb.Volume.RW)
    container.volumes.add(host_path="data/x", container_path="/data", mode=pb.Volume.RW)
    script = "cat /ro/in; touch /ro/no; echo 1 > /rw/out; echo 2 > /data/y"
    here.launcher.launch(container_spec(script, container=container))
    assert await ended(here) == OK
    assert here.output() == "there"
    assert "Read-only" in here.output(name="stderr")
    assert (shared / "out").read_text() == "1\n"
    assert (here.work_dir / "agents/A1/runs/c1/data/x/y").read_text() == "2\n"


async def test_output_is_not_written_through_a_link_that_the_task_has_planted(here, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("")
    script = f"cd /mnt/mesos/sandbox; sleep 0.3; rm stdout; ln -s {secret} stdout; echo mine"
    here.launcher.launch(container_spec(script))
    assert await ended(here) == OK
    assert secret.read_text() == ""
    assert here.metrics.snapshot()["docker_output_lost_bytes_total"] == 5


# ---- Ends --------------------------------------------------------------------------------


async def test_exit_code_137_alone_is_no_matter_of_memory(here):
    here.launcher.launch(container_spec("exit 137"))
    assert await ended(here) == code(137)
    assert here.heard.of("limited") is None


async def test_over_its_memory_limit_it_ends_for_that_reason(here):
    here.launcher.launch(container_spec("tr '\\0' x </dev/zero | head -c 200m | grep y"))
    _, _, limitation = await here.heard.until("limited")
    assert limitation.reason == pb.TaskStatus.REASON_CONTAINER_LIMITATION_MEMORY
    assert limitation.message.endswith("at its limit of 64 MB")
    assert limitation.resources == Resources.of(mem=64)
    assert await ended(here) == code(137)


async def test_the_loss_of_a_child_to_memory_is_no_failure_of_its_parent(here):
    script = "(dd if=/dev/zero of=/dev/null bs=200M count=1); echo $?; sleep 2; exit 0"
    here.launcher.launch(container_spec(script))
    _, _, limitation = await here.heard.until("limited")
    assert not limitation.fatal
    assert "a process of it, which goes on, at its limit of 64 MB" in limitation.message
    assert await ended(here) == OK
    assert here.output() == "137\n"
    assert [event[0] for event in here.heard.events] == ["started", "limited", "ended"]
    assert here.metrics.snapshot()["docker_oom_kills_total"] >= 1


async def test_what_ignores_sigterm_is_killed_when_that_is_asked(here, dockerd):
    here.launcher.launch(container_spec("trap '' TERM; echo on; while :; do sleep 1; done"))
    await eventually(here.output)
    here.launcher.kill("c1", Signal.TERM)
    here.launcher.kill("c1", Signal.KILL)
    assert await ended(here) == Exit(9)
    await eventually(lambda: not dockerd.ids())


async def test_a_container_that_somebody_has_paused_can_be_killed(here, dockerd):
    here.launcher.launch(container_spec("sleep 1000"))
    await here.heard.until("started")
    dockerd.client.pause(dockerd.ids()[0])
    here.launcher.kill("c1", Signal.TERM)
    here.launcher.kill("c1", Signal.KILL)
    await ended(here)


async def test_sigterm_reaches_the_program_behind_a_shell(here):
    """Field case: the grace period did nothing for shell-started commands."""
    polite = "trap 'echo got; exit 0' TERM; echo on; sleep 1000 & wait"
    here.launcher.launch(container_spec(f"sh -c {shlex.quote(polite)}; echo after"))
    await eventually(here.output)
    here.launcher.kill("c1", Signal.TERM)
    await ended(here)
    assert here.output() == "on\ngot\n"


async def test_a_container_that_somebody_removes_has_ended_in_an_unknown_way(here, dockerd):
    here.launcher.launch(container_spec("sleep 1000"))
    await here.heard.until("started")
    dockerd.client.remove_container(dockerd.ids()[0], force=True)
    # Which of the two we see first is a race of dockerd's.
    assert await ended(here) in (code(137), Exit(None, GONE))


async def test_a_kill_while_the_image_is_on_its_way_stops_the_launch(dockerd, tmp_path, here):
    with dockerd.registry("stall") as address:
        here.launcher.launch(container_spec(container=container_info(image=f"{address}/tiny:1")))
        await asyncio.sleep(0.2)
        here.launcher.kill("c1", Signal.TERM)
        assert await message(here) == STOPPED
    assert len(here.launcher) == 0


# ---- What cannot be had --------------------------------------------------------------------


async def test_what_docker_refuses_fails_the_launch_in_its_words(here, dockerd):
    container = container_info()
    container.volumes.add(host_path="/no/such/path", container_path="/x", mode=pb.Volume.RO)
    here.launcher.launch(container_spec(container=container))
    assert "/no/such/path" in await message(here)
    assert not dockerd.ids()


async def test_what_cannot_be_translated_fails_the_launch_with_field_and_value(here):
    container = container_info()
    container.docker.parameters.add(key="restart", value="always")
    here.launcher.launch(container_spec(container=container))
    assert (await message(here)).startswith("container.docker.parameters.restart: 'always': ")


async def test_a_user_that_is_not_there_is_named(here):
    spec = container_spec()
    spec.user = "nobody-knows-me"
    here.launcher.launch(spec)
    assert "'nobody-knows-me' does not exist" in await message(here)


async def test_a_name_that_is_taken_is_not_taken_over(here, dockerd):
    stranger = dockerd.run_stranger({}, name="mesos-c1")
    here.launcher.launch(container_spec())
    assert "Conflict" in await message(here)
    assert dockerd.running(stranger)
    dockerd.client.remove_container(stranger, force=True)


async def test_a_container_starts_when_its_uris_are_fetched_and_not_otherwise(here):
    for container_id in ("c1", "c2", "c3"):
        spec = container_spec(container_id=container_id)
        spec.command.uris.add(value="http://h/f")
        here.launcher.launch(spec)
    begun = here.fetcher.begun
    await eventually(lambda: len(begun) == 3)
    begun["c1"].set_result(None)
    assert await ended(here) == OK
    begun["c2"].set_exception(Refused("no such host: h"))
    assert await message(here, "c2") == "no such host: h"
    here.launcher.kill("c3", Signal.TERM)
    assert await message(here, "c3") == STOPPED
    assert begun["c3"].cancelled()


# ---- Images --------------------------------------------------------------------------------


async def test_an_image_that_nobody_has_is_named_with_the_cause(here):
    image = "localhost:1/none:x"
    here.launcher.launch(container_spec(container=container_info(image=image)))
    text = await message(here)
    assert text.startswith(f"cannot pull image {image!r}: ")
    assert "refused" in text


async def test_a_missing_image_is_pulled(here, dockerd):
    with dockerd.registry("serve") as address:
        image = f"{address}/pulled:1"
        here.launcher.launch(container_spec("echo here", container=container_info(image=image)))
        assert await ended(here) == OK
    assert here.output() == "here\n"
    dockerd.client.remove_image(image, force=True)


async def test_a_pull_that_stalls_ends_in_its_time_and_says_how_far_it_came(dockerd, tmp_path):
    async with rig(dockerd, tmp_path / "agent", pull_timeout_s=1.0) as here:
        with dockerd.registry("stall") as address:
            image = f"{address}/tiny:1"
            here.launcher.launch(container_spec(container=container_info(image=image)))
            text = await message(here)
    assert text == (
        f"cannot pull image {image!r}: not done within 1 s (0 of 0 layers done, 0.0 MB downloaded)"
    )


async def test_an_image_that_is_here_is_pulled_if_the_task_says_so(here, dockerd):
    container = container_info(force_pull_image=True)
    here.launcher.launch(container_spec(container=container))
    assert "cannot pull image 'tiny:1'" in await message(here)


async def test_an_agent_may_pull_nothing(dockerd, tmp_path):
    async with rig(dockerd, tmp_path / "agent", pull_policy="never") as here:
        here.launcher.launch(container_spec(container=container_info(image="other:1")))
        assert await message(here) == "image 'other:1' is not on this agent, which pulls none"


# ---- Networks --------------------------------------------------------------------------------


async def test_mapped_ports_are_reached_from_the_host(here, dockerd):
    container = container_info(Docker.BRIDGE)
    container.docker.port_mappings.add(host_port=21007, container_port=80)
    here.launcher.launch(
        container_spec(
            "while :; do echo hello | nc -l -p 80; done",
            container=container,
            resources=Resources.of([(21000, 21009)], cpus=1, mem=64),
        )
    )
    await here.heard.until("started")
    await eventually(lambda: "hello" in dockerd.inside("nc", "-w", "1", "127.0.0.1", "21007"))
    (address,) = here.heard.addresses["c1"]
    await eventually(lambda: "hello" in dockerd.inside("nc", "-w", "1", address, "80"))


async def test_the_network_is_none_or_the_hosts(here):
    for container_id, network in (("c1", Docker.NONE), ("c2", Docker.HOST)):
        container = container_info(network)
        spec = container_spec("ls /sys/class/net", container_id=container_id, container=container)
        here.launcher.launch(spec)
        assert await ended(here, container_id) == OK
    assert here.output("c1").split() == ["lo"]
    assert "docker0" in here.output("c2").split()


# ---- Commands beside it ----------------------------------------------------------------------


async def test_a_command_runs_beside_the_containers_own(here):
    here.launcher.launch(container_spec("touch /there; sleep 1000"))
    await here.heard.until("started")
    argv = ["/bin/sh", "-c", "ls /there; echo $A >&2; exit 3"]
    ran = await here.launcher.run_in("c1", argv, {"A": "b"})
    assert ran is not None
    assert ran.code == 3
    assert sorted(ran.output.split()) == ["/there", "b"]
    missing = await here.launcher.run_in("c1", ["/no/such"], {})
    assert missing is not None
    assert missing.code not in (0, None)
    assert await here.launcher.run_in("unknown", ["true"], {}) is None


async def test_a_command_that_is_given_up_does_not_outlive_its_question(here, dockerd):
    here.launcher.launch(container_spec("sleep 1000"))
    await here.heard.until("started")
    running = asyncio.create_task(here.launcher.run_in("c1", ["sleep", "987"], {}))
    (docker_id,) = dockerd.ids()
    await eventually(lambda: "sleep 987" in dockerd.command_lines(docker_id))
    running.cancel()
    await asyncio.wait([running])
    assert running.cancelled()
    await eventually(lambda: "sleep 987" not in dockerd.command_lines(docker_id))


# ---- Limits and statistics --------------------------------------------------------------------


async def test_limits_are_set_and_follow_the_resources(dockerd, tmp_path):
    async with rig(dockerd, tmp_path / "agent", cpu_quota=True, pids_limit=50) as here:
        here.launcher.launch(container_spec("sleep 1000", resources=Resources.of(cpus=1, mem=64)))
        await here.heard.until("started")

        def limits() -> list[int]:
            host = dockerd.inspect(container_id="c1")["HostConfig"]
            return [host[name] for name in ("CpuShares", "CpuQuota", "Memory", "MemorySwap")]

        assert limits() == [1024, 100_000, 64 << 20, 64 << 20]
        assert dockerd.inspect(container_id="c1")["HostConfig"]["PidsLimit"] == 50
        here.launcher.update("c1", Resources.of(cpus=1.5, mem=128))
        await eventually(lambda: limits() == [1536, 150_000, 128 << 20, 128 << 20])
        here.launcher.update("c1", Resources.of(cpus=0.5, mem=40))
        await eventually(lambda: limits() == [512, 50_000, 40 << 20, 40 << 20])


async def test_usage_has_the_names_that_all_containers_use(dockerd, tmp_path):
    async with rig(dockerd, tmp_path / "agent", cpu_quota=True, pids_limit=50) as here:
        script = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo on; sleep 1000"
        spec = container_spec(script, container=container_info(Docker.BRIDGE))
        here.launcher.launch(spec)
        await eventually(here.output)
        usage = await here.launcher.usage("c1")
        assert usage["cpu_user_seconds"] + usage["cpu_system_seconds"] > 0
        assert usage["cpu_limit_cores"] == 1
        assert usage["memory_limit_bytes"] == 64 << 20
        assert 0 < usage["memory_rss_bytes"] <= usage["memory_bytes"] + 4096
        # The init, the shell, which waits to be asked to end, and what it runs.
        assert (usage["pids"], usage["pids_limit"]) == (3, 50)
        assert {"net_rx_bytes", "net_tx_packets", "cpu_throttled_seconds"} <= usage.keys()
        assert await here.launcher.usage("unknown") == {}


# ---- The end of the agent ----------------------------------------------------------------------


async def test_closing_ends_and_removes_all_and_leaves_no_cgroup(dockerd, tmp_path):
    async with rig(dockerd, tmp_path / "agent") as here:
        here.launcher.launch(container_spec("sleep 1000"))
        here.launcher.launch(container_spec("sleep 1000", container_id="c2"))
        await here.heard.until("started")
        await here.heard.until("started", "c2")
        assert any("A1" in group.parts for group in dockerd.groups())
    assert not dockerd.ids()
    assert not any("A1" in group.parts for group in dockerd.groups())


async def test_a_dockerd_that_is_not_there_is_named(dockerd, tmp_path):
    made = Rig(dockerd, tmp_path / "agent", socket=tmp_path / "none")
    with pytest.raises(Unavailable, match="No such file or directory") as caught:
        await made.launcher.start()
    assert caught.value.fields["field"] == "docker-socket"
    await made.launcher.close()
