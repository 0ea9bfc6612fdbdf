from frameworks.common.attempts import Attempts


def test_numbers_are_given_once_also_after_those_of_a_predecessor():
    attempts = Attempts()
    assert attempts.begin("a") == 0
    attempts.seen(4, "b")
    assert attempts.begin("c") == 5
    assert attempts.running == {0: "a", 4: "b", 5: "c"}


def test_only_failures_count_and_make_the_agent_one_to_avoid():
    attempts = Attempts()
    for how in ("lost", "preempted", "killed", None):
        attempts.ended(attempts.begin("a"), how)
    assert (attempts.failures, attempts.failed_on) == (0, frozenset())
    attempts.ended(attempts.begin("a"), "failed")
    assert (attempts.failures, sorted(attempts.failed_on)) == (1, ["a"])
    attempts.ended(attempts.begin("b"), "failed", counts=False)
    assert (attempts.failures, sorted(attempts.failed_on)) == (1, ["a", "b"])


def test_an_attempt_ends_once():
    attempts = Attempts()
    number = attempts.begin("a")
    attempts.ended(number, "failed")
    attempts.ended(number, "failed")
    attempts.ended(99, "failed")
    assert attempts.failures == 1
