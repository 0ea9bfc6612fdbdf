import pytest

from frameworks.torque.cluster import limit_of, node_name
from frameworks.torque.core.records import Size
from frameworks.torque.engine import Census
from mesos_py import (
    TASK_DROPPED,
    TASK_FAILED,
    TASK_KILLED,
    TASK_LOST,
    TASK_RUNNING,
    MesosPyError,
    Resources,
)
from mesos_py.v1.types_pb2 import Role
from tests.kit.torque_fakes import Scene


@pytest.fixture
def scene(tmp_path) -> Scene:
    return Scene(tmp_path)


def test_without_jobs_nothing_is_wanted(scene):
    scene.offer()
    scene.round()
    assert not scene.cluster.wants
    assert scene.cluster.declined == ["offer-1"]
    assert scene.cluster.launched == []


def test_a_job_has_a_node_started_that_fits(scene):
    scene.batch.submit("1", cpus=2, mem_mb=300)
    scene.round()
    assert scene.cluster.wants
    assert [str(need.resources) for need in scene.cluster.waiting] == ["cpus:2;mem:310"]
    scene.offer()
    scene.round()
    (task,) = scene.cluster.launched
    assert task.task_id.value == "a-n1"
    assert Resources.from_proto("task", task.resources) == Resources.of(cpus=2, mem=310)
    assert list(scene.book.nodes) == ["a-n1"]
    # The node is on its way: nothing more is wanted.
    scene.round()
    assert not scene.cluster.wants
    assert scene.cluster.waiting == []


def test_offers_that_do_together_are_had_together(scene):
    """One comes when the other has just been refused."""
    scene.batch.submit("1", nodes=2, cpus=2)
    scene.round()
    scene.offer("a", cpus=2)
    scene.round()
    scene.round(after_s=3.0)
    assert scene.cluster.declined == ["offer-1"]
    revived = scene.cluster.revived
    scene.offer("b", cpus=2)
    assert scene.cluster.revived == revived + 1
    scene.offer("a", cpus=2)
    assert scene.cluster.revived == revived + 1
    scene.round()
    assert [task.agent_id.value for task in scene.cluster.launched] == ["b", "a"]


def test_where_time_is_short_only_jobs_go_that_end_before(scene):
    scene.batch.submit("1", walltime_s=600.0)
    scene.round()
    scene.offer(most_s=610)
    scene.round()
    assert scene.cluster.launched == []
    scene.offer(most_s=620)
    scene.round()
    assert scene.batch.lives == {"a-n1": 600.0}
    # Where that cannot be seen to, such offers are of no use.
    scene.batch.keeps_time = False
    scene.batch.submit("2", cpus=3, walltime_s=1.0)
    scene.round()
    scene.offer(most_s=620)
    scene.round()
    assert len(scene.cluster.launched) == 1


def test_idle_nodes_are_drained_before_they_are_ended(scene):
    name = scene.idle_node()
    scene.round(after_s=9.0)
    assert scene.batch.known[name].state == "up"
    scene.round(after_s=1.0)
    assert scene.batch.known[name].state == "draining"
    assert scene.cluster.killed == []
    scene.round()
    assert scene.cluster.killed == [name]
    scene.round()
    assert scene.cluster.killed == [name]
    scene.killed(name)
    scene.round()
    assert scene.batch.lost == [name]
    assert scene.book.nodes == {}
    assert scene.engine.view.nodes == []


def test_a_job_that_slips_in_is_not_killed(scene):
    name = scene.idle_node()
    scene.batch.submit("2")
    scene.batch.runs("2", name)
    scene.batch.change(name, state="draining")
    scene.round(after_s=60.0)
    assert scene.cluster.killed == []
    scene.batch.ends("2", name)
    scene.round()
    assert scene.cluster.killed == [name]


def test_a_node_that_is_being_drained_is_taken_back_for_a_job(scene):
    name = scene.node()
    scene.batch.runs("1", name)
    scene.batch.change(name, state="draining")
    scene.round()
    scene.batch.submit("2")
    scene.round()
    assert scene.batch.known[name].state == "up"
    assert scene.cluster.killed == []


def test_a_drain_that_the_server_has_forgotten_is_said_again(scene):
    name = scene.idle_node()
    scene.round(after_s=10.0)
    scene.batch.change(name, state="up")
    scene.round()
    assert scene.batch.known[name].state == "draining"


def test_a_node_for_which_a_job_waits_is_not_idle(scene):
    name = scene.idle_node()
    scene.batch.submit("2")
    scene.round(after_s=60.0)
    assert scene.batch.known[name].state == "up"


