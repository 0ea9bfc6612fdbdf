"""How a container stands, and how it ended, from what `docker inspect` says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent.core.records import Exit


@dataclass(frozen=True)
class Standing:
    """One look at a container.  Only `running` and `paused` have processes."""

    docker_id: str
    status: str
    pid: int
    exit_code: int
    # dockerd was told by the kernel that a process of it was killed for its memory.
    oom_killed: bool
    error: str
    labels: Mapping[str, str]
    # In networks of its own.
    addresses: tuple[str, ...]

    @property
    def alive(self) -> bool:
        return self.status in ("running", "paused", "restarting")

    @property
    def is_new(self) -> bool:
        """Made, and never started."""
        return self.status == "created"

    @property
    def out_of_memory(self) -> bool:
        """It ended for its memory: that it did badly, and that dockerd says so.

        A task that got over the loss of a process has not failed, and an exit code of
        137 alone may mean anything.
        """
        return self.oom_killed and self.exit_code != 0

    def exit(self, sent: int | None) -> Exit:
        """dockerd turns a signal into 128 and its number, as a shell does: it is one for
        certain only if we have sent it."""
        if sent is not None and self.exit_code == 128 + sent:
            return Exit(sent)
        return Exit((self.exit_code & 0xFF) << 8)


def standing_of(inspected: Mapping[str, Any]) -> Standing:
    state = inspected.get("State") or {}
    config = inspected.get("Config") or {}
    networks = (inspected.get("NetworkSettings") or {}).get("Networks") or {}
    return Standing(
        docker_id=str(inspected.get("Id", "")),
        status=str(state.get("Status", "")),
        pid=int(state.get("Pid") or 0),
        exit_code=int(state.get("ExitCode") or 0),
        oom_killed=bool(state.get("OOMKilled")),
        error=str(state.get("Error") or ""),
        labels=config.get("Labels") or {},
        addresses=tuple(
            str(each[name])
            for each in networks.values()
            for name in ("IPAddress", "GlobalIPv6Address")
            if each and each.get(name)
        ),
    )
