from itertools import count

from master.allocator.filters import MAX_PER_AGENT, Book, Filters, blocked_until
from mesos_py.allocation import Refusal
from mesos_py.resources import Resources

NOW = 100.0


def refusal(until_s: float, text: str = "cpus:4", agent_id: str = "a") -> Refusal:
    return Refusal("f", "*", agent_id, Resources.parse(text), until_s)


def until(book: Book, text: str, now_s: float = NOW) -> float | None:
    return blocked_until(book.get("a", []), Resources.parse(text), now_s)


def test_blocks_what_was_refused_and_less_but_not_more():
    filters, book = Filters(), Book()
    filters.add(book, refusal(110))
    assert until(book, "cpus:4") == 110
    assert until(book, "cpus:1") == 110
    assert until(book, "cpus:4.001") is None
    assert until(book, "cpus:1;mem:1") is None


def test_the_same_bundle_blocks_without_comparing():
    bundle = Resources.of(cpus=1)
    assert blocked_until([Refusal("f", "*", "a", bundle, 110)], bundle, NOW) == 110


def test_blocks_until_the_last_refusal_that_covers_it_ends():
    filters, book = Filters(), Book()
    filters.add(book, refusal(110, "cpus:4"))
    filters.add(book, refusal(120, "cpus:2"))
    filters.add(book, refusal(115, "cpus:3"))
    assert until(book, "cpus:1") == 120
    assert until(book, "cpus:3") == 115
    assert until(book, "cpus:4") == 110
    assert until(book, "cpus:1", now_s=120) is None


def test_a_refusal_that_adds_nothing_is_not_kept():
    filters, book = Filters(), Book()
    filters.add(book, refusal(120, "cpus:4"))
    filters.add(book, refusal(110, "cpus:4"))
    filters.add(book, refusal(110, "cpus:2"))
    assert len(filters) == 1
    filters.add(book, refusal(130, "cpus:8"))
    assert [item.until_s for item in book["a"]] == [130]
    assert len(filters) == 1


def test_a_shorter_refusal_of_more_is_kept_beside_a_longer_one_of_less():
    filters, book = Filters(), Book()
    filters.add(book, refusal(120, "cpus:2"))
    filters.add(book, refusal(110, "cpus:4"))
    assert until(book, "cpus:4") == 110
    assert until(book, "cpus:2") == 120


def test_the_one_that_ends_first_goes_when_there_are_too_many():
    filters, book = Filters(), Book()
    for number in range(MAX_PER_AGENT):
        assert not filters.add(book, refusal(110 + number, f"cpus:{100 - number}"))
    assert filters.add(book, refusal(500, "cpus:1"))
    assert len(book["a"]) == len(filters) == MAX_PER_AGENT
    assert min(item.until_s for item in book["a"]) == 111
    assert until(book, "cpus:100") is None


def test_due_takes_out_what_has_ended_and_leaves_the_rest():
    filters, book = Filters(), Book()
    filters.add(book, refusal(110, "cpus:4"))
    filters.add(book, refusal(120, "cpus:2"))
    filters.add(book, refusal(115, "cpus:9", agent_id="b"))
    assert filters.due(109.9) == []
    assert [item.until_s for item in filters.due(115)] == [110, 115]
    assert set(book) == {"a"}
    assert filters.next_end_s() == 120
    assert [item.until_s for item in filters.due(1000)] == [120]
    assert book == {}
    assert filters.next_end_s() is None
    assert len(filters) == 0


def test_cleared_books_and_dropped_agents_announce_no_end():
    filters, mine, yours = Filters(), Book(), Book()
    filters.add(mine, refusal(110))
    filters.add(mine, refusal(120, agent_id="b"))
    filters.add(yours, refusal(130))
    filters.clear(mine)
    assert filters.next_end_s() == 130
    filters.drop_agent("a", [mine, yours])
    assert filters.next_end_s() is None
    assert filters.due(1000) == []
    assert len(filters) == 0


def test_a_refusal_that_is_told_again_after_a_clear_counts_once():
    filters, book = Filters(), Book()
    same = refusal(110)
    filters.add(book, same)
    filters.clear(book)
    filters.add(book, same)
    assert filters.due(110) == [same]
    assert len(filters) == 0


def test_the_heap_does_not_grow_with_refusals_that_are_gone():
    filters, book = Filters(), Book()
    moment = count(1000)
    for _ in range(5000):
        filters.add(book, refusal(next(moment)))
    assert len(filters) == 1
    assert len(filters._heap) < 300  # the bound shows nowhere else
    for number in range(3000):
        filters.add(book, refusal(next(moment), agent_id=f"a{number}"))
    for number in range(3000):
        filters.drop_agent(f"a{number}", [book])
    assert len(filters._heap) < 300
    assert filters.next_end_s() == 5999
