"""When the master is asked for attempts again."""

from frameworks.mapreduce.tracker.unheard import PAUSES_S, Unheard


def test_nothing_is_asked_without_a_link():
    unheard = Unheard()
    assert unheard.due({"a"}, 5.0) == []
    assert unheard.next_s() is None


def test_those_that_nobody_spoke_of_are_asked_for_after_pauses_that_grow():
    unheard = Unheard()
    unheard.linked([("a", "s1"), ("b", "s2")], 100.0)
    assert unheard.next_s() == 100.0
    now_s = 100.0
    for pause_s in (*PAUSES_S, PAUSES_S[-1]):
        assert unheard.due({"a", "b"}, now_s) == [("a", "s1"), ("b", "s2")]
        assert unheard.next_s() == now_s + pause_s
        assert unheard.due({"a", "b"}, now_s + pause_s - 0.1) == []
        now_s += pause_s


def test_whoever_was_heard_of_or_has_ended_is_not_asked_for():
    unheard = Unheard()
    unheard.linked([("a", "s1"), ("b", "s2"), ("c", "s3")], 100.0)
    unheard.heard("a")
    unheard.heard("stranger")
    assert unheard.due({"a", "c"}, 100.0) == [("c", "s3")]
    unheard.heard("c")
    assert unheard.next_s() is None


def test_a_new_link_begins_anew():
    unheard = Unheard()
    unheard.linked([("a", "s1")], 100.0)
    for now_s in (100.0, 102.0, 107.0):
        assert unheard.due({"a", "b"}, now_s)
    unheard.linked([("b", "s2")], 108.0)
    assert unheard.due({"a", "b"}, 108.0) == [("b", "s2")]
    assert unheard.next_s() == 108.0 + PAUSES_S[0]
