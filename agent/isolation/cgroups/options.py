"""What an operator may choose about control groups: the agent's flags, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from mesos_py.errors import InvalidValue

DEFAULT_ROOT: Final = "mesos_py"


@dataclass(frozen=True)
class Options:
    """`root` is a group beneath the top of each hierarchy; v2: beneath a group that was
    delegated to the agent, unless it starts with a slash."""

    root: str = DEFAULT_ROOT
    # Hard limits of processor time, beside shares.
    quota: bool = False
    # No swap beyond the memory limit.
    limit_swap: bool = False
    # Processes and threads of one container; 0: no limit.
    pids_limit: int = 0
    # For every container: by device, as v2's io.max has it.
    io_max: str = ""
    # Where sandboxes are: "*" in io limits is its disk.
    work_dir: str = "/"
    # What the agent may give away.
    cpus_milli: int = 0

    @classmethod
    def of(cls, flags: Mapping[str, object], work_dir: str, cpus_milli: int = 0) -> Options:
        """From the agent's flags by their fields' names; what is missing has its default."""
        wanted = {
            field: flags[flag]
            for field, flag in (
                ("root", "cgroups_root"),
                ("quota", "cgroups_enable_cfs"),
                ("limit_swap", "cgroups_limit_swap"),
                ("pids_limit", "cgroups_pids_limit"),
                ("io_max", "cgroups_io_max"),
            )
            if flag in flags
        }
        made = cls(**wanted, work_dir=work_dir, cpus_milli=cpus_milli)  # type: ignore[arg-type]
        for part in made.parts:
            check_name("cgroups-root", part, made.root)
        return made

    @property
    def parts(self) -> list[str]:
        return self.root.strip("/").split("/")


def check_name(field: str, name: str, whole: str | None = None) -> str:
    """`name` if it can name one group.  Raises InvalidValue."""
    if not name or name in (".", "..") or set(name) & set("/\0\n") or len(name.encode()) > 255:
        raise InvalidValue(field, whole if whole is not None else name, "names no group")
    return name
