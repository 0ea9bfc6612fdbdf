"""The agent dies before or after each thing that an operation does to the disk.

Whatever it had written down then, its next run has: the volumes of the checkpoint are there
with what was in them, and of the others nothing is in anybody's way.
"""

import itertools
import os
from pathlib import Path

import pytest

from agent.core.volume_uses import VolumeKey
from agent.volumes.store import VolumeStore
from tests.kit import agent_core
from tests.kit.agent_volumes import VolumeWorld, agent_with_disk, made
from tests.kit.reserving import create, destroy

WRITES = ("mkdir", "rename", "rmdir", "fsync", "unlink")
BOTH = made() + made("v2")

# What there is before, what is done in one step, and what there is after: by each volume
# whether what was in it at first is in it still.
CASES = {
    "create": ([], [create(BOTH)], {"v1": False, "v2": False}),
    "destroy": ([create(BOTH)], [destroy(BOTH)], {}),
    "destroy one": ([create(BOTH)], [destroy(made())], {"v2": True}),
    "anew": ([create(BOTH)], [destroy(made()), create(made())], {"v1": False, "v2": True}),
    "anew and away": ([create(made())], [destroy(made()), create(made()), destroy(made())], {}),
    "for nothing": ([], [create(made()), destroy(made())], {}),
    "anew twice": (
        [create(made())],
        [destroy(made()), create(made()), destroy(made()), create(made())],
        {"v1": False},
    ),
}


class Died(BaseException):
    """kill -9."""


class Fate:
    """Of the agent: it dies at one of its writes."""

    def __init__(self, monkeypatch):
        self._left = None
        self._after = False
        # What it waits for would take minutes in all.
        monkeypatch.setattr(os, "fsync", lambda fd: None)
        for name in WRITES:
            monkeypatch.setattr(os, name, self._mortal(getattr(os, name)))

    def _mortal(self, write):
        def call(*args, **more):
            if self._left is None:
                return write(*args, **more)
            self._left -= 1
            if self._left < 0 and not self._after:
                raise Died
            result = write(*args, **more)
            if self._left < 0:
                raise Died
            return result

        return call

    def meets(self, action, number, *, after):
        """Whether it dies at that write before the action is done."""
        self._left, self._after = number, after
        try:
            action()
        except Died:
            return True
        finally:
            self._left = None
        return False


@pytest.fixture
def fate(monkeypatch):
    monkeypatch.setattr(agent_core, "agent_info", agent_with_disk)
    return Fate(monkeypatch)


class Machine:
    """An agent and its disk; what was in its volumes at first is "kept"."""

    def __init__(self, work_dir, before):
        work_dir.mkdir()
        self.store = VolumeStore(str(work_dir))
        self.roles = work_dir / "volumes/roles"
        self.world = VolumeWorld(self.store)
        self.world.apply(*before)
        self.first = {key.volume_id: True for key in self.world.core.saved_volumes()[0]}
        for volume_id in self.first:
            (self.roles / "ads" / volume_id / "kept").write_text("x")
        self.records = dict(self.world.records)

    def do(self, infos):
        """What the shell does: an order, the checkpoint, and what follows from it."""
        self.world.order(*infos)
        self.world.collect()
        for effect in self.world.effects:
            if hasattr(effect, "generation"):
                assert self.store.erase([effect.generation]) == []

    def restart(self):
        self.world.restart()
        return self.store.recover(*self.world.core.saved_volumes())

    @property
    def written(self):
        return self.world.records != self.records

    def found(self):
        """The volumes, each with whether what was in it is."""
        known = {key.volume_id for key in self.world.core.saved_volumes()[0]}
        places = {each.name for each in self.roles.glob("*/*")}
        assert places == known
        return {each: (self.roles / "ads" / each / "kept").exists() for each in known}


def settled(machine, after):
    """The agent has come back: it has what its checkpoint says, and goes on with it."""
    assert machine.found() == (after if machine.written else machine.first)
    assert machine.store.erase(()) == []
    for name in (".destroyed", ".trash"):
        assert not list(Path(machine.roles.parent, name).glob("*"))
    missing = {"v1", "v2"} - machine.found().keys()
    for volume_id in missing:
        assert not machine.world.apply(create(made(volume_id)))
    for volume_id in ("v1", "v2"):
        assert not machine.world.apply(destroy(made(volume_id)))
    assert machine.restart() == []
    assert machine.found() == {}


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("case", CASES)
def test_the_agent_dies_at_any_of_its_writes(fate, tmp_path, case, after):
    before, infos, then = CASES[case]
    written = set()
    for number in itertools.count():
        machine = Machine(tmp_path / str(number), before)
        if not fate.meets(lambda: machine.do(infos), number, after=after):  # noqa: B023
            break
        assert machine.restart() == []
        written.add(machine.written)
        settled(machine, then)
    settled(machine, then)
    # It died on both sides of the checkpoint, where there is something to do on both.
    assert number > 3
    assert False in written


@pytest.mark.parametrize("case", ["destroy one", "anew and away"])
def test_the_agent_dies_at_any_write_of_the_start_after_that_too(fate, tmp_path, case):
    before, infos, then = CASES[case]
    for first in itertools.count():
        for second in itertools.count():
            machine = Machine(tmp_path / f"{first}-{second}", before)
            died = fate.meets(lambda: machine.do(infos), first, after=True)  # noqa: B023
            again = died and fate.meets(machine.restart, second, after=True)
            assert machine.restart() == []
            settled(machine, then)
            if not again:
                break
        if not died:
            break


def test_a_volume_outlives_an_agent_that_could_not_write_that_it_is_destroyed(fate, tmp_path):
    """And what was made in its place, of which nothing is written either."""
    machine = Machine(tmp_path / "x", [create(made())])
    machine.world.order(destroy(made()), create(made()))
    assert not (machine.roles / "ads/v1/kept").exists()
    assert machine.restart() == []
    assert (machine.roles / "ads/v1/kept").exists()
    assert machine.world.core.saved_volumes()[0] == {VolumeKey("ads", "v1")}
