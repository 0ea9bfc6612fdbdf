"""Persistent volumes in sandboxes: a symbolic link for each."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable

from agent.containers.sandbox import closing, open_directory, opened
from agent.containers.volume_links import Place, leads_to, link_volume
from agent.core.sandbox_paths import names_of_link
from agent.core.volume_uses import PATH_FIELD, VolumeUse
from agent.volumes.store import VolumeStore
from mesos_py.errors import MesosPyError, Unavailable


class VolumeLinks:
    """In sandboxes beneath one work directory."""

    def __init__(self, work_dir: str) -> None:
        self._work_dir = work_dir
        self._store = VolumeStore(work_dir)

    def show(self, uses: Iterable[VolumeUse], place: Place) -> None:
        """Give the volumes to whom the sandbox belongs, and link them there.

        A link may be there already.  Raises InvalidValue where something else is, and
        Unavailable for a volume that is not there.
        """
        for use in uses:
            self._store.give(use.key, place.uid, place.gid)
            target = self._store.path_of(use.key)
            path = use.container_path
            link_volume(place.fd, path, target, place.uid, place.gid, field=PATH_FIELD)

    def show_beneath(self, uses: Iterable[VolumeUse], sandbox: tuple[str, ...]) -> None:
        """The same in a sandbox that is there.  Raises MesosPyError."""
        try:
            with opened(self._work_dir) as root, closing(open_directory(root, sandbox)) as fd:
                found = os.fstat(fd)
                where = "/".join((self._work_dir, *sandbox))
                self.show(uses, Place(fd, where, found.st_uid, found.st_gid))
        except OSError as error:
            where = "/".join(sandbox)
            raise Unavailable(f"the sandbox {where} cannot be opened: {error.strerror}") from None

    def hide_beneath(self, uses: Iterable[VolumeUse], sandbox: tuple[str, ...]) -> None:
        """Remove their links, if they still are what was made there."""
        for use in uses:
            with contextlib.suppress(OSError, MesosPyError), opened(self._work_dir) as root:
                *above, name = names_of_link(PATH_FIELD, use.container_path)
                with closing(open_directory(root, (*sandbox, *above))) as parent:
                    if leads_to(parent, name, self._store.path_of(use.key)):
                        os.unlink(name, dir_fd=parent)


__all__ = ["VolumeLinks"]
