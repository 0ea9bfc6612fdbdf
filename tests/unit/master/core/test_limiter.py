"""How fast agents may be taken for lost."""

from master.core.limiter import Limiter


def filled(count, per_s, *names):
    limiter = Limiter(count, per_s)
    for name in names:
        limiter.add(name, f"why {name}")
    return limiter


def test_without_a_limit_all_go_at_once_in_order():
    limiter = filled(0, 0.0, "a", "b", "c")
    assert [limiter.take(5.0) for _ in range(4)] == [
        ("a", "why a"),
        ("b", "why b"),
        ("c", "why c"),
        None,
    ]


def test_the_first_goes_at_once_and_the_others_evenly_spaced():
    limiter = filled(2, 60.0, "a", "b", "c")
    assert limiter.take(100.0) == ("a", "why a")
    assert limiter.take(129.9) is None
    assert limiter.next_s() == 130.0
    assert limiter.take(130.0) == ("b", "why b")
    assert limiter.take(500.0) == ("c", "why c")
    assert limiter.next_s() is None


def test_tokens_do_not_pile_up():
    limiter = filled(1, 10.0, "a")
    limiter.take(0.0)
    limiter.add("b", "")
    limiter.add("c", "")
    assert limiter.take(1000.0) == ("b", "")
    assert limiter.take(1001.0) is None


def test_whoever_is_heard_of_leaves_the_queue_and_costs_no_token():
    limiter = filled(1, 10.0, "a", "b", "c")
    limiter.take(0.0)
    limiter.discard("b")
    limiter.discard("unknown")
    assert "b" not in limiter
    assert (len(limiter), limiter.next_s()) == (1, 10.0)
    assert limiter.take(10.0) == ("c", "why c")


def test_who_waits_keeps_the_place_and_the_reason():
    limiter = filled(1, 10.0, "x", "a", "b")
    limiter.take(0.0)
    limiter.add("a", "again")
    assert limiter.take(10.0) == ("a", "why a")


def test_nobody_goes_before_the_moment_it_was_put_off_to():
    limiter = filled(1, 10.0, "a", "b")
    limiter.postpone(50.0)
    limiter.postpone(40.0)
    assert limiter.take(49.0) is None
    assert limiter.take(50.0) == ("a", "why a")
