"""Which sandboxes were removed, and when: for those who ask for their logs later."""

from __future__ import annotations

import json
from collections import OrderedDict
from pathlib import Path
from typing import Final, NamedTuple

from mesos_py import logs
from mesos_py.files import write_atomically

log = logs.get("agent.sandboxes")

LIMIT: Final = 20_000


class Removal(NamedTuple):
    container_id: str
    framework_id: str
    executor_id: str
    at_wall_s: float


class Removals:
    """The newest removals, in a file with a line for each."""

    def __init__(self, path: Path, limit: int = LIMIT) -> None:
        self._path = path
        self._limit = limit
        self._by_container: OrderedDict[str, Removal] = OrderedDict()
        self._by_executor: dict[tuple[str, str], Removal] = {}
        self._lines = 0
        self._read()

    def __len__(self) -> int:
        return len(self._by_container)

    def of_container(self, container_id: str) -> Removal | None:
        return self._by_container.get(container_id)

    def of_executor(self, framework_id: str, executor_id: str) -> Removal | None:
        """The newest one of this executor, or of the command task with this id."""
        return self._by_executor.get((framework_id, executor_id))

    def expect(self, removal: Removal) -> None:
        """It is about to be: who misses the sandbox from now on is told so."""
        self._take(removal)

    def unexpect(self, removal: Removal) -> None:
        """It was not removed after all."""
        self._by_container.pop(removal.container_id, None)
        key = (removal.framework_id, removal.executor_id)
        if self._by_executor.get(key) is removal:
            del self._by_executor[key]

    def add(self, removal: Removal) -> None:
        """Remember it.  Raises OSError; it is known to this process all the same."""
        self._take(removal)
        if self._lines >= 2 * self._limit:
            self._write()
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a") as file:
            file.write(_line(removal))
        self._lines += 1

    def _take(self, removal: Removal) -> None:
        self._by_container[removal.container_id] = removal
        self._by_executor[removal.framework_id, removal.executor_id] = removal
        while len(self._by_container) > self._limit:
            _, oldest = self._by_container.popitem(last=False)
            key = (oldest.framework_id, oldest.executor_id)
            if self._by_executor.get(key) is oldest:
                del self._by_executor[key]

    def _read(self) -> None:
        try:
            lines = self._path.read_bytes().splitlines()
        except FileNotFoundError:
            return
        damaged = 0
        for line in lines:
            try:
                container_id, framework_id, executor_id, at_wall_s = json.loads(line)
                made = Removal(str(container_id), str(framework_id), str(executor_id), 0.0)
                self._take(made._replace(at_wall_s=float(at_wall_s)))
            except (ValueError, TypeError):
                damaged += 1
        self._lines = len(lines)
        if damaged:
            # Written anew: the next line must not be glued to half of one.
            log.warning("removals cannot all be read", path=self._path, lines=damaged)
            self._write()

    def _write(self) -> None:
        write_atomically(self._path, "".join(map(_line, self._by_container.values())))
        self._lines = len(self._by_container)


def _line(removal: Removal) -> str:
    return json.dumps(list(removal)) + "\n"
