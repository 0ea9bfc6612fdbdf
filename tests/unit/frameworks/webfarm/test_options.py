"""What `mesos-py webfarm up` makes of what it is told, and the example that says so."""

from pathlib import Path

import pytest

from frameworks.webfarm.options import ENV_PREFIX, FarmFlags
from mesos_py import config
from mesos_py.errors import InvalidValue

EXAMPLE = Path(__file__).parents[4] / "examples/webfarm/farm.toml"


def flags(**given: object) -> FarmFlags:
    return config.load(FarmFlags, ENV_PREFIX, command_line=given)


def test_the_example_is_a_farm():
    told = config.load(FarmFlags, ENV_PREFIX, config_text=EXAMPLE.read_text())
    limits, front = told.limits(), told.front()
    assert (limits.minimum, limits.maximum, limits.target) == (1, 4, 50)
    assert (limits.calm_s, limits.cool_down_s, told.period_s) == (10, 5, 1)
    assert (front.bind, front.port) == ("127.0.0.1", 8080)


def test_there_are_slots_for_the_old_and_the_new():
    assert flags(max="8").front().slots == 64
    assert flags(max="100", batch="10").front().slots == 220


def test_what_haproxy_and_apache_ask_for_is_the_same():
    told = flags(check_path="/ok", log_requests=True)
    assert told.front().check_path == told.apache().check_path == "/ok"
    assert told.front().log_requests


def test_more_servers_at_least_than_at_most_are_refused_by_name():
    with pytest.raises(InvalidValue) as caught:
        flags(min="5", max="2").limits()
    assert caught.value.field == "max"


def test_rules_have_what_was_said():
    rules = flags(cpus="0.25", mem="64", drain="7s", start="9s", batch="3").rules()
    assert rules.each.scalars == {"cpus": 250, "mem": 64000}
    assert (rules.drain_s, rules.start_s, rules.batch) == (7, 9, 3)
