"""The job of `run`: what it launches, what it makes of statuses, how it ends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesos_py.cli.running.job import Heard, Job, Spec, Stage
from mesos_py.resources import Resources
from mesos_py.v1.types_pb2 import (
    TASK_DROPPED,
    TASK_ERROR,
    TASK_FAILED,
    TASK_FINISHED,
    TASK_KILLED,
    TASK_LOST,
    TASK_RUNNING,
    TASK_STARTING,
    CommandInfo,
    Environment,
    HealthCheck,
    Offer,
    TaskStatus,
)


def job(**spec) -> Job:
    return Job(
        Spec(
            **{
                "name": "work",
                "ids": "work-abc",
                "command": CommandInfo(value="true"),
                "each": Resources.parse("cpus:1;mem:100"),
                **spec,
            }
        )
    )


def offer(number: int, resources: str = "cpus:4;mem:1000;ports:[1-10]") -> Offer:
    made = Offer(hostname=f"host{number}", resources=Resources.parse(resources).to_proto())
    made.id.value = f"O{number}"
    made.agent_id.value = f"S{number}"
    return made


def status(task_id: str, state, **fields) -> TaskStatus:
    made = TaskStatus(state=state, source=TaskStatus.SOURCE_EXECUTOR, **fields)
    made.task_id.value = task_id
    return made


def hear(work: Job, news: TaskStatus) -> Heard:
    heard = work.on_status(news)
    assert heard is not None
    return heard


def gone(task_id: str, state=TASK_DROPPED) -> TaskStatus:
    made = status(task_id, state, reason=TaskStatus.REASON_INVALID_OFFERS)
    made.source = TaskStatus.SOURCE_MASTER
    return made


def launch(work: Job, *offers: Offer) -> list[str]:
    """Offer, and return the ids of what was launched."""
    answers = work.on_offers(offers or [offer(n) for n in range(3)])
    return [task.task_id.value for answer in answers for task in answer.tasks]


def environment(task) -> dict[str, str]:
    return {each.name: each.value for each in task.command.environment.variables}


# --- offers -------------------------------------------------------------------


def test_one_instance_takes_one_offer_and_declines_the_others():
    answers = job().on_offers([offer(0), offer(1)])
    assert [len(answer.tasks) for answer in answers] == [1, 0]
    (task,) = answers[0].tasks
    assert (task.name, task.task_id.value, task.agent_id.value) == ("work", "work-abc", "S0")
    assert Resources.from_proto("r", task.resources) == Resources.parse("cpus:1;mem:100")


def test_instances_are_spread_over_the_offers():
    answers = job(instances=5).on_offers([offer(0), offer(1), offer(2)])
    assert [len(answer.tasks) for answer in answers] == [2, 2, 1]


def test_what_does_not_fit_waits():
    work = job(instances=5)
    assert len(launch(work, offer(0, "cpus:2;mem:1000"))) == 2
    assert len(work.waiting) == 3
    assert work.wants() == [("work", Resources.parse("cpus:1;mem:100"), 3)]
    assert len(launch(work, offer(1), offer(2))) == 3
    assert work.wants() == []


def test_an_offer_too_small_in_one_resource_is_declined():
    assert launch(job(), offer(0, "cpus:9;mem:99"), offer(1, "cpus:0.9;mem:999")) == []


def test_room_for_short_tasks_is_declined():
    kept = offer(0)
    kept.max_task_duration.nanoseconds = 1
    answers = job(instances=2).on_offers([kept, offer(1)])
    assert [len(answer.tasks) for answer in answers] == [0, 2]


def test_ports_are_distinct_and_told():
    answers = job(instances=2, ports=2).on_offers([offer(0, "cpus:4;mem:1000;ports:[5-9]")])
    first, second = answers[0].tasks
    assert environment(first)["PORTS"] == "5,6"
    assert environment(second)["PORTS"] == "7,8"
    assert (environment(first)["PORT"], environment(first)["PORT1"]) == ("5", "6")
    held = Resources.from_proto("r", second.resources)
    assert held == Resources.parse("cpus:1;mem:100;ports:[7-8]")


def test_an_offer_with_too_few_ports_is_declined():
    assert launch(job(ports=3), offer(0, "cpus:4;mem:1000;ports:[5-6]")) == []


def test_an_instance_knows_its_number():
    answers = job(instances=2).on_offers([offer(0)])
    assert [environment(task)["MESOS_PY_INSTANCE"] for task in answers[0].tasks] == ["0", "1"]
    assert {environment(task)["MESOS_PY_INSTANCES"] for task in answers[0].tasks} == {"2"}
    assert [task.name for task in answers[0].tasks] == ["work.0", "work.1"]


def test_the_users_own_variables_win():
    mine = Environment.Variable(name="PORT", value="mine")
    command = CommandInfo(value="x", environment=Environment(variables=[mine]))
    answers = job(command=command, ports=1).on_offers([offer(0)])
    variables = answers[0].tasks[0].command.environment.variables
    assert [each.value for each in variables if each.name == "PORT"] == ["mine"]


@given(
    instances=st.integers(1, 30),
    rooms=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 600)), max_size=8),
)
def test_no_offer_is_ever_overdrawn_and_no_room_is_wasted(instances, rooms):
    work = job(instances=instances, each=Resources.of(cpus=0.66, mem=70))
    offers = [offer(n, f"cpus:{cpus + 0.01};mem:{mem + 1}") for n, (cpus, mem) in enumerate(rooms)]
    for answer in work.on_offers(offers):
        left = Resources.from_proto("o", answer.offer.resources)
        for task in answer.tasks:
            left = left - Resources.from_proto("t", task.resources)
        assert not work.waiting or not left.contains(work.spec.each)
    assert len(work.live) + len(work.waiting) == instances


# --- how it ends --------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "fields", "code"),
    [
        (TASK_FINISHED, {"exit_status": {"exit_code": 0}}, 0),
        (TASK_FINISHED, {}, 0),
        (TASK_FAILED, {"exit_status": {"exit_code": 3}}, 3),
        (TASK_FAILED, {"exit_status": {"signal": 9}}, 137),
        (TASK_FAILED, {}, 1),
        (TASK_KILLED, {"exit_status": {"signal": 15}}, 143),
        (TASK_KILLED, {"exit_status": {"exit_code": 0}}, 143),
        (TASK_KILLED, {"exit_status": {"exit_code": 7}}, 7),
        (TASK_KILLED, {}, 143),
        (TASK_LOST, {}, 4),
        (TASK_ERROR, {}, 4),
    ],
)
def test_the_code_of_a_task_that_ran(state, fields, code):
    work = job()
    launch(work)
    work.on_status(status("work-abc", TASK_RUNNING))
    work.on_status(status("work-abc", state, **fields))
    assert work.done
    assert work.exit_code == code


@pytest.mark.parametrize("state", [TASK_FAILED, TASK_KILLED, TASK_LOST, TASK_ERROR])
def test_a_task_that_never_ran_has_code_4(state):
    work = job()
    launch(work)
    work.on_status(status("work-abc", TASK_STARTING))
    work.on_status(status("work-abc", state, message="no such user"))
    assert (work.done, work.exit_code) == (True, 4)
    assert work.instances[0].why.endswith(": no such user")


def test_of_several_the_first_that_is_not_zero_counts():
    work = job(instances=4)
    ids = launch(work)
    by_index = {int(each.rpartition("-")[2]): each for each in ids}
    for index, code in ((3, 9), (0, 0), (2, 5), (1, 7)):
        assert not work.done
        state = TASK_FAILED if code else TASK_FINISHED
        work.on_status(status(by_index[index], state, exit_status={"exit_code": code}))
    assert (work.done, work.exit_code) == (True, 7)


def test_the_same_end_heard_twice_counts_once():
    work = job(instances=2)
    first, second = launch(work)
    for _ in range(3):
        work.on_status(status(first, TASK_FINISHED))
    assert not work.done
    work.on_status(status(second, TASK_FINISHED))
    assert work.done


def test_an_end_is_not_undone_by_late_news():
    work = job()
    launch(work)
    work.on_status(status("work-abc", TASK_FINISHED))
    assert work.on_status(status("work-abc", TASK_RUNNING)) is None
    assert work.on_status(status("work-abc", TASK_FAILED)) is None
    assert (work.done, work.exit_code) == (True, 0)


def test_news_of_foreign_tasks_is_nothing():
    assert job().on_status(status("other", TASK_FINISHED)) is None


# --- again --------------------------------------------------------------------


def test_a_preempted_task_is_launched_again_and_costs_no_retry():
    work = job()
    preempted = {"reason": TaskStatus.REASON_CONTAINER_PREEMPTED, "message": "Preempted: for B"}
    for _ in range(3):
        (task_id,) = launch(work)
        work.on_status(status(task_id, TASK_RUNNING))
        heard = hear(work, status(task_id, TASK_KILLED, **preempted))
        assert heard.again
        assert heard.instance.attempt == 0
    (task_id,) = launch(work)
    assert not hear(work, status(task_id, TASK_KILLED)).again


def test_a_preempted_task_of_a_run_that_was_given_up_stays_ended():
    work = job()
    (task_id,) = launch(work)
    work.give_up(130)
    reason = TaskStatus.REASON_CONTAINER_PREEMPTED
    assert not hear(work, status(task_id, TASK_KILLED, reason=reason)).again
    assert work.done


@pytest.mark.parametrize("state", [TASK_DROPPED, TASK_LOST])
def test_an_offer_that_was_gone_costs_no_retry(state):
    work = job()
    for _ in range(5):
        (task_id,) = launch(work)
        assert hear(work, gone(task_id, state)).again
    assert work.instances[0].attempt == 0
    (task_id,) = launch(work)
    work.on_status(status(task_id, TASK_FINISHED))
    assert work.exit_code == 0


def test_each_launch_has_an_id_of_its_own():
    work = job()
    (first,) = launch(work)
    work.on_status(gone(first))
    (second,) = launch(work)
    assert first != second


def test_a_task_lost_after_it_ran_is_not_taken_for_one_that_never_started():
    work = job()
    (task_id,) = launch(work)
    work.on_status(status(task_id, TASK_RUNNING))
    lost = gone(task_id, TASK_LOST)
    lost.reason = TaskStatus.REASON_AGENT_REMOVED
    assert not hear(work, lost).again
    assert work.exit_code == 4


def test_retries_are_counted_and_the_last_attempt_decides():
    work = job(retries=2)
    codes: list[int] = []
    while not work.done:
        (task_id,) = launch(work)
        codes.append(len(codes) + 5)
        work.on_status(status(task_id, TASK_FAILED, exit_status={"exit_code": codes[-1]}))
    assert (codes, work.exit_code) == ([5, 6, 7], 7)


def test_a_retry_that_succeeds_is_a_success():
    work = job(retries=1)
    (first,) = launch(work)
    assert hear(work, status(first, TASK_FAILED)).again
    (second,) = launch(work)
    work.on_status(status(second, TASK_FINISHED))
    assert work.exit_code == 0


@pytest.mark.parametrize("state", [TASK_FINISHED, TASK_KILLED, TASK_ERROR])
def test_what_was_wanted_or_cannot_be_is_not_retried(state):
    work = job(retries=9)
    (task_id,) = launch(work)
    assert not hear(work, status(task_id, state)).again
    assert work.done


def test_a_lost_task_that_comes_back_after_its_replacement_is_a_stray():
    work = job(retries=1)
    (first,) = launch(work)
    work.on_status(status(first, TASK_LOST))
    launch(work)
    back = status(first, TASK_RUNNING)
    assert work.is_stray(back)
    assert work.on_status(back) is None
    assert not work.is_stray(status(first, TASK_FINISHED))
    assert not work.is_stray(status("other", TASK_RUNNING))


# --- giving up ----------------------------------------------------------------


def test_giving_up_kills_what_lives_and_forgets_what_waits():
    work = job(instances=3)
    ids = launch(work, offer(0, "cpus:2;mem:1000"))
    live = work.give_up(130)
    assert [each.task_id for each in live] == ids
    assert work.waiting == []
    assert launch(work) == []
    for task_id in ids:
        work.on_status(status(task_id, TASK_KILLED))
    assert (work.done, work.exit_code) == (True, 130)


def test_a_task_that_was_killed_for_its_health_is_tried_again():
    work = job(retries=1, health=HealthCheck(type=HealthCheck.TCP))
    (answer,) = work.on_offers([offer(0)])
    assert answer.tasks[0].health_check.type == HealthCheck.TCP
    assert hear(work, status(work.instances[0].task_id, TASK_KILLED, healthy=False)).again


def test_given_up_means_no_more_retries():
    work = job(retries=5)
    (task_id,) = launch(work)
    work.give_up(124)
    assert not hear(work, status(task_id, TASK_FAILED)).again
    assert work.exit_code == 124


def test_the_first_reason_to_give_up_counts():
    work = job()
    work.give_up(124)
    work.give_up(130)
    assert (work.done, work.exit_code) == (True, 124)


def test_stages_are_counted():
    work = job(instances=3)
    first, second = launch(work, offer(0, "cpus:2;mem:1000"))
    work.on_status(status(first, TASK_RUNNING))
    work.on_status(status(second, TASK_FINISHED))
    assert work.counts() == {"waiting": 1, "launched": 0, "running": 1, "ended": 1}
    assert work.instances[0].stage is Stage.RUNNING
