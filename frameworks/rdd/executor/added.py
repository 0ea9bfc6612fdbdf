"""Files of addFile and addPyFile in an executor."""

from __future__ import annotations

import os
from pathlib import Path

from frameworks.rdd.executor import orders, packets
from frameworks.rdd.executor.uplink import Peers
from frameworks.rdd.messages import AddFiles, BlockId
from mesos_py import logs
from mesos_py.errors import Unavailable

_log = logs.get("rdd.executor")


class Added:
    """Each comes from the driver, into `directory`, under its name: whole, or not at all."""

    def __init__(self, directory: Path, driver: str, peers: Peers) -> None:
        self._directory = directory
        self._driver = driver
        self._peers = peers
        self._missing: dict[str, tuple[BlockId, ...]] = {}
        self._python: list[str] = []

    def add(self, message: AddFiles) -> None:
        """They are missing from now on; one that is there under the same name until it comes."""
        self._missing.update(message.files)
        self._python += message.paths

    @property
    def whole(self) -> bool:
        """Whether all are there."""
        return not self._missing

    @property
    def paths(self) -> orders.Paths:
        """For workers."""
        names = [each for each in self._python if each not in self._missing]
        return orders.Paths(
            str(self._directory), tuple(str(self._directory / each) for each in names)
        )

    async def fetch(self) -> None:
        """Those that are missing, also if they are added meanwhile.

        Raises Unavailable, which names those that cannot be had; all others are there then,
        and whoever calls this again tries them again.
        """
        failed: dict[str, str] = {}
        while names := [each for each in self._missing if each not in failed]:
            blocks = self._missing[names[0]]
            try:
                await self._fetch(names[0], blocks)
            except (Unavailable, OSError) as error:
                failed[names[0]] = str(error)
            else:
                if self._missing[names[0]] == blocks:
                    del self._missing[names[0]]
        if failed:
            said = "; ".join(f"{name}: {why}" for name, why in failed.items())
            _log.warning("added files cannot be had", reason=said)
            raise Unavailable(f"what addFile has added cannot be had: {said}")

    async def _fetch(self, name: str, blocks: tuple[BlockId, ...]) -> None:
        os.makedirs(self._directory, exist_ok=True)  # noqa: PTH103
        unfinished = self._directory / f".{name}.part"
        fd = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            start = 0
            for block in blocks:

                def take(piece: bytes, position: int, start: int = start) -> None:
                    packets.write_all(fd, piece, start + position)

                start += await self._peers.fetch_from_any((self._driver,), block, take)
        finally:
            os.close(fd)
        unfinished.rename(self._directory / name)


__all__ = ["Added"]
