"""Paths of the file server."""

from __future__ import annotations

import pytest

from agent.api.http_paths import location_of, offset_of
from mesos_py.errors import InvalidValue


@pytest.mark.parametrize(
    ("path", "location"),
    [
        ("/files/F/E/C", ("F", "E", "C", ())),
        ("/files/F/E/C/", ("F", "E", "C", ())),
        ("/files/F/E/latest/stdout", ("F", "E", "latest", ("stdout",))),
        ("/files/F/E/C/a/b%20c", ("F", "E", "C", ("a", "b c"))),
        ("/files/F/E/C/%252e%252e", ("F", "E", "C", ("%2e%2e",))),
    ],
)
def test_what_a_path_names(path, location):
    assert location_of(path) == location


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/files",
        "/files/F/E",
        "/other/F/E/C",
        "/files/F/E/C/../D",
        "/files/F/E/C/%2e%2e/D",
        "/files/F/E/C/%2E%2E/D",
        "/files/F/E/C/.%2e",
        "/files/F/E/C/a%2fb",
        "/files/F/E/C//etc/passwd",
        "/files/F/E/C/%2fetc",
        "/files/F/E/C/a//b",
        "/files/F/E/C/./a",
        "/files/F/E/C/a%00",
        "/files/../E/C",
        "/files/F/../C",
        "/files/F/E/..",
        "/files/F/E/C/" + "x" * 9000,
    ],
)
def test_what_leads_elsewhere_is_refused(path):
    with pytest.raises(InvalidValue):
        location_of(path)


def test_offsets():
    assert [offset_of(text) for text in (None, "0", "12", "-3")] == [0, 0, 12, -3]
    for text in ("", "-", "x", "1.5", "--1", "9" * 30, "\u0663"):
        with pytest.raises(InvalidValue):
            offset_of(text)
