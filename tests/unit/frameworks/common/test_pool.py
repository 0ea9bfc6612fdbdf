import pytest

from frameworks.common.pool import Backoff, Member, Phase, Pool, PoolRules
from mesos_py import InvalidValue, Resources

SIZE = Resources.of(cpus=1, mem=64)


def pool_of(**rules) -> Pool:
    return Pool(PoolRules(**{"most": 10, "start_s": 60.0, "idle_s": 30.0, **rules}))


def serving(pool: Pool, *task_ids: str, at_s: float = 0.0) -> None:
    for task_id in task_ids:
        pool.begin(task_id, f"on-{task_id}", f"host-{task_id}", SIZE, at_s)
        assert pool.serves(task_id, at_s)


def ids(members: list[Member]) -> list[str]:
    return [member.task_id for member in members]


def test_a_member_goes_through_its_phases():
    pool = pool_of()
    member = pool.begin("t", "a", "h", SIZE, 1.0)
    assert (member.phase, member.since_s, member.served_s) == (Phase.STARTING, 1.0, None)
    assert pool.serves("t", 2.0)
    assert (member.phase, member.served_s, member.idle_since_s) == (Phase.SERVING, 2.0, 2.0)
    assert pool.drain("t", 3.0)
    assert pool.ending("t", 4.0)
    assert (member.phase, member.since_s) == (Phase.ENDING, 4.0)
    assert "t" in pool
    assert pool.ended("t", 5.0) is member
    assert list(pool) == []
    assert pool.failures("a") == 0


def test_what_comes_late_or_twice_changes_nothing():
    pool = pool_of()
    serving(pool, "t")
    assert not pool.serves("t", 1.0)
    assert pool.drain("t", 2.0)
    assert not pool.drain("t", 3.0)
    assert not pool.serves("t", 3.0)
    assert pool.ending("t", 4.0)
    for late in (pool.serves, pool.drain, pool.resume, pool.ending, pool.give_up):
        assert not late("t", 5.0)
    assert next(iter(pool)).since_s == 4.0
    pool.ended("t", 6.0)
    assert pool.ended("t", 7.0) is None
    for unknown in (pool.serves, pool.drain, pool.resume, pool.ending, pool.give_up):
        assert not unknown("t", 8.0)
    pool.works("t", True, 8.0)
    assert pool.get("t") is None


def test_an_id_is_used_once():
    pool = pool_of()
    pool.begin("t", "a", "h", SIZE, 0.0)
    with pytest.raises(InvalidValue, match="task_id"):
        pool.begin("t", "b", "h", SIZE, 0.0)


def test_how_many_are_missing():
    pool = pool_of(least=1, most=4)
    assert pool.missing(0, 0.0) == 1
    assert pool.missing(9, 0.0) == 4
    serving(pool, "s", "d", "e")
    pool.drain("d", 0.0)
    pool.ending("e", 0.0)
    # One serves, and two that do not count towards what is wanted have room still.
    assert pool.missing(2, 0.0) == 1
    assert pool.missing(4, 0.0) == 1
    pool.ended("e", 0.0)
    assert pool.missing(4, 0.0) == 2


def test_who_goes_first():
    pool = pool_of(least=1)
    serving(pool, "old", "idle", "idler", at_s=0.0)
    serving(pool, "young", at_s=5.0)
    pool.begin("starts", "x", "h", SIZE, 6.0)
    pool.begin("starts-later", "x", "h", SIZE, 7.0)
    for task_id in ("old", "young", "idle"):
        pool.works(task_id, True, 8.0)
    pool.works("idle", False, 9.0)
    expected = ["starts-later", "starts", "idler", "idle", "young", "old"]
    assert ids(pool.surplus(0)) == expected[:5]
    assert ids(pool.surplus(4)) == expected[:2]
    assert pool.surplus(6) == []


def test_idle_members_are_not_needed_after_a_time():
    pool = pool_of(idle_s=30.0)
    serving(pool, "a", "b", "c")
    pool.works("b", True, 10.0)
    pool.works("c", True, 10.0)
    pool.works("c", False, 20.0)
    pool.works("c", False, 25.0)
    assert pool.unneeded(29.9) == []
    assert ids(pool.unneeded(30.0)) == ["a"]
    assert ids(pool.unneeded(50.0)) == ["a", "c"]
    pool.drain("a", 50.0)
    assert ids(pool.unneeded(50.0)) == ["c"]


def test_the_least_number_stays_however_idle():
    pool = pool_of(least=2, idle_s=0.0)
    serving(pool, "a", "b", "c")
    assert ids(pool.unneeded(1.0)) == ["a"]


def test_one_that_is_taken_back_has_its_idle_time_again():
    pool = pool_of(idle_s=30.0)
    serving(pool, "a")
    pool.drain("a", 30.0)
    assert pool.resume("a", 31.0)
    assert pool.unneeded(60.0) == []
    assert ids(pool.unneeded(61.0)) == ["a"]
    assert not pool.resume("a", 62.0)


def test_a_busy_one_that_is_taken_back_is_busy():
    pool = pool_of(idle_s=30.0)
    serving(pool, "a")
    pool.works("a", True, 1.0)
    pool.drain("a", 2.0)
    pool.resume("a", 3.0)
    assert pool.unneeded(100.0) == []


