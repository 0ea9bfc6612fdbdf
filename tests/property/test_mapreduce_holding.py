"""A large task beside small ones of any size and time: it starts, and costs one agent's room."""

from __future__ import annotations

from hypothesis import event, given, settings
from hypothesis import strategies as st

from tests.kit.mapreduce_brain import Shell, options, spec, splits

AFTER_S, LONGEST_S, LARGE_MB = 5, 10, 900


@settings(max_examples=min(25, settings().max_examples))
@given(
    agents=st.integers(1, 3),
    small_mb=st.sampled_from([120, 250, 400]),
    lasts_s=st.lists(st.integers(1, LONGEST_S), min_size=1, max_size=9),
    begun_s=st.integers(0, 12),
)
def test_it_starts_when_the_longest_of_one_agent_have_ended_and_others_go_on(
    agents: int, small_mb: int, lasts_s: list[int], begun_s: int
) -> None:
    shell = Shell(options(hold_after_s=AFTER_S, hold_s=2 * LONGEST_S))
    for number in range(agents):
        shell.agent(f"a{number}")
    small = {
        "mapreduce__map__memory__mb": str(small_mb),
        "mapreduce__map__cpu__vcores": "0.1",
        "mapreduce__map__speculative": "false",
    }
    shell.submit(spec(1, 0, **small), splits(1000))
    ends_s: dict[str, int] = {}
    for second in range(begun_s + AFTER_S + LONGEST_S + 5):
        if second == begun_s:
            large = small | {"mapreduce__map__memory__mb": str(LARGE_MB)}
            shell.submit(spec(2, 0, **large), splits(1))
        shell.finish(*[name for name in shell.running() if ends_s.get(name) == second])
        shell.commit()
        shell.tick(1)
        shell.offer_all()
        for name in shell.running():
            ends_s.setdefault(name, second + lasts_s[len(ends_s) % len(lasts_s)])
        free_mb = [agent.free.scalars.get("mem", 0) / 1000 for agent in shell.agents.values()]
        kept = sum(free >= small_mb for free in free_mb)
        assert kept <= (1 if second >= begun_s + AFTER_S else 0), free_mb
        event("an agent is kept" if kept else "all are used")
        if any("_0002_" in name for name in shell.running()):
            return
    raise AssertionError(f"not started: {shell.running()}")
