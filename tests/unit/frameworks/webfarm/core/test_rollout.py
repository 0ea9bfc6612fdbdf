"""A deployment ends well or goes back to the last site that was good."""

from frameworks.webfarm.core.rollout import Rollout


def test_a_site_is_good_once_it_is_everywhere():
    rollout = Rollout.first("one")
    states = [rollout.active]
    rollout.begin("two")
    states.append(rollout.active)
    rollout.done()
    states.append(rollout.active)
    assert states == [False, True, False]
    assert (rollout.site, rollout.good_site, rollout.outcome) == ("two", "two", "done")


def test_one_that_failed_goes_back_to_the_last_good_one():
    rollout = Rollout.first("one")
    rollout.begin("two")
    rollout.begin("three")
    rollout.failed("it did not start")
    assert (rollout.site, rollout.version) == ("one", 1)
    assert (rollout.outcome, rollout.why) == ("failed", "it did not start")
    # The number of a failed one is never given again: instances may still have it.
    rollout.begin("four")
    assert (rollout.version, rollout.why) == (4, "")
