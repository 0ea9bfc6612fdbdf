"""Which of several things a text means."""

import pytest

from mesos_py.cli.names import Named, resolve, short_ids, tail
from mesos_py.errors import Conflict, NotFound

THINGS = [
    Named("aaaa-0000", "web", "old"),
    Named("aaaa-0001", "batch"),
    Named("bbbb-0001", "web2"),
    Named("bbbb-0002", "aaaa-0001"),
]


def meant(text: str) -> str:
    return resolve("framework", text, THINGS, lambda each: each).id


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("aaaa-0000", "aaaa-0000"),
        ("web", "aaaa-0000"),
        ("0002", "bbbb-0002"),
        ("bbbb-0002", "bbbb-0002"),
    ],
)
def test_an_id_a_name_and_a_tail_are_understood(text, full):
    assert meant(text) == full


def test_an_id_counts_before_a_name_that_looks_like_it():
    assert meant("aaaa-0001") == "aaaa-0001"


def test_a_name_counts_before_the_beginning_of_an_id():
    things = [Named("web-1", "x"), Named("y", "web")]
    assert resolve("task", "web", things, lambda each: each).id == "y"


def test_a_beginning_that_only_one_id_has_is_enough():
    things = [Named("run-abc", ""), Named("run-xyz", "")]
    assert resolve("task", "run-x", things, lambda each: each).id == "run-xyz"


def test_several_are_listed_and_none_is_taken():
    with pytest.raises(Conflict) as caught:
        meant("aaaa-")
    assert str(caught.value) == "framework 'aaaa-' means 2: aaaa-0000 (old), aaaa-0001"


def test_a_tail_that_two_have_is_ambiguous():
    with pytest.raises(Conflict, match="aaaa-0001, bbbb-0001"):
        meant("0001")


def test_of_very_many_only_some_are_listed():
    things = [Named(f"t{n}", "x") for n in range(100)]
    with pytest.raises(Conflict, match=r"and 92 more$"):
        resolve("task", "x", things, lambda each: each)


@pytest.mark.parametrize("text", ["zzz", ""])
def test_what_nobody_has_is_not_found(text):
    with pytest.raises(NotFound, match="framework"):
        meant(text)


def test_ids_are_shown_short_only_where_that_is_unique():
    assert short_ids(["a-S0", "b-S0", "b-S1"]) == {"a-S0": "a-S0", "b-S0": "b-S0", "b-S1": "S1"}


def test_an_id_without_a_dash_is_its_own_tail():
    assert tail("x") == "x"
