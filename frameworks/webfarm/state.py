"""What a farm keeps in its state directory.

`farm.json` is the wrapper's, written before what it says is done; `wish.json` is what people
ask of it (`deploy`, `down`), read by whichever wrapper runs, now or later; `status.json` is
what it shows.  haproxy's files are beside them.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from frameworks.webfarm.core.farm import Instance
from frameworks.webfarm.core.rollout import Rollout
from mesos_py.errors import InvalidValue, NotFound
from mesos_py.files import write_atomically

FARM: Final = "farm.json"
WISH: Final = "wish.json"
STATUS: Final = "status.json"
_FORMAT: Final = 1
# A wrapper that has shown nothing for so long does not run.
_STALE_S: Final = 15.0


@dataclass(slots=True)
class Record:
    """wanted: instances.  handled: the number of the last wish that was taken up.
    asked: the site that `up` was given last."""

    master: str = ""
    framework_id: str = ""
    wanted: int = 0
    handled: int = 0
    asked: str = ""
    rollout: Rollout = field(default_factory=Rollout)
    instances: list[Instance] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Wish:
    """number: each one has a higher one.  down: end; else deploy the site."""

    number: int
    site: str = ""
    down: bool = False


class StateDirectory:
    def __init__(self, path: Path) -> None:
        self.path = path

    def record(self) -> Record | None:
        """What was written last; None: there is no farm.  Raises InvalidValue naming the file."""
        found = self._read(FARM)
        if found is None:
            return None
        try:
            if found.pop("format") != _FORMAT:
                raise ValueError("it is of another version of mesos-py")
            instances = [Instance(**each) for each in found.pop("instances")]
            return Record(rollout=Rollout(**found.pop("rollout")), instances=instances, **found)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise self._broken(FARM, error) from error

    def keep(self, record: Record) -> None:
        write_atomically(self.path / FARM, json.dumps({"format": _FORMAT, **asdict(record)}))

    def wish(self) -> Wish | None:
        """The last one.  Raises InvalidValue naming the file."""
        found = self._read(WISH)
        try:
            return None if found is None else Wish(**found)
        except TypeError as error:
            raise self._broken(WISH, error) from error

    def make_wish(self, *, site: str = "", down: bool = False) -> Wish:
        """Ask it of the wrapper."""
        last, record = self.wish(), self.record()
        number = max(last.number if last else 0, record.handled if record else 0) + 1
        wish = Wish(number, site, down)
        write_atomically(self.path / WISH, json.dumps(asdict(wish)))
        return wish

    def no_farm(self) -> NotFound:
        """To be raised by who needs one."""
        why = "there is none: `mesos-py webfarm up` has not begun one, or it is down"
        return NotFound("farm", str(self.path), why)

    def show(self, status: dict[str, Any]) -> None:
        """The farm as it is now, for `status`."""
        told = {"pid": os.getpid(), "at_s": time.time(), **status}
        write_atomically(self.path / STATUS, json.dumps(told))

    def status(self) -> dict[str, Any] | None:
        """What was shown last, with `running`: whether the one who showed it still runs."""
        found = self._read(STATUS)
        if found is None:
            return None
        fresh = abs(time.time() - found.get("at_s", 0.0)) < _STALE_S
        found["running"] = fresh and Path(f"/proc/{found.get('pid')}").exists()
        return found

    def clear(self) -> None:
        """There is no farm any more."""
        for name in (WISH, STATUS, FARM):
            (self.path / name).unlink(missing_ok=True)

    def _read(self, name: str) -> dict[str, Any] | None:
        try:
            found = json.loads((self.path / name).read_text())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise self._broken(name, error) from error
        if not isinstance(found, dict):
            raise self._broken(name, ValueError("it holds no object"))
        return found

    def _broken(self, name: str, error: Exception) -> InvalidValue:
        return InvalidValue("state-dir", str(self.path / name), f"cannot be read: {error}")


__all__ = ["Record", "StateDirectory", "Wish"]
