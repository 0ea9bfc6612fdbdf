"""Objects that are put together from texts."""

import json
from typing import Any

import pytest

from mesos_py.http.shapes import joined, pieces, text

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


def test_an_entry_in_pieces_is_the_same() -> None:
    inner = pieces({"id": 1}, {"tasks": ["2", "3"]})
    assert "".join(pieces({}, {"frameworks": [inner, "4"]})) == joined(
        {}, {"frameworks": ["".join(inner), "4"]}
    )
