"""More is logged for a time."""

import asyncio

import pytest

from mesos_py import logs
from mesos_py.errors import InvalidValue
from mesos_py.verbosity import Verbosity


@pytest.fixture
def verbosity():
    usual = logs.level()
    logs.set_level("error")
    made = Verbosity()
    yield made
    made.end()
    logs.set_level(usual)


async def test_the_level_is_as_before_when_the_time_is_over(verbosity):
    verbosity.set(2, 0.0)
    assert (verbosity.level, logs.level()) == (2, "debug")
    later = asyncio.Event()
    asyncio.get_running_loop().call_later(0.0, later.set)
    await later.wait()
    assert logs.level() == "error"


async def test_the_newest_word_counts(verbosity):
    verbosity.set(1, 3600.0)
    verbosity.set(3, 3600.0)
    assert (verbosity.level, logs.level()) == (3, "debug")
    verbosity.set(0, 0.0)
    assert (verbosity.level, logs.level()) == (0, "error")
    verbosity.end()
    assert logs.level() == "error"


@pytest.mark.parametrize("duration_s", [-1.0, 366 * 86400.0, float("nan")])
async def test_a_time_that_is_none_changes_nothing(verbosity, duration_s):
    with pytest.raises(InvalidValue, match="duration"):
        verbosity.set(1, duration_s)
    assert (verbosity.level, logs.level()) == (0, "error")
