"""What an executor is told by whoever starts it, in its environment."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from frameworks.rdd import properties
from frameworks.runtime.addresses import own_address
from mesos_py.errors import InvalidValue

VARIABLE: Final = "MESOS_PY_RDD_EXECUTOR"
SECRET_VARIABLE: Final = "MESOS_PY_RDD_SECRET"
PUBLISHED: Final = "published"
# Of every executor's environment, unless the user gives another: a partition that is made again
# elsewhere is to have its elements in the same order, also those that come out of a set.  What
# deals them out by their place (repartition, zipWithIndex, sample) would lose some otherwise,
# and have others twice.
HASHES: Final = {"PYTHONHASHSEED": "0"}


@dataclass(frozen=True, slots=True)
class Settings:
    """driver: the address of its link.  directory: for shuffle files, blocks and what was
    added; the executor's own.  "": its sandbox.  host: the name by which data's hosts are
    known; ip: where others call its block service, "": the address that leads to the driver.
    storage_bytes: the budget for blocks in memory.
    files_url: where the agent's file server has `directory`, "" if nowhere.
    parent_pid: whoever starts it; it ends when that does; 0: any.  remove: its directory,
    with all that is in it, when it ends; and the one around it, if its parent is gone.
    python_path: put at the end of the workers' sys.path.  preload: modules to be loaded
    before workers are forked.  worker_memory_bytes: what a task may hold while it combines
    or sorts.  reuse: whether a worker runs more than one task.
    """

    executor_id: str
    driver: str
    directory: str
    slots: int
    storage_bytes: int
    host: str
    ip: str
    files_url: str = ""
    agent_id: str = ""
    parent_pid: int = 0
    remove: bool = False
    python_path: tuple[str, ...] = ()
    preload: tuple[str, ...] = ()
    worker_memory_bytes: int = properties.WORKER_MEMORY.default
    reuse: bool = properties.WORKER_REUSE.default

    @property
    def place(self) -> Path:
        return Path(self.directory)

    @property
    def outputs(self) -> Path:
        """Of shuffles: others may read them when this executor has gone, and an agent keeps
        what is published longer than the rest of a sandbox."""
        return self.place / PUBLISHED

    def url(self, name: str) -> str:
        """Where others read a file below `outputs`; "" if nowhere."""
        return f"{self.files_url}/{PUBLISHED}/{name}" if self.files_url else ""

    def variables(self, secret: str) -> dict[str, str]:
        """The environment that says all this."""
        return {VARIABLE: json.dumps(asdict(self)), SECRET_VARIABLE: secret}


def from_environment(environment: Mapping[str, str] = os.environ) -> tuple[Settings, str]:
    """The settings and the secret.  Raises InvalidValue."""
    try:
        given: dict[str, Any] = json.loads(environment[VARIABLE])
        for name in ("python_path", "preload"):
            given[name] = tuple(given.get(name, ()))
        return _placed(Settings(**given), environment), environment[SECRET_VARIABLE]
    except KeyError as error:
        raise InvalidValue(str(error.args[0]), "", "is not set") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise InvalidValue(VARIABLE, environment[VARIABLE], str(error)) from None


def _placed(settings: Settings, environment: Mapping[str, str]) -> Settings:
    """What only the machine says that it runs on."""
    if not settings.directory:
        sandbox = environment.get("MESOS_SANDBOX") or str(Path.cwd())
        url = environment.get("MESOS_PY_FILES_URL", "").rstrip("/")
        settings = replace(settings, directory=sandbox, files_url=url)
    if not settings.ip:
        driver = settings.driver.rpartition(":")[0].strip("[]")
        settings = replace(settings, ip=own_address(driver, "ip"))
    return settings


def remove_secret() -> None:
    """User code is not to see it, nor what it starts."""
    os.environ.pop(SECRET_VARIABLE, None)
    os.environ.pop(VARIABLE, None)
