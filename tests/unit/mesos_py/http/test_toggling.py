"""/logging/toggle: what is asked, and what it does."""

import pytest
from aiohttp.test_utils import make_mocked_request

from mesos_py import logs
from mesos_py.errors import InvalidValue
from mesos_py.http.toggling import PATH, LoggingToggle
from mesos_py.verbosity import Verbosity


@pytest.fixture
async def toggle():
    usual = logs.level()
    logs.set_level("error")
    made = LoggingToggle()
    yield made
    await asked(made, "?level=0&duration=1secs")
    logs.set_level(usual)


async def asked(toggle, query="", method="GET"):
    answer = await toggle.answer(make_mocked_request(method, PATH + query))
    assert answer.status == 200
    return answer.text


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_more_is_logged_for_a_time(toggle, method):
    assert await asked(toggle, method=method) == "0\n"
    assert await asked(toggle, "?level=2&duration=1.5hrs", method) is None
    assert (await asked(toggle), logs.level()) == ("2\n", "debug")
    assert await asked(toggle, "?level=0&duration=1secs", method) is None
    assert (await asked(toggle), logs.level()) == ("0\n", "error")


async def test_the_newest_word_counts_whoever_said_it(toggle):
    await asked(toggle, "?level=2&duration=1hrs")
    other = Verbosity()
    other.set(1, 3600.0)
    assert await asked(toggle) == "1\n"
    # What one is told at the end is what the flags say, and not what another one set.
    other.end()
    assert (await asked(toggle), logs.level()) == ("0\n", "error")


@pytest.mark.parametrize(
    "query",
    [
        *("?level=1", "?duration=1secs", "?level=x&duration=1secs", "?level=-1&duration=1secs"),
        *("?level=1.5&duration=1secs", "?level=&duration=1secs", "?level=1&duration=1"),
        *("?level=1&duration=1s", "?level=1&duration=-1secs", "?level=1&duration="),
        *("?level=1&duration=53weeks", "?level=1&duration=99999999999999weeks"),
    ],
)
async def test_what_cannot_be_meant_is_refused_and_changes_nothing(toggle, query):
    with pytest.raises(InvalidValue):
        await asked(toggle, query)
    assert (await asked(toggle), logs.level()) == ("0\n", "error")
