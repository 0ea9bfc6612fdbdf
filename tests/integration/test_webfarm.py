"""`mesos-py webfarm` on real daemons: haproxy, Apache, and users who count what they miss.

As in the field: servers grow and shrink, are replaced, killed, drained and preempted, and the
balancer, the wrapper, an agent and the master are killed in turn, all of it under load.  Fifty
replacements in a row are made by `bench/webfarm`; here are five.
"""

import asyncio
import contextlib
import os
import re
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from frameworks.webfarm.run import Wrapper
from frameworks.webfarm.state import StateDirectory
from mesos_py.operator import OperatorClient
from mesos_py.resources import Resources
from mesos_py.scheduler.needs import Need
from mesos_py.v1.maintenance_pb2 import Schedule
from tests.kit.cluster import LOOPBACK
from tests.kit.framework import Framework
from tests.kit.local import LIMIT_S
from tests.kit.operators import window
from tests.kit.waiting import gone, until
from tests.kit.webfarm import FIRST_PORT, PORTS_EACH, Farm, Ground, Users, web_server, wrk
from tests.kit.webfarm_others import ListBalancer, PythonServer, other_settings, page

pytestmark = pytest.mark.needs("haproxy", "apache2")
AGENTS = 6
# A farm that follows quickly; the policy is tested on a simulated clock.
QUICK = (
    *("--period", "500ms", "--calm", "2s", "--cool-down", "1s", "--step-down", "3"),
    *("--target-sessions", "30", "--cpus", "0.1", "--mem", "32"),
)


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    with Ground(AGENTS) as ground:
        yield ground


@pytest.fixture
def farm(ground: Ground) -> Iterator[Farm]:
    with ground.farm() as farm:
        yield farm


@pytest.fixture
def users(farm: Farm) -> Iterator[Users]:
    """At work; none of them may have missed anything."""
    users = Users(farm.port)
    with users.in_background():
        yield users
    assert users.failures == []
    assert sum(users.answers.values()) > 0


@pytest.fixture
def operator(ground: Ground) -> Iterator[OperatorClient]:
    """Of this test: the one that a cluster keeps would outlive it."""
    with OperatorClient(ground.cluster.address, timeout_s=LIMIT_S) as client:
        yield client


def agent_id_of(operator: OperatorClient, hostname: str) -> str:
    [row] = [each for each in operator.agents() if each.agent_info.hostname == hostname]
    return row.agent_info.id.value


def ids(farm: Farm) -> set[str]:
    return {each["task_id"] for each in farm.servers()}


