"""An agent is kept, for a while, for a job whose tasks are too large for what becomes free."""

from __future__ import annotations

from collections.abc import Callable

from tests.kit.mapreduce_brain import Shell, job_id, options, spec, splits

SMALL, LARGE, OTHER = 1, 2, 3


class Beside:
    """Many small maps, each of a second and a quarter of an agent, and a job of one large map."""

    def __init__(self, agents: int = 2, large_mb: int = 1000, **changes: object) -> None:
        self.shell = Shell(options(**changes))
        for n in range(agents):
            self.shell.agent(f"a{n}")
        self.shell.submit(spec(SMALL, 0, **needs(250)), splits(2000))
        self.shell.offer()
        self.large(LARGE, large_mb)

    def large(self, number: int, mem_mb: int, **conf: str) -> None:
        self.shell.submit(spec(number, 0, **needs(mem_mb), **conf), splits(1))

    def go_on(self, seconds: int, until: Callable[[], object] = lambda: False) -> int | None:
        """Each second the oldest of all that runs ends.  After how many seconds `until` was so."""
        shell = self.shell
        for second in range(1, seconds + 1):
            small = [name for name in shell.running() if f"_{SMALL:04}_" in name]
            shell.finish(*small[:1])
            shell.commit()
            shell.tick(1)
            shell.offer()
            if until():
                return second
        return None

    def runs(self, number: int = LARGE) -> bool:
        return any(f"_{number:04}_" in name for name in self.shell.running())

    def idle_mb(self) -> float:
        free = [agent.free.scalars.get("mem", 0) for agent in self.shell.agents.values()]
        return sum(free) / 1000


def needs(mem_mb: int) -> dict[str, str]:
    return {"mapreduce__map__memory__mb": str(mem_mb), "mapreduce__map__cpu__vcores": "0.1"}


def test_a_large_task_beside_many_small_ones_gets_its_room_after_a_while():
    made = Beside(hold_after_s=30.0)
    after_s = made.go_on(200, made.runs)
    # Patience, and then four small ones at the most of each agent in turn.
    assert after_s is not None
    assert 30 < after_s <= 40
    # Nothing is kept any more: what it has left of the agent, and what follows it, is for all.
    made.shell.finish(*[name for name in made.shell.running() if "_0002_" in name])
    made.shell.commit()
    made.shell.offer()
    assert made.idle_mb() == 48


def test_without_patience_it_would_wait_as_long_as_there_are_small_ones():
    made = Beside(hold_after_s=1e9)
    assert made.go_on(200, made.runs) is None


def test_only_one_agent_is_kept_at_a_time():
    made = Beside(agents=4)
    made.large(OTHER, 1000)
    idle = []

    def look() -> bool:
        idle.append(made.idle_mb())
        return made.runs()

    made.go_on(200, look)
    # Of the others that is what there is beside four small ones and a worker.
    assert max(idle[:-1]) < 1024 + 3 * 24
    assert not made.runs(OTHER)
    made.shell.finish(*[name for name in made.shell.running() if "_0002_" in name])
    made.shell.commit()
    assert made.go_on(100, lambda: made.runs(OTHER)) is not None


def test_no_agent_is_kept_where_there_would_not_be_room_either():
    made = Beside(large_mb=2000)
    idle = []
    made.go_on(200, lambda: idle.append(made.idle_mb()))
    assert max(idle) == 48


def test_it_is_given_up_after_a_time_and_tried_again_later():
    made = Beside(agents=1, hold_after_s=30.0, hold_s=20.0)
    shell = made.shell
    oldest = shell.running()[0]
    idle = []
    for _ in range(80):
        small = [name for name in shell.running() if name != oldest and "_0001_" in name]
        shell.finish(*small[:1])
        shell.commit()
        shell.tick(1)
        shell.offer()
        idle.append(made.idle_mb() > 500)
        assert not made.runs()
    # One of the small ones does not end: the agent was kept from 31 to 51, and again from 82.
    assert idle.index(True) in range(31, 36)
    assert not any(idle[51:80])


def test_no_agent_is_kept_for_a_job_that_has_room_and_waits_for_its_input():
    made = Beside(large_mb=2000)
    choosy = spec(OTHER, 0, mesos__locality__wait__host="3600", **needs(250))
    made.shell.submit(choosy, splits(1, [("elsewhere",)]))
    idle = []
    made.go_on(100, lambda: idle.append(made.idle_mb()))
    assert max(idle) == 48


def test_a_job_that_is_killed_keeps_nothing():
    made = Beside(agents=1)
    made.go_on(33)
    assert made.idle_mb() > 500
    made.shell.brain.kill(job_id(LARGE), "not wanted", made.shell.now_s)
    made.shell.drain()
    made.go_on(2)
    assert made.idle_mb() == 24


def test_an_agent_that_is_lost_is_kept_no_more_and_another_one_is():
    made = Beside()
    made.go_on(32)
    why = made.shell.brain.view(job_id(LARGE)).waiting_for
    assert why.endswith(", which is kept for it")
    kept = next(name for name in made.shell.agents if f"room on {name}." in why)
    made.shell.lose_agent(kept)
    assert made.go_on(20, made.runs) is not None


def test_by_priority_no_agent_is_kept_for_a_job_that_comes_later():
    made = Beside(order="priority")
    made.large(OTHER, 1000, mapreduce__job__priority="high")
    after_s = made.go_on(200, lambda: made.runs(OTHER))
    assert after_s is not None
    assert after_s <= 45
    # The other large one has the same priority as the small ones, and came after them.
    made.shell.finish(*[name for name in made.shell.running() if "_0003_" in name])
    made.shell.commit()
    assert made.go_on(200, made.runs) is None


def test_where_all_that_runs_ends_at_once_the_older_job_does_not_always_come_first():
    made = Beside(agents=1)
    shell = made.shell
    for _ in range(40):
        if made.runs():
            break
        shell.finish(*shell.running())
        shell.commit()
        shell.tick(1)
        shell.offer_all()
    assert made.runs()