def test_the_least_number_of_nodes_is_there_without_jobs(tmp_path):
    scene = Scene(tmp_path, min_nodes=2)
    scene.round()
    scene.offer("a")
    scene.offer("b")
    scene.round()
    assert len(scene.cluster.launched) >= 1
    for task in scene.cluster.launched:
        scene.batch.comes(task.task_id.value)
    for _ in range(3):
        scene.round(after_s=30.0)
    assert scene.cluster.killed == []


def test_nothing_beyond_the_guaranteed_share(scene):
    scene.cluster.share = Resources.of(cpus=1, mem=1000)
    scene.batch.submit("1", cpus=1)
    scene.batch.submit("2", cpus=1)
    scene.round()
    scene.offer()
    scene.round()
    assert [task.task_id.value for task in scene.cluster.launched] == ["a-n1"]
    assert "0 cpus and 890 MB of the guaranteed share are left" in scene.engine.view.waits_for


def test_with_nothing_guaranteed_nothing_is_started(scene):
    scene.cluster.share = Resources()
    scene.batch.submit("1")
    scene.round()
    scene.offer()
    scene.round()
    assert scene.cluster.launched == []
    assert "role * has none" in scene.engine.view.waits_for


def test_who_waits_is_told_what_for(scene):
    """What the master has found, as long as there is one."""
    scene.batch.submit("1")
    scene.round()
    assert scene.engine.wants_census
    assert scene.engine.view.waits_for == "offers that are large enough"
    scene.engine.census = Census([Size(4, 4000)], None, ["role *: its limit of cpus:2 is reached"])
    scene.round()
    assert scene.engine.view.waits_for == "role *: its limit of cpus:2 is reached"
    scene.engine.unlinked()
    scene.round()
    assert scene.engine.view.waits_for == "a master: there is no link to one"
    assert not scene.engine.wants_census


def test_the_master_is_asked_again_for_jobs_that_cannot_run(scene):
    scene.engine.census = Census([Size(1, 4000)])
    scene.batch.submit("1", cpus=2)
    scene.round()
    assert list(scene.engine.view.never) == ["1"]
    assert scene.engine.wants_census


def role(name: str, **limits: float) -> Role:
    made = Role(name=name)
    for resource, amount in limits.items():
        made.policy.limits[resource].value = amount
    return made


@pytest.mark.parametrize(
    ("roles", "limit"),
    [
        ([role("a/b"), role("*", cpus=1), role("a/bc", cpus=1)], None),
        ([role("a/b", cpus=4.5, mem=100)], Size(4, 100)),
        ([role("a/b", cpus=4), role("a", cpus=3, mem=10)], Size(3, 10)),
    ],
)
def test_a_role_is_limited_by_those_above_it(roles, limit):
    assert limit_of("a/b", roles) == limit


def test_beyond_the_guarantee_when_told_so(tmp_path):
    scene = Scene(tmp_path, beyond_guarantee=True)
    scene.cluster.share = Resources()
    scene.batch.submit("1")
    scene.round()
    scene.offer()
    scene.round()
    assert len(scene.cluster.launched) == 1


def test_a_job_that_can_never_run_is_told_and_starts_nothing(scene):
    scene.engine.census = Census([Size(4, 4000)])
    scene.batch.submit("1", cpus=5)
    scene.round()
    assert not scene.cluster.wants
    why = "asks for 5 cpus on a node, the largest agent has 4"
    assert scene.batch.notes == {"1": f"mesos-py: {why}"}
    assert scene.engine.view.never == {"1": why}
    # A larger agent comes.
    scene.engine.census = Census()
    scene.round()
    assert scene.batch.notes == {"1": ""}
    assert scene.cluster.wants


def test_notes_of_others_are_left_alone(scene):
    scene.batch.submit("1")
    scene.batch.tell("1", "ask me before you hold it")
    scene.round()
    assert scene.batch.notes == {"1": "ask me before you hold it"}


@pytest.mark.parametrize("state", [TASK_LOST, TASK_FAILED, TASK_DROPPED])
def test_a_node_whose_task_has_ended_is_lost_once(scene, state):
    name = scene.node()
    scene.batch.runs("1", name)
    scene.status(name, state)
    scene.status(name, state)
    scene.round()
    scene.round()
    assert scene.batch.lost == [name]
    assert scene.book.nodes == {}


def test_where_nodes_die_at_once_there_is_a_pause(scene):
    scene.batch.submit("1")
    scene.round()
    for number in range(1, 30):
        scene.offer()
        scene.round()
        if len(scene.cluster.launched) == number:
            scene.status(f"a-n{number}", TASK_FAILED)
        else:
            break
    assert len(scene.cluster.launched) <= 3
    assert "nodes have failed one after the other" in scene.engine.view.waits_for
    assert not scene.cluster.wants


def test_a_node_that_does_not_come_in_time_is_given_up(scene):
    scene.batch.submit("1")
    scene.round()
    scene.offer()
    scene.round()
    scene.round(after_s=19.0)
    assert scene.cluster.killed == []
    scene.round(after_s=1.0)
    assert scene.cluster.killed == ["a-n1"]