def test_it_grows_and_shrinks_with_its_load(farm, users):
    farm.up("--max", "3", *QUICK)
    farm.until_serving(1)
    users.per_s = 150
    farm.until_serving(3)
    # At most one on each agent.
    assert len({int(each["at"].split(":")[1]) // PORTS_EACH for each in farm.servers()}) == 3
    users.per_s = 5
    farm.until_serving(1)


@pytest.mark.needs("wrk")
def test_no_request_is_lost_from_six_servers_to_one_to_six_and_when_all_are_replaced(farm):
    """200 requests per second, by connections that are kept."""
    sizes = (*QUICK, "--batch", "3")
    farm.up("--min", "6", "--max", "6", "--site", farm.site("one", "first"), *sizes)
    farm.until_serving(6)
    with wrk(farm.port, per_s=200) as load:
        for count in (1, 6):
            # A wrapper that leaves and one that takes over, and is told another size.
            farm.wrapper.terminate()
            assert farm.wrapper_code() == 0
            farm.up("--min", str(count), "--max", str(count), *sizes)
            farm.until_serving(count)
        before = ids(farm)
        deployed = farm.cli("deploy", farm.site("two", "second"))
        assert deployed.code == 0, deployed
        assert "6 servers have " in deployed.out.decode()
        assert not before & ids(farm)
    assert load.requests > 200
    assert load.errors == []
    assert farm.balancer_counts()["hrsp_5xx"] == 0


def test_servers_leave_before_their_room_does(ground, operator, farm, users):
    """The room of one of two is wanted by somebody who is owed more; then the agent of one is
    announced to be absent; then that of one is drained."""
    others = [each.agent_info.id.value for each in operator.agents()]
    others.remove(agent_id_of(operator, "a0"))
    for agent_id in others:
        operator.deactivate_agent(agent_id)
    assert ground.cluster.cli("roles", "set", "web", "--guarantee", "cpus:0.1").code == 0
    farm.up("--max", "2", "--role", "web", *QUICK)
    farm.until_serving(1)
    for agent_id in others:
        operator.reactivate_agent(agent_id)
    users.per_s = 45
    farm.until_serving(2)

    with Framework(ground.cluster.address, "needy", roles=["needy"]) as needy:
        whole = Resources.of(cpus=4, mem=64)
        needy.driver.set_filters(min_free=whole)
        needy.driver.request_resources([Need("work", whole, 1)])
        needy.wait_for("needs")
        for offers in needy.all("offers"):
            needy.driver.decline_offers(offers)
        needy.offer(has="cpus:4")
        farm.until_elsewhere("a0", 2)
    assert ground.cluster.cli("roles", "unset", "web").code == 0

    host = farm.servers()[0]["host"]
    soon = window(host, start_s=time.time() + 600)
    operator.update_maintenance_schedule(Schedule(windows=[soon]))
    farm.until_elsewhere(host, 2)
    operator.update_maintenance_schedule(Schedule())

    host = farm.servers()[0]["host"]
    assert ground.cluster.cli("drain", host, "--wait").code == 0
    farm.until_elsewhere(host, 2)
    operator.reactivate_agent(agent_id_of(operator, host))
    assert "Preempted" not in farm.log


def test_each_part_is_killed_in_turn():
    with Ground(agents=4) as ground, ground.farm() as farm:
        users = Users(farm.port)
        with users.in_background():
            kill_each_part(ground, farm, users)
        assert users.failures == []


def kill_each_part(ground: Ground, farm: Farm, users: Users) -> None:
    options = ("--min", "3", "--max", "3", "--log-requests", *QUICK)
    farm.up(*options)
    farm.until_serving(3)
    users.per_s = 60
    until(lambda: users.answered > 60)

    # An instance: each request that met it was tried once more.
    (victim, *_) = farm.servers()
    for each in farm.task_pids(victim["task_id"]):
        with contextlib.suppress(ProcessLookupError):  # it went with its parent
            os.kill(each, signal.SIGKILL)
    farm.until(lambda: victim["task_id"] not in ids(farm) and len(farm.servers()) == 3)
    farm.until_serving(3)
    tries = farm.tries_again()
    assert len(tries) > 60
    assert max(tries) <= 1

    # The wrapper: nothing else ends, and whoever asks is told.
    before, balancer = ids(farm), farm.haproxy_pid
    farm.kill_wrapper()
    ended = farm.cli("status")
    assert ended.code == 1
    assert "nobody looks after it" in ended.out.decode()
    refused = farm.cli("deploy", "/srv/other/")
    assert refused.code == 1
    assert "does not run" in refused.err
    farm.up(*options)
    farm.until(lambda: farm.status["pid"] == farm.wrapper.pid)
    farm.until_serving(3)
    assert ids(farm) == before
    assert farm.haproxy_pid == balancer

    # An agent and the master: instances go on.
    (server, *_) = farm.servers()
    pids = farm.task_pids(server["task_id"])
    agent = ground.agent_of(server)
    agent.kill()
    agent.start()
    ground.cluster.restart_master()
    until(lambda: len(ground.cluster.operator.tasks()) == 3)
    farm.until_serving(3)
    assert ids(farm) == before
    assert pids
    assert not any(gone(pid) for pid in pids)

    # An agent that goes for good takes its instance with it; we hear of that before.
    agent.process.send_signal(signal.SIGINT)
    assert agent.wait() == 0
    farm.until(lambda: server["task_id"] not in ids(farm) and len(farm.servers()) == 3)


def test_a_balancer_that_is_killed_is_back_with_its_servers(farm):
    """Who comes while it is not there is refused, and nobody else."""
    farm.up("--min", "2", "--max", "3", *QUICK)
    farm.until_serving(2)
    before, pid = ids(farm), farm.haproxy_pid
    assert pid is not None
    users = Users(farm.port)
    with users.in_background():
        users.per_s = 20
        until(lambda: users.answered > 20)
        assert users.failures == []
        os.kill(pid, signal.SIGKILL)
        farm.until(lambda: farm.status["balancer_restarts"] == 1)
        back_s, answered = time.monotonic(), users.answered
        until(lambda: users.answered > answered + 20)
    assert all(asked_s <= back_s for asked_s in users.failed_s)
    shown = farm.cli("status").out.decode()
    assert re.search(r"started again 1 times; nobody was served for \d", shown)
    # Counters that began anew are no load of zero; and nobody had to be put into it again.
    farm.until_serving(2)
    assert ids(farm) == before
    assert farm.log.count("instance launched") == 2


def test_a_port_in_use_and_a_site_that_is_not_there_are_said_and_cost_nobody(farm, users):
    """The first instance meets a port that is held, wherever it goes.  Sites come by HTTP."""
    good = farm.site("good", "good")
    with contextlib.ExitStack() as held, web_server(farm.directory) as files:
        for number in range(AGENTS):
            one = held.enter_context(socket.socket())
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind((LOOPBACK, FIRST_PORT + number * PORTS_EACH))
            one.listen()
        site = f"{files}/{Path(good).name}"
        farm.up("--max", "1", "--site", site, *QUICK)
        farm.until_serving(1)
        assert farm.log.count("instance launched") == 2
        assert farm.log.count("its port is in use") == 1
        held.close()

        before = ids(farm)
        users.per_s = 20
        broken = farm.cli("deploy", f"{files}/missing.tar.gz")
        assert broken.code == 1
        assert "deployment stopped: web-2-" in broken.err
        assert f"{files}/missing.tar.gz" in broken.err
        assert "404" in broken.err
        refused = farm.cli("deploy", f"{files}/page.html")
        assert refused.code == 1
        assert "must be a directory" in refused.err
        farm.until_serving(1)
        assert ids(farm) == before

        for _ in range(5):
            ended = farm.cli("deploy", site)
            assert ended.code == 0, ended
    assert farm.log.count("port is in use") == 1
    users.stop()
    assert set(users.answers) == {"good"}


async def test_another_server_behind_another_balancer(ground, tmp_path):
    """As docs/webfarm.md says: two small classes."""
    site = tmp_path / "www"
    site.mkdir()
    (site / "index.html").write_text("here")
    state = StateDirectory(tmp_path / "state")
    balancer = ListBalancer()
    wrapper = Wrapper(
        other_settings(ground.cluster.address, f"{site}/"), state, balancer, PythonServer()
    )
    running = asyncio.create_task(wrapper.run())
    try:
        await balancer.until(2)
        before = {slot.at for slot in balancer.opened()}
        for slot in balancer.opened():
            assert await page(slot.address, slot.port) == "here"
        state.make_wish(site=f"{site}/")
        await balancer.until(2, lambda slots: before.isdisjoint(slot.at for slot in slots))
    finally:
        state.make_wish(down=True)
        async with asyncio.timeout(LIMIT_S):
            await running
    assert balancer.closed
    assert state.record() is None
