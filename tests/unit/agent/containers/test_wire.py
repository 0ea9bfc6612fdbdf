"""Frames between the agent and its warden, in whatever pieces they arrive."""

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.containers.wire import MAX_FRAME, Unpacker, pack

MESSAGES: list[list[Any]] = [
    ["start", {"env": {"A": "ü"}}],
    ["signal", "c1", 9],
    ["ended", "c1", None],
]


@given(st.lists(st.integers(1, 50)))
def test_messages_come_out_as_they_went_in_however_they_are_cut(sizes):
    data = pack(MESSAGES) + pack([]) + pack(MESSAGES[:1])
    unpacker = Unpacker()
    out: list = []
    for size in sizes:
        out += unpacker.feed(data[:size])
        data = data[size:]
    out += unpacker.feed(data)
    assert out == MESSAGES + MESSAGES[:1]


@pytest.mark.parametrize("data", [struct.pack(">I", MAX_FRAME + 1), b"\0\0\0\2[x"])
def test_what_is_no_frame_is_an_error(data):
    with pytest.raises(ValueError):  # noqa: PT011  # json's own is a subclass
        Unpacker().feed(data)
