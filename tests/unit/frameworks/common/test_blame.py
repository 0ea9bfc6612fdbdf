from frameworks.common.blame import Blame


def test_an_agent_is_excluded_for_a_while_after_so_many_failures():
    blame = Blame(limit=2, window_s=60.0)
    assert not blame.failed("a", 0.0)
    assert not blame
    assert blame.failed("a", 10.0)
    assert blame.excluded("a", 69.9)
    assert not blame.excluded("b", 10.0)
    assert blame.until_s("a") == 70.0
    assert not blame.expire(69.9)
    assert blame.expire(70.0)
    assert not blame.excluded("a", 70.0)
    assert blame.agents() == set()


def test_failures_of_long_ago_do_not_count():
    blame = Blame(limit=2, window_s=60.0)
    blame.failed("a", 0.0)
    assert not blame.failed("a", 61.0)
    assert blame.failures("a") == 2
    assert blame.failed("a", 62.0)


def test_after_an_exclusion_it_begins_anew():
    blame = Blame(limit=2, window_s=60.0)
    blame.failed("a", 0.0)
    blame.failed("a", 1.0)
    blame.expire(61.0)
    assert not blame.failed("a", 61.0)


def test_exclusions_can_be_lifted():
    blame = Blame(limit=1, window_s=60.0)
    blame.failed("a", 0.0)
    blame.failed("b", 0.0)
    blame.lift(["a", "unknown"])
    assert not blame.excluded("a", 1.0)
    assert blame.excluded("b", 1.0)


def test_failures_at_once_are_one():
    """A worker ends with all that ran in it; its agent says so of one after the other."""
    blame = Blame(limit=2, window_s=60.0)
    for number in range(16):
        assert not blame.failed("a", 1.0 + number / 100)
    assert blame.failures("a") == 1
    assert blame.failed("a", 2.0)
