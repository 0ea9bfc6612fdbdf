"""Which nodes are started: for any queue, any nodes and any offers."""

from hypothesis import given
from hypothesis import strategies as st

from frameworks.torque.core.planning import Limits, Plan, Room, plan
from frameworks.torque.core.records import Job, Size, size_of
from frameworks.torque.core.verdicts import Bounds, never

SIZES = st.builds(Size, st.integers(1, 8), st.integers(0, 800))
JOBS = st.lists(
    st.builds(
        lambda nodes, size, walltime_s, count: Job(
            "1", "n", "u", "waiting", nodes, size.cpus, size.mem_mb, walltime_s, count
        ),
        st.integers(1, 4),
        st.builds(Size, st.integers(1, 4), st.integers(0, 300)),
        st.sampled_from([None, 60.0, 600.0]),
        st.integers(1, 3),
    ),
    max_size=8,
)
NODES = st.lists(SIZES, max_size=4).map(lambda sizes: {f"n{i}": s for i, s in enumerate(sizes)})
ROOMS = st.lists(st.tuples(SIZES, st.sampled_from([None, None, 60.0])), max_size=4).map(
    lambda found: [Room(f"o{i}", f"a{i}", f"h{i}", size, s) for i, (size, s) in enumerate(found)]
)
LIMITS = st.builds(
    lambda nodes, size, mem_mb, one: Limits(
        nodes=nodes, size=size, overhead=Size(0, mem_mb), one_per_agent=one
    ),
    st.integers(0, 5),
    st.builds(Size, st.integers(0, 20), st.integers(0, 2000)),
    st.sampled_from([0, 48]),
    st.booleans(),
)


def total(sizes) -> Size:
    return sum(sizes, start=Size(0, 0))


def outcome(made: Plan) -> tuple:
    return [(start.room.offer_id, start.size) for start in made.starts], made.used


@given(JOBS, NODES, ROOMS, LIMITS)
def test_never_more_than_there_is(jobs, nodes, rooms, limits):
    """Neither of what is guaranteed, nor of what an agent has offered."""
    made = plan(jobs, nodes, rooms, limits)
    taken = [start.size + limits.overhead for start in made.starts]
    assert limits.size.holds(total(taken))
    assert len(made.starts) <= limits.nodes
    for room in rooms:
        there = [start.size for start in made.starts if start.room is room]
        assert room.size.holds(total(size + limits.overhead for size in there))
        assert not limits.one_per_agent or len(there) <= 1
    assert made.used <= nodes.keys()


@given(JOBS, NODES, ROOMS, LIMITS)
def test_what_finds_no_room_takes_nothing_from_others(jobs, nodes, rooms, limits):
    jobs = [
        Job(f"{i}", "n", "u", "waiting", j.nodes, j.cpus, j.mem_mb, j.walltime_s)
        for i, j in enumerate(jobs)
    ]
    made = plan(jobs, nodes, rooms, limits)
    unplaced = {job.job_id for job in made.unplaced}
    again = plan([job for job in jobs if job.job_id not in unplaced], nodes, rooms, limits)
    assert outcome(again) == outcome(made)
    assert again.unplaced == []


@given(JOBS, NODES, ROOMS, LIMITS)
def test_jobs_that_come_later_change_nothing_for_those_before(jobs, nodes, rooms, limits):
    for count in range(len(jobs)):
        before = plan(jobs[:count], nodes, rooms, limits).unplaced
        assert plan(jobs, nodes, rooms, limits).unplaced[: len(before)] == before


@given(JOBS.filter(bool), NODES, ROOMS, LIMITS)
def test_a_job_alone_is_placed_exactly_if_it_can_be(jobs, nodes, rooms, limits):
    job = Job("1", "n", "u", "waiting", jobs[0].nodes, jobs[0].cpus, jobs[0].mem_mb)
    whole = size_of(job) + limits.overhead
    lasting = [times(room.size, whole, limits) for room in rooms if room.most_s is None]
    share = times(limits.size, whole, None)
    startable = min(sum(lasting), share, limits.nodes)
    there = sum(free.holds(size_of(job)) for free in nodes.values())
    made = plan([job], nodes, rooms, limits)
    assert (made.unplaced == []) == (there + startable >= job.nodes)
    # And no more is started than it takes.
    if not made.unplaced:
        assert len(made.starts) == max(0, job.nodes - there)


def times(size: Size, each: Size, limits: Limits | None) -> int:
    by_mem = size.mem_mb // each.mem_mb if each.mem_mb else 1000
    most = 1 if limits is not None and limits.one_per_agent else 1000
    return min(size.cpus // each.cpus, by_mem, most)


@given(JOBS, ROOMS, LIMITS)
def test_where_time_is_short_only_jobs_that_end_in_it_have_nodes_started(jobs, rooms, limits):
    for job in jobs:
        for start in plan([job], {}, rooms, limits).starts:
            assert start.room.most_s is None or (job.walltime_s or 1e9) <= start.room.most_s


@given(JOBS.filter(bool), ROOMS, LIMITS)
def test_what_can_never_run_is_not_placed_on_an_empty_cluster(jobs, rooms, limits):
    """And what can be placed there is never told that it cannot run."""
    bounds = Bounds(
        most_nodes=limits.nodes,
        share=limits.size,
        limit=None,
        agents=[room.size - limits.overhead for room in rooms],
        one_per_agent=limits.one_per_agent,
    )
    for job in jobs:
        one = Job("1", "n", "u", "waiting", job.nodes, job.cpus, job.mem_mb, job.walltime_s)
        if not plan([one], {}, rooms, limits).unplaced:
            assert never(one, bounds) == ""