def test_who_does_not_serve_in_time_is_given_up_and_counts_as_failed():
    pool = pool_of(start_s=10.0, backoff_first_s=2.0)
    pool.begin("t", "a", "h", SIZE, 0.0)
    assert pool.overdue(9.9) == []
    assert ids(pool.overdue(10.0)) == ["t"]
    assert pool.give_up("t", 10.0)
    assert pool.overdue(11.0) == []
    assert not pool.allows("a", 11.9)
    # Its end is no second failure.
    pool.ended("t", 11.0)
    assert pool.failures("a") == 1
    assert pool.allows("a", 12.0)


def test_an_agent_where_members_die_at_once_is_left_alone_longer_and_longer():
    pool = pool_of(backoff_first_s=2.0, backoff_cap_s=10.0)
    serving(pool, "settled")
    now_s, pauses = 100.0, []
    for number in range(5):
        pool.begin(f"t{number}", "bad", "h", SIZE, now_s)
        pool.serves(f"t{number}", now_s)
        pool.ended(f"t{number}", now_s)
        until_s = pool.wake_s(now_s)
        assert until_s is not None
        assert not pool.allows("bad", until_s - 0.1)
        assert pool.allows("bad", until_s)
        pauses.append(until_s - now_s)
        now_s = until_s
    assert pauses == [2.0, 4.0, 8.0, 10.0, 10.0]
    # Another one is as good as ever.
    assert pool.allows("good", now_s)
    assert pool.missing(9, now_s) == 8


def test_where_nothing_serves_all_wait_after_failures():
    pool = pool_of(backoff_first_s=2.0)
    pool.begin("t", "a", "h", SIZE, 0.0)
    pool.ended("t", 0.0)
    assert pool.missing(3, 1.9) == 0
    assert pool.paused_until_s(1.0) == 2.0
    assert pool.missing(3, 2.0) == 3
    pool.begin("u", "b", "h", SIZE, 2.0)
    pool.ended("u", 2.0)
    assert pool.paused_until_s(2.0) == 6.0


def test_ends_that_are_no_failures():
    pool = pool_of(settled_s=30.0)
    pool.begin("lost", "a", "h", SIZE, 0.0)
    pool.ended("lost", 0.0, fault=False)
    serving(pool, "long")
    pool.ended("long", 30.0)
    serving(pool, "asked")
    pool.ending("asked", 1.0)
    pool.ended("asked", 1.0)
    assert all(pool.allows(agent, 30.0) for agent in ("a", "on-long", "on-asked"))
    assert pool.missing(1, 30.0) == 1


def test_a_failure_long_after_the_last_begins_a_new_row():
    backoff = Backoff(first_s=2.0, cap_s=10.0)
    backoff.failed(0.0)
    backoff.failed(2.0)
    assert (backoff.failures, backoff.until_s) == (2, 6.0)
    backoff.failed(16.1)
    assert (backoff.failures, backoff.until_s) == (1, 18.1)


def test_a_row_of_any_length_has_a_pause():
    backoff = Backoff(first_s=2.0, cap_s=10.0)
    for _ in range(2000):
        backoff.failed(backoff.until_s)
    assert backoff.until_s < 20_000


def test_agents_that_failed_long_ago_are_forgotten():
    pool = pool_of(backoff_first_s=1.0, backoff_cap_s=10.0)
    for number in range(100):
        pool.begin("t", f"agent-{number}", "h", SIZE, number * 100.0)
        pool.ended("t", number * 100.0)
    assert sum(pool.failures(f"agent-{number}") for number in range(100)) == 1


def test_one_per_agent_also_while_it_ends():
    pool = pool_of(one_per_agent=True)
    pool.begin("t", "a", "h", SIZE, 0.0)
    pool.ending("t", 1.0)
    assert not pool.allows("a", 1.0)
    assert pool.allows("b", 1.0)
    pool.ended("t", 2.0)
    assert pool.allows("a", 2.0)


def test_members_of_a_predecessor_are_taken_over():
    pool = pool_of(most=1)
    for name, phase in (("s", Phase.SERVING), ("d", Phase.DRAINING)):
        pool.adopt(Member(name, "a", "h", SIZE, phase, 5.0, served_s=5.0, idle_since_s=5.0))
    assert pool.missing(3, 5.0) == 0
    assert pool.count(Phase.SERVING, Phase.DRAINING) == 2
    assert ids(pool.unneeded(35.0)) == ["s"]


def test_when_to_look_again():
    pool = pool_of(start_s=60.0, idle_s=30.0)
    assert pool.wake_s(0.0) is None
    pool.begin("t", "a", "h", SIZE, 0.0)
    assert pool.wake_s(0.0) == 60.0
    pool.serves("t", 5.0)
    assert pool.wake_s(5.0) == 35.0
    pool.works("t", True, 6.0)
    assert pool.wake_s(6.0) is None


@pytest.mark.parametrize(
    ("rules", "named"),
    [
        ({"least": 3, "most": 2}, "least"),
        ({"least": -1}, "least"),
        ({"start_s": -1.0}, "start_s"),
        ({"idle_s": float("nan")}, "idle_s"),
    ],
)
def test_rules_that_cannot_be(rules, named):
    with pytest.raises(InvalidValue, match=named):
        pool_of(**rules)
