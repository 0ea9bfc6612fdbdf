from frameworks.mapreduce.core.waiting import Waiting, level_of


def waiting(*hosts: tuple[str, ...]) -> Waiting:
    made = Waiting(len(hosts), lambda task: hosts[task])
    for task in range(len(hosts)):
        made.add(task)
    return made


def test_the_nearest_is_found_as_far_as_is_allowed():
    made = waiting(("a",), ("b",), ("c", "a"))
    assert made.find(["a"], set(), "host") == (0, "host")
    made.take(0)
    assert made.find(["a"], set(), "host") == (2, "host")
    made.take(2)
    assert made.find(["a"], set(), "host") is None
    assert made.find(["a"], {"b"}, "host") is None
    assert made.find(["a"], {"b"}, "rack") == (1, "rack")
    assert made.find(["a"], set(), "rack") is None
    assert made.find(["a"], set(), "any") == (1, "any")
    made.take(1)
    assert made.find(["b"], set(), "any") is None
    assert made.count == 0


def test_what_lies_nowhere_is_at_home_everywhere():
    made = waiting((), ("b",))
    assert not made.only_near
    assert made.find(["a"], set(), "host") == (0, "any")
    made.take(0)
    assert made.only_near


def test_a_task_that_was_lost_comes_first():
    made = waiting((), (), ())
    made.take(2)
    made.add(2, first=True)
    made.add(2, first=True)
    assert made.find([], set(), "any") == (2, "any")
    assert made.count == 3


def test_tasks_that_failed_are_found_by_whoever_may_try_them():
    made = waiting(("a",), ("a",))
    made.take(0)
    made.add_again(0)
    assert made.again(lambda task: False) is None
    assert made.again(lambda task: True) == 0
    # They are in no queue, though they were.
    assert made.find(["a"], set(), "any") == (1, "host")
    assert not made.choosy()
    made.take(1)
    assert made.choosy()
    assert made.find(["a"], set(), "any") is None
    made.take(0)
    assert not made.choosy()


def test_a_failed_task_that_is_lost_later_is_found_again():
    made = waiting(("a",))
    made.take(0)
    made.add_again(0)
    made.find(["a"], set(), "any")
    made.take(0)
    made.add(0, first=True)
    assert made.find(["a"], set(), "host") == (0, "host")


def test_draining():
    made = waiting((), ("a",), ())
    made.take(0)
    assert made.drain() == [1, 2]
    assert (made.count, made.find(["a"], set(), "any")) == (0, None)
    made.add(1)
    assert made.find(["a"], set(), "host") == (1, "host")


def test_hosts_with_input_among_those_that_are_there():
    made = waiting(("a", "b"), ("elsewhere",))
    assert made.hosts_among({"a": "agent 1", "x": "agent 2"}) == {"agent 1"}
    many = {f"h{n}": f"agent {n}" for n in range(9)} | {"b": "agent b"}
    assert made.hosts_among(many) == {"agent b"}


def test_levels():
    racks = {"a": "r1", "b": "r1", "c": "r2"}
    assert level_of(["a"], ["x", "a"], "r1", racks) == "host"
    assert level_of(["a"], ["b"], "r1", racks) == "rack"
    assert level_of(["a"], ["c"], "r2", racks) == "any"
    assert level_of(["unknown"], ["c"], "", {}) == "any"
