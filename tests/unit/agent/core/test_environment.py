"""Durations as Mesos writes them."""

import pytest

from agent.core.environment import duration_text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (5, "5secs"),
        (0, "0ns"),
        (90, "1.5mins"),
        (60, "1mins"),
        (0.25, "250ms"),
        (0.0000015, "1.5us"),
        (3600, "1hrs"),
        (86400, "1days"),
        (1209600, "2weeks"),
    ],
)
def test_durations_have_the_largest_unit_that_is_reached(seconds, text):
    assert duration_text(seconds) == text
