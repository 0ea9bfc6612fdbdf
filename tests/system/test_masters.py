"""Three masters, ZooKeeper, agents and a framework: whoever goes, the cluster goes on."""

import contextlib

import pytest

from mesos_py.operator import OperatorClient
from mesos_py.states import TASK_KILLED, is_terminal
from mesos_py.v1 import operator_pb2 as op
from tests.kit.cluster import LOOPBACK
from tests.kit.framework import Framework, pid_of
from tests.kit.masters import Masters
from tests.kit.waiting import gone, until

pytestmark = pytest.mark.needs("java")

BACK_SOON = {"registration_backoff": "100ms"}
TRIES, EACH_S = 4, 30.0


@pytest.fixture
def masters(tmp_path):
    with Masters(tmp_path) as made:
        yield made


def long_tasks(framework, *hosts):
    return [framework.run("exec sleep 600", host=host) for host in hosts]


def still_there(masters, framework, running):
    """The tasks are those of before, by their processes, and the leader knows them."""
    until(lambda: all(masters.task(framework.id, each.task_id.value) for each in running))
    for each in running:
        assert not gone(pid_of(each))
        assert set(framework.states(each.task_id.value)) <= {"STARTING", "RUNNING"}


def works(framework, host=""):
    """Offers flow, and a task runs to its end.  What was told to a leader that went just then
    may have come to nothing, and is told to the next one."""
    for _ in range(TRIES):
        task_id = framework.launch("true", host=host)
        with contextlib.suppress(AssertionError):
            framework.seen.wait(lambda _, task=task_id: ended(framework, task), "an end", EACH_S)
            if framework.states(task_id)[-1] == "FINISHED":
                return
    raise AssertionError(f"no task comes to its end: {framework.statuses(task_id)}")


def ended(framework, task_id):
    """True once it has; for `Recorder.wait`."""
    return any(is_terminal(status.state) for status in framework.statuses(task_id)) or None


def end(framework, running):
    for each in running:
        framework.driver.kill_task(each.task_id)
        framework.status(each.task_id.value, TASK_KILLED)


def test_one_master_leads_and_the_others_send_everybody_to_it(masters):
    leader = masters.leader()
    masters.start_agent("a", **BACK_SOON)
    for each in masters.masters:
        answer = masters.ask(each)
        assert answer is not None
        assert answer.leading == (each is leader)
        assert answer.master_info.grpc_port == leader.port
        with OperatorClient(f"{LOOPBACK}:{each.port}") as operator:
            assert [row.agent_info.hostname for row in operator.agents()] == ["a"]
        with Framework(f"{LOOPBACK}:{each.port}") as framework:
            works(framework)


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_when_the_leader_goes_the_next_one_takes_over_and_no_task_is_touched(masters, how):
    masters.start_agents("a", "b", **BACK_SOON)
    with Framework(masters.url) as framework:
        running = long_tasks(framework, "a", "b")
        for count in (1, 2):
            leader, epoch = masters.leader(), masters.epoch()
            getattr(leader, how)()
            masters.wait_for_leader(other_than=leader)
            framework.wait_for("disconnected", count=count)
            framework.wait_for("reregistered", count=count)
            assert masters.epoch() > epoch
            works(framework, "a")
            works(framework, "b")
            still_there(masters, framework, running)
            leader.start()
        end(framework, running)


def test_a_leader_that_stood_still_is_followed_by_another_and_does_nothing_when_it_wakes(masters):
    masters.start_agents("a", "b", **BACK_SOON)
    with Framework(masters.url) as framework:
        running = long_tasks(framework, "a", "b")
        old = masters.leader()
        old.pause()
        masters.wait_for_leader(other_than=old)
        framework.wait_for("reregistered")
        works(framework)
        old.resume()
        until(lambda: "not leading any more" in old.log)
        assert masters.leader() is not old
        works(framework)
        still_there(masters, framework, running)
        assert "unreachable" not in {row.state for row in masters.operator.agents()}
        end(framework, running)


def test_without_zookeeper_nothing_is_decided_and_afterwards_all_goes_on(masters):
    masters.start_agent("a", **BACK_SOON)
    with Framework(masters.url) as framework:
        running = long_tasks(framework, "a")
        leader = masters.leader()
        masters.zookeeper.kill()
        until(lambda: "leadership in doubt" in leader.log or "not leading any more" in leader.log)
        until(lambda: "not leading any more" in leader.log)
        assert masters.leaders() == []
        masters.zookeeper.start()
        masters.wait_for_leader()
        framework.wait_for("reregistered")
        works(framework)
        still_there(masters, framework, running)
        end(framework, running)


def test_masters_are_replaced_one_after_the_other_under_running_tasks(masters):
    masters.start_agents("a", "b", **BACK_SOON)
    with Framework(masters.url) as framework:
        running = long_tasks(framework, "a", "b")
        for each in masters.masters:
            assert each.stop() == 0
            masters.wait_for_leader(other_than=each)
            each.start()
            works(framework)
        still_there(masters, framework, running)
        end(framework, running)


def test_what_an_operator_was_told_is_known_to_every_later_leader(masters):
    call = op.Call(type=op.Call.UPDATE_WEIGHTS)
    call.update_weights.weight_infos.add(role="web", weight=2.5)
    masters.operator.execute(call)
    for _ in range(2):
        leader = masters.leader()
        leader.kill()
        masters.wait_for_leader(other_than=leader)
        answer = masters.operator.execute(op.Call(type=op.Call.GET_WEIGHTS))
        assert [(w.role, w.weight) for w in answer.get_weights.weight_infos] == [("web", 2.5)]
        leader.start()


def test_without_zookeeper_a_leader_that_is_asked_to_end_does_so_within_ten_seconds(masters):
    leader = masters.leader()
    masters.zookeeper.kill()
    leader.process.terminate()
    assert leader.process.wait(30) == 0  # beyond this, supervisors kill
    masters.zookeeper.start()
    masters.wait_for_leader(other_than=leader)


def test_servers_of_zookeeper_are_replaced_one_after_the_other_under_running_tasks(tmp_path):
    with Masters(tmp_path, count=2, servers=3) as masters:
        masters.start_agent("a", **BACK_SOON)
        with Framework(masters.url) as framework:
            running = long_tasks(framework, "a")
            servers = masters.zookeeper.servers
            last = masters.zookeeper.leader()
            for server in [*(each for each in servers if each is not last), last]:
                server.kill()
                server.start()
                until(server.serves)
                masters.wait_for_leader()
                works(framework)
            still_there(masters, framework, running)
            end(framework, running)
