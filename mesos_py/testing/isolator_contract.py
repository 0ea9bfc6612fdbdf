"""The contract of isolators, as tests.  For people who write one.

Subclass it in a test module of yours, say how one is made, and let pytest collect it::

    from agent.isolation import base
    from mesos_py.testing.isolator_contract import IsolatorContract

    class TestMyIsolator(IsolatorContract):
        interface = base

        def make(self, facts):
            return MyIsolator(facts)

The tests start real processes the way an agent does.  What an isolator is *for*, such
as a limit that holds, is not tested here; that nothing is left behind is.
"""

from __future__ import annotations

import math
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from mesos_py.resources import Resources
from mesos_py.testing.isolator_harness import IsolatorHarness, Running, runs, wait_for

SLEEP = "sleep 1000"
# A child that has left its parent, its session and its environment.
STRAY = "(setsid env -i sh -c 'echo $$ > stray; exec sleep 1000' &) ; exec sleep 1000"


class IsolatorContract:
    """See the module's docstring."""

    # The module of the interface, agent.isolation.base: this package does not import it.
    interface: Any
    # The agent's flags that `make` wants to find in `facts.flags`.
    flags: Mapping[str, Any] = {}
    # Whether `end` reaches a process that has left its container's session.
    reaches_all = False

    def make(self, facts: Any) -> Any:
        """A new isolator; called several times per test, also with the same agent id."""
        raise NotImplementedError

    def traces(self, agent_id: str) -> list[str]:
        """What is there on this machine now that was made for the agent, by name."""
        return []

    @pytest.fixture
    def h(self, tmp_path: Path) -> Iterator[IsolatorHarness]:
        harness = IsolatorHarness(self.interface, self.make, tmp_path, self.flags)
        yield harness
        harness.close()
        assert self.traces(harness.agent_id) == []

    @pytest.fixture
    def isolator(self, h: IsolatorHarness) -> Any:
        """One whose agent has just been started for the first time."""
        made = h.isolator()
        made.recover([])
        return made

    # ---- The life of a container --------------------------------------------------------

    def test_a_container_runs_and_leaves_nothing(self, h: IsolatorHarness, isolator: Any) -> None:
        before = self.traces(h.agent_id)
        running = h.start(isolator, h.container(), "echo yes > said")
        assert running.note("said") == "yes"
        assert running.wait() == 0
        assert isolator.end("c1") is None
        isolator.cleanup("c1")
        assert self.traces(h.agent_id) == before
        assert running.told == []

    def test_many_at_the_same_time_do_not_disturb_each_other(
        self, h: IsolatorHarness, isolator: Any
    ) -> None:
        before = self.traces(h.agent_id)
        errors: list[BaseException] = []

        def live(name: str) -> None:
            try:
                for _ in range(3):
                    running = h.start(isolator, h.container(name), "exit 0")
                    running.wait()
                    isolator.update(name, Resources.parse("cpus:1;mem:70;disk:64"))
                    isolator.usage(name)
                    h.finish(isolator, running)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=live, args=(f"c{n}",)) for n in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert errors == []
        assert self.traces(h.agent_id) == before

    def test_what_is_prepared_holds_from_the_first_instruction(
        self, h: IsolatorHarness, isolator: Any
    ) -> None:
        preparation = isolator.prepare(h.container())
        for file in (*preparation.enter, *preparation.namespaces):
            assert Path(file).exists()
        assert all("/" not in name and "=" not in name for name in preparation.environment)
        isolator.cleanup("c1")

    def test_descriptors_do_not_pile_up(self, h: IsolatorHarness, isolator: Any) -> None:
        counts = []
        for number in range(4):
            running = h.start(isolator, h.container(f"c{number}"), "exit 0")
            h.finish(isolator, running)
            counts.append(len(os.listdir("/proc/self/fd")))  # noqa: PTH208
        assert counts[-1] == counts[0]

    # ---- Limits and figures ---------------------------------------------------------------

    def test_limits_may_grow_and_shrink_at_any_time(
        self, h: IsolatorHarness, isolator: Any
    ) -> None:
        running = h.start(isolator, h.container(), SLEEP)
        for text in ("cpus:2;mem:128;disk:64", "cpus:0.1;mem:40;disk:64", "cpus:1;mem:64"):
            isolator.update("c1", Resources.parse(text))
        assert runs(running.pid)
        h.finish(isolator, running)
        assert running.told == []

    def test_usage_is_numbers_by_name_and_never_an_error(
        self, h: IsolatorHarness, isolator: Any
    ) -> None:
        running = h.start(isolator, h.container(), SLEEP)
        for name, value in isolator.usage("c1").items():
            assert name.isidentifier(), name
            assert name == name.lower(), name
            assert math.isfinite(value), name
            assert value >= 0, name
        h.finish(isolator, running)
        isolator.usage("c1")

    # ---- The end ----------------------------------------------------------------------------

    def test_end_and_cleanup_are_for_what_never_was_too_and_may_be_repeated(
        self, h: IsolatorHarness, isolator: Any
    ) -> None:
        for _ in range(2):
            assert isolator.end("never") is None
            isolator.cleanup("never")
        running = h.start(isolator, h.container(), SLEEP)
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        for _ in range(2):
            assert isolator.end("c1") is None
        for _ in range(2):
            isolator.cleanup("c1")

    def test_a_prepared_container_that_never_started_is_cleaned_up(
        self, h: IsolatorHarness, isolator: Any
    ) -> None:
        before = self.traces(h.agent_id)
        isolator.prepare(h.container())
        isolator.cleanup("c1")
        assert self.traces(h.agent_id) == before

    def test_a_container_that_ends_before_it_is_isolated_is_no_error(
        self, h: IsolatorHarness, isolator: Any
    ) -> None:
        for number in range(5):
            h.finish(isolator, h.start(isolator, h.container(f"c{number}"), "exit 0"))

    def test_end_reaches_what_has_left_the_session(self, h: IsolatorHarness, isolator: Any) -> None:
        if not self.reaches_all:
            return
        running = h.start(isolator, h.container(), STRAY)
        stray = int(running.note("stray"))
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        assert runs(stray)
        isolator.end("c1")
        assert not runs(stray)

    def test_end_kills_what_runs(self, h: IsolatorHarness, isolator: Any) -> None:
        if not self.reaches_all:
            return
        running = h.start(isolator, h.container(), STRAY)
        stray = int(running.note("stray"))
        assert isolator.end("c1") is None
        assert running.wait() == -signal.SIGKILL
        assert not runs(stray)

    # ---- The agent starts again ------------------------------------------------------------

    def test_an_agent_may_start_twice_in_a_row(self, h: IsolatorHarness) -> None:
        for _ in range(2):
            made = h.isolator()
            made.recover([])
            h.finish(made, h.start(made, h.container(), "exit 0"))
            h.stop(made)

    def test_a_container_that_goes_on_is_taken_up(self, h: IsolatorHarness, isolator: Any) -> None:
        running = h.start(isolator, h.container(), SLEEP)
        known = set(isolator.usage("c1"))
        h.stop(isolator)
        assert runs(running.pid)
        again = h.isolator()
        again.recover([h.recovered(running)])
        again.watch("c1", running.told.append)
        assert set(again.usage("c1")) == known
        again.update("c1", Resources.parse("cpus:1;mem:128;disk:64"))
        assert runs(running.pid)
        h.finish(again, running)
        assert running.told == []
        h.stop(again)
        assert self.traces(h.agent_id) == []

    def test_orphans_are_removed_and_those_that_are_known_stay(
        self, h: IsolatorHarness, isolator: Any
    ) -> None:
        before = self.traces(h.agent_id)
        known = h.start(isolator, h.container("known"), SLEEP)
        orphan = h.start(isolator, h.container("orphan"), SLEEP)
        if not self.reaches_all:
            os.killpg(orphan.pid, signal.SIGKILL)
            orphan.wait()
        again = h.isolator()
        again.recover([h.recovered(known)])
        if self.reaches_all:
            assert orphan.wait() == -signal.SIGKILL
        assert runs(known.pid)
        h.finish(again, known)
        assert self.traces(h.agent_id) == before

    def test_what_other_agents_have_is_not_touched(self, h: IsolatorHarness) -> None:
        lookalikes = (f"{h.agent_id}0", h.agent_id[:-1], f"x{h.agent_id}")
        others: list[tuple[Any, Running]] = []
        for agent_id in lookalikes:
            other = h.isolator(agent_id)
            other.recover([])
            others.append((other, h.start(other, h.container(f"of-{agent_id}"), SLEEP)))
        traces = [self.traces(agent_id) for agent_id in lookalikes]
        made = h.isolator()
        made.recover([])
        for _, running in others:
            made.end(running.container_id)
            made.cleanup(running.container_id)
        h.stop(made)
        assert [runs(running.pid) for _, running in others] == [True] * 3
        assert [self.traces(agent_id) for agent_id in lookalikes] == traces

    def test_a_kill_is_told_of_within_a_moment(self, h: IsolatorHarness, isolator: Any) -> None:
        """`end` returns once nothing runs, and not after a time-out."""
        running = h.start(isolator, h.container(), SLEEP)
        os.killpg(running.pid, signal.SIGKILL)
        isolator.end("c1")
        wait_for("the end", lambda: not runs(running.pid), within_s=5)
        running.wait()
