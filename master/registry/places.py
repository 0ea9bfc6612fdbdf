"""Which storage a master has, by its flags."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from master.registry.base import Storage
from master.registry.memory import MemoryStorage
from mesos_py.election.zookeeper.url import ZooKeeperUrl

# Beside the path of the election, which holds nothing but candidates.
SUFFIX: Final = "-registry"


def storage_of(zk: ZooKeeperUrl | None, session_timeout_s: float, work_dir: Path | None) -> Storage:
    """ZooKeeper for masters that are elected there; else a file; else it ends with us.

    Blocks while a file is looked through.  Raises InvalidValue for one that is not used.
    Called with an event loop running.
    """
    if zk is not None:
        # Only who uses ZooKeeper pays for loading its client.
        from master.registry.session_tree import SessionTree
        from master.registry.zookeeper import ZooKeeperStorage

        tree = SessionTree(zk, session_timeout_s)
        # Who has no answer for so long may have been replaced.
        return ZooKeeperStorage(tree, zk.path + SUFFIX, limit_s=session_timeout_s)
    if work_dir is not None:
        from master.registry.sqlite import SqliteStorage

        return SqliteStorage(work_dir)
    return MemoryStorage()
