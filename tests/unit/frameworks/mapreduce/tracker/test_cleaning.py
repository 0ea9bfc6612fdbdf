"""Who must still remove an ended job's files, and how it is got to do so."""

from __future__ import annotations

from frameworks.mapreduce.tracker.cleaning import (
    TELL_EVERY_S,
    Cleaning,
    Command,
    Done,
    Spot,
    Tell,
)

JOB = "job_1_0001"
HERE = ("a1", "w1")
THERE = ("a2", "w2")
LIMIT_S = 60.0


class World:
    def __init__(self, *living: Spot) -> None:
        self.living = set(living)
        self.cleaning = Cleaning(lambda spot: spot in self.living, "7", LIMIT_S)

    def begin(self, *spots: Spot) -> None:
        self.cleaning.begin(JOB, {spot: f"host-{spot[0]}" for spot in spots}, 0.0)


def test_a_worker_is_told_until_it_has_answered():
    world = World(HERE)
    world.begin(HERE)
    # The brain has it told at first.
    assert world.cleaning.due(0.0) == []
    assert world.cleaning.next_s() == TELL_EVERY_S
    assert world.cleaning.due(TELL_EVERY_S) == [Tell(*HERE, JOB)]
    assert world.cleaning.due(TELL_EVERY_S + 1) == []
    assert world.cleaning.due(2 * TELL_EVERY_S) == [Tell(*HERE, JOB)]
    world.cleaning.forgotten(HERE, JOB)
    assert world.cleaning.due(5.0) == [Done(JOB, 1, {})]
    assert not world.cleaning.busy
    # An answer that comes twice, or of a job of before, is nothing.
    world.cleaning.forgotten(HERE, JOB)
    assert world.cleaning.due(6.0) == []


def test_a_job_that_left_nothing_is_done_at_once():
    world = World()
    world.begin()
    assert world.cleaning.due(0.0) == [Done(JOB, 0, {})]


def test_where_the_worker_is_gone_a_command_does_it():
    world = World(THERE)
    world.begin(HERE, THERE)
    assert world.cleaning.due(TELL_EVERY_S) == [Tell(*THERE, JOB)]
    assert world.cleaning.wants_room() == {"a1"}
    assert world.cleaning.commands("a2", 5) == []
    assert world.cleaning.commands("a1", 0) == []
    [command] = world.cleaning.commands("a1", 5)
    assert command == Command(f"clean_{JOB}_7_1", "w1", JOB)
    # It runs: no other one is wanted.
    assert world.cleaning.wants_room() == set()
    assert world.cleaning.commands("a1", 5) == []
    world.cleaning.task_ended(command.task_id, "")
    world.cleaning.forgotten(THERE, JOB)
    assert world.cleaning.due(TELL_EVERY_S) == [Done(JOB, 2, {})]


def test_a_command_that_failed_is_tried_again_and_named_in_the_end():
    world = World()
    world.begin(HERE)
    for number in (1, 2):
        [command] = world.cleaning.commands("a1", 5)
        assert command.task_id == f"clean_{JOB}_7_{number}"
        world.cleaning.task_ended(command.task_id, "exit code 1")
        world.cleaning.task_ended(command.task_id, "exit code 1")
    assert world.cleaning.due(LIMIT_S - 1) == []
    assert world.cleaning.due(LIMIT_S) == [Done(JOB, 0, {"host-a1": "exit code 1"})]


def test_a_worker_that_dies_without_an_answer_is_followed_by_a_command():
    world = World(HERE)
    world.begin(HERE)
    world.cleaning.due(0.0)
    world.living.clear()
    assert world.cleaning.due(1.0) == []
    assert world.cleaning.wants_room() == {"a1"}


def test_what_cannot_be_done_is_left_and_said():
    world = World(THERE)
    world.begin(HERE, THERE, ("a3", "w3"))
    world.cleaning.agent_lost("a3")
    world.cleaning.due(0.0)
    [done] = [each for each in world.cleaning.due(LIMIT_S) if isinstance(each, Done)]
    assert done.cleaned == 0
    assert done.left == {
        "host-a1": "no room for a command in time",
        "host-a2": "no answer in time",
        "host-a3": "the agent is gone",
    }


def test_two_workers_of_one_agent_are_two_places():
    world = World(("a1", "w2"))
    world.begin(("a1", "w1"), ("a1", "w2"))
    assert world.cleaning.due(TELL_EVERY_S) == [Tell("a1", "w2", JOB)]
    assert len(world.cleaning.commands("a1", 5)) == 1
