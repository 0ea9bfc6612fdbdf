from frameworks.torque.core.planning import Limits, Plan, Room, plan
from frameworks.torque.core.records import Job, Size

PLENTY = Size(1000, 1_000_000)


def job(job_id: str = "1", cpus: int = 1, mem_mb: int = 100, **fields) -> Job:
    return Job(job_id, "n", "u", "waiting", cpus=cpus, mem_mb=mem_mb, **fields)


def room(name: str, cpus: int, mem_mb: int = 1000, most_s: float | None = None) -> Room:
    return Room(f"offer-{name}", name, name, Size(cpus, mem_mb), most_s)


def planned(jobs, there=None, rooms=(), **limits) -> Plan:
    given = {"nodes": 100, "size": PLENTY, "overhead": Size(0, 0), "one_per_agent": False}
    return plan(jobs, there or {}, rooms, Limits(**{**given, **limits}))


def starts(made: Plan) -> list[tuple[str, int, int]]:
    return [(s.room.hostname, s.size.cpus, s.size.mem_mb) for s in made.starts]


def test_nothing_waits_nothing_starts():
    made = planned([], rooms=[room("a", 4)])
    assert made == Plan()


def test_jobs_share_a_node_that_grows_with_them():
    jobs = [job("1", cpus=1), job("2", cpus=2)]
    made = planned(jobs, rooms=[room("a", 4), room("b", 4)])
    assert starts(made) == [("a", 3, 200)]
    assert made.unplaced == []


def test_nodes_that_are_there_come_first():
    made = planned([job("1"), job("2")], there={"n": Size(1, 100)}, rooms=[room("a", 1)])
    assert made.used == {"n"}
    assert starts(made) == [("a", 1, 100)]


def test_a_job_on_several_nodes_gets_different_ones():
    made = planned([job(nodes=3)], there={"n": Size(8, 800)}, rooms=[room("a", 4), room("b", 4)])
    assert made.used == {"n"}
    assert starts(made) == [("a", 1, 100), ("b", 1, 100)]


def test_on_few_agents_it_gets_several_on_one():
    made = planned([job(nodes=3)], rooms=[room("a", 4), room("b", 1)])
    assert starts(made) == [("a", 1, 100), ("b", 1, 100), ("a", 1, 100)]


def test_all_or_nothing():
    """What does not fit takes nothing from the jobs behind it."""
    jobs = [job("big", nodes=3, cpus=2), job("small", cpus=4)]
    made = planned(jobs, there={"n": Size(1, 800)}, rooms=[room("a", 4)])
    assert [each.job_id for each in made.unplaced] == ["big"]
    assert made.used == set()
    assert starts(made) == [("a", 4, 100)]


def test_of_equal_jobs_that_do_not_fit_only_one_is_tried():
    jobs = [job(str(number), cpus=9) for number in range(5000)]
    made = planned(jobs, rooms=[room("a", 8)])
    assert len(made.unplaced) == 5000


def test_an_array_takes_what_there_is():
    made = planned([job(count=10)], rooms=[room("a", 4)])
    assert starts(made) == [("a", 4, 400)]
    assert len(made.unplaced) == 1


def test_never_more_nodes_than_may_be():
    made = planned([job("1", nodes=2)], rooms=[room("a", 4)], nodes=1)
    assert starts(made) == []
    assert len(made.unplaced) == 1


def test_never_above_the_share_overhead_included():
    rooms = [room("a", 4), room("b", 4)]
    limits = {"size": Size(8, 250), "overhead": Size(0, 50)}
    made = planned([job("1", nodes=2)], rooms=rooms, **limits)
    assert starts(made) == []
    made = planned([job("1"), job("2")], rooms=rooms, **limits)
    assert starts(made) == [("a", 2, 200)]
    made = planned([job("1"), job("2"), job("3")], rooms=rooms, **limits)
    assert [each.job_id for each in made.unplaced] == ["3"]


def test_overhead_is_taken_from_the_offer():
    made = planned([job(mem_mb=1000)], rooms=[room("a", 4, 1000)], overhead=Size(0, 1))
    assert made.unplaced != []


def test_where_only_one_can_be_it_takes_all():
    rooms = [room("a", 4, 1000), room("b", 4, 1000)]
    limits = {"one_per_agent": True, "overhead": Size(0, 48), "size": Size(6, 10_000)}
    made = planned([job("1", nodes=2)], rooms=rooms, **limits)
    assert starts(made) == [("a", 4, 952), ("b", 2, 952)]
    made = planned([job("1", nodes=2)], rooms=rooms[:1], **limits)
    assert starts(made) == []


def test_only_jobs_that_end_in_time_go_where_time_is_short():
    rooms = [room("short", 4, most_s=600.0)]
    assert starts(planned([job()], rooms=rooms)) == []
    assert starts(planned([job(walltime_s=601.0)], rooms=rooms)) == []
    assert starts(planned([job(walltime_s=600.0)], rooms=rooms)) == [("short", 1, 100)]
