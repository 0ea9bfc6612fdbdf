"""Objects that are put together from texts."""

import json
from typing import Any

import pytest

from mesos_py.http.shapes import amounts, joined, pieces, text
from mesos_py.resources import Resources

LISTS: list[dict[str, list[Any]]] = [
    {},
    {"a": []},
    {"a": [1, {"b": None}], "b": []},
    {"a": [[]], "b": ["x", "ü"], "c": [3]},
]


@pytest.mark.parametrize("lists", LISTS)
@pytest.mark.parametrize("head", [{}, {"h": 1, "i": [2]}])
def test_joined_it_is_the_object(head: dict[str, Any], lists: dict[str, list[Any]]) -> None:
    as_texts = {name: [text(each) for each in entries] for name, entries in lists.items()}
    assert joined(head, as_texts) == text({**head, **lists})
    assert json.loads(joined(head, as_texts)) == {**head, **lists}


def test_a_bundle_that_many_share_counts_as_often_as_it_is_given() -> None:
    shared, other = Resources.parse("cpus:0.5;ports:[1-2]"), Resources.parse("cpus:2;ports:[2-4]")
    equal = Resources.parse("cpus:0.5;ports:[1-2]")
    found = amounts(shared, other, shared, equal)
    assert found == {"cpus": 3.5, "gpus": 0.0, "mem": 0.0, "disk": 0.0, "ports": "[1-4]"}


def test_an_entry_in_pieces_is_the_same() -> None:
    inner = pieces({"id": 1}, {"tasks": ["2", "3"]})
    assert "".join(pieces({}, {"frameworks": [inner, "4"]})) == joined(
        {}, {"frameworks": ["".join(inner), "4"]}
    )
