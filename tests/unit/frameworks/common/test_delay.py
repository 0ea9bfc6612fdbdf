from frameworks.common.delay import Delay


def test_who_lets_offers_pass_gets_less_choosy_level_by_level():
    delay = Delay(1.0, 2.0)
    assert delay.allowed(100.0) == "host"
    assert delay.skipped(100.0) == 1.0
    assert delay.allowed(100.9) == "host"
    assert delay.allowed(101.0) == "rack"
    assert delay.skipped(101.0) == 2.0
    assert delay.allowed(103.0) == "any"
    assert delay.skipped(103.0) == 0.0


def test_time_without_offers_is_no_wait():
    delay = Delay(1.0, 1.0)
    assert delay.allowed(1000.0) == "host"


def test_without_racks_there_is_one_wait():
    delay = Delay(1.0, 2.0)
    delay.skipped(0.0, racks=False)
    assert delay.allowed(0.9, racks=False) == "host"
    assert delay.allowed(1.0, racks=False) == "any"


def test_a_level_that_was_settled_for_stays_until_a_better_one():
    delay = Delay(1.0, 2.0)
    delay.launched("any")
    assert delay.allowed(0.0) == "any"
    delay.launched("rack")
    assert delay.allowed(0.0) == "rack"
    assert delay.skipped(0.0) == 2.0
    assert delay.allowed(2.0) == "any"
    delay.launched("host")
    assert delay.allowed(2.0) == "host"


def test_a_launch_ends_the_wait():
    delay = Delay(1.0, 1.0)
    delay.skipped(0.0)
    delay.launched("host")
    assert delay.allowed(5.0) == "host"
    assert delay.skipped(5.0) == 1.0


def test_waits_of_nothing_are_none():
    delay = Delay(0.0, 0.0)
    assert delay.allowed(0.0) == "any"
