import pytest

from frameworks.common.commits import Commits
from mesos_py.errors import InternalError


def test_the_first_that_asks_is_the_one_and_stays_it():
    commits = Commits()
    assert commits.choose(7, 1)
    assert not commits.choose(7, 0)
    assert commits.choose(7, 1)
    assert commits.unconfirmed() == [(7, 1)]
    assert commits.confirm(7, 1)
    assert not commits.confirm(7, 1)
    assert not commits.choose(7, 2)
    assert (commits.unconfirmed(), commits.confirmed_count, commits.chosen_count) == ([], 1, 1)


def test_only_the_chosen_attempt_can_be_confirmed():
    commits = Commits()
    with pytest.raises(InternalError):
        commits.confirm(7, 1)
    commits.choose(7, 1)
    with pytest.raises(InternalError):
        commits.confirm(7, 2)
    assert not commits.confirmed(7)


def test_a_void_choice_leaves_room_for_another_one():
    commits = Commits()
    commits.choose(7, 1)
    commits.confirm(7, 1)
    assert not commits.void(7, 0)
    assert commits.void(7, 1)
    assert not commits.void(7, 1)
    assert commits.chosen(7) is None
    assert commits.choose(7, 2)
    assert not commits.confirmed(7)