def test_a_node_that_the_server_does_not_hear_any_more_is_ended(scene):
    name = scene.node()
    scene.batch.change(name, state="down")
    scene.round()
    scene.round(after_s=19.0)
    assert scene.cluster.killed == []
    scene.round(after_s=1.0)
    assert scene.cluster.killed == [name]


def test_the_next_wrapper_goes_on_with_what_is_there(scene):
    name = scene.node()
    scene.batch.runs("1", name)
    scene.restart()
    assert scene.book.framework_id == "framework-1"
    # All that the master knows, and each one by name.
    scene.round()
    assert scene.cluster.asked == [[], [(name, "a")]]
    scene.status(name, TASK_RUNNING)
    scene.round()
    assert scene.batch.lost == []
    assert [view.phase for view in scene.engine.view.nodes] == ["serving"]
    # Numbers are not used again.
    scene.batch.submit("2", cpus=3)
    scene.round()
    scene.offer("b")
    scene.round()
    assert [task.task_id.value for task in scene.cluster.launched] == ["b-n2"]


def test_a_launch_that_was_never_made_is_forgotten(scene):
    """The wrapper was killed between the book and the launch."""
    scene.batch.submit("1")
    scene.round()
    scene.offer()
    scene.round()
    scene.restart()
    scene.round()
    scene.status("a-n1", TASK_LOST)
    scene.round()
    assert scene.book.nodes == {}
    assert scene.cluster.wants


def test_who_is_not_heard_of_is_asked_for_again(scene):
    scene.node()
    scene.restart()
    scene.round()
    scene.round(after_s=10.0)
    scene.round(after_s=5.0)
    assert len(scene.cluster.asked) == 3


def test_a_task_that_is_no_node_is_killed(scene):
    scene.status("stray", TASK_RUNNING)
    assert scene.cluster.killed == ["stray"]
    scene.status("stray", TASK_KILLED)
    scene.round()


def test_a_node_without_a_task_is_removed(scene):
    scene.batch.registered["old-n7"] = Size(1, 1)
    scene.batch.comes("old-n7")
    scene.round()
    assert scene.batch.lost == ["old-n7"]


def test_a_server_that_has_ended_is_started_again_but_not_in_a_loop(scene):
    scene.batch.is_alive = False
    scene.batch.broken = "no space left"
    scene.round()
    scene.round(after_s=0.1)
    assert scene.batch.starts == 1
    assert scene.engine.view.problem == "no space left"
    scene.batch.broken = ""
    scene.round(after_s=2.0)
    assert scene.batch.starts == 2
    scene.round()
    assert scene.engine.view.problem == ""


def test_a_server_that_does_not_answer_costs_a_round(scene):
    scene.batch.broken = "Unable to contact slurm controller"
    scene.round()
    assert scene.engine.view.problem == "Unable to contact slurm controller"
    assert scene.batch.starts == 0


def test_a_new_subscription_makes_offers_void(scene):
    scene.batch.submit("1")
    scene.round()
    scene.offer()
    scene.engine.subscribed("framework-1", scene.now_s)
    scene.round()
    assert scene.cluster.launched == []
    assert scene.cluster.wants


@pytest.mark.parametrize("come_first", [True, False])
@pytest.mark.parametrize("after_s", [0.2, 3.0])
def test_nodes_that_die_at_once_are_not_started_in_a_loop(scene, after_s, come_first):
    """Whatever agents they are on, and also if they are there for a moment."""
    scene.batch.submit("1")
    began_s = scene.now_s
    while scene.now_s < began_s + 300:
        scene.offer("abc"[len(scene.cluster.launched) % 3])
        before = len(scene.cluster.launched)
        scene.round(after_s)
        for task in scene.cluster.launched[before:]:
            if come_first:
                scene.batch.comes(task.task_id.value)
                scene.round(0.1)
            scene.status(task.task_id.value, TASK_FAILED)
    # At 0, 2, 6, 14, 30, 62, 126 s and then every 2 min.
    assert 7 <= len(scene.cluster.launched) <= 8


def test_a_damaged_book_is_an_error(scene):
    scene.path.write_text('{"framework_id": "x"')
    with pytest.raises(MesosPyError, match="is damaged"):
        scene.restart()


@pytest.mark.parametrize(
    ("hostname", "name"),
    [
        ("node7", "node7-n1"),
        ("Node7.example.org", "node7-n1"),
        ("127.0.1.1", "host-n1"),
        ("my_host--x.", "my-host-x-n1"),
        ("", "host-n1"),
        ("x" * 80, f"{'x' * 30}-n1"),
    ],
)
def test_names_of_nodes(hostname, name):
    assert node_name(hostname, 1) == name
