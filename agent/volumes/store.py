"""The directories of persistent volumes, beneath the agent's work directory.

    volumes/roles/ROLE/ID                    what is in a volume ("/" of a role is written " ")
    volumes/.destroyed/GENERATION/ROLE/ID    of a volume that is destroyed, perhaps
    volumes/.trash                           what is being erased

Neither a directory nor the checkpoint can be changed together with the other, so the
directory comes first: whenever the agent dies, a volume that its checkpoint has has its
directory, with all that was in it.  What was put aside by an operation that the checkpoint
does not know of is put back at the next start.

Tasks write into volumes, and the agent may be root: no link is followed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from agent.containers.sandbox import check_part, closing, new_directory, open_directory, opened
from agent.core.volume_uses import VolumeKey
from agent.sandboxes.erasing import Trash, mounted_beneath, soften
from mesos_py import logs
from mesos_py.errors import Conflict, InvalidValue, Unavailable

log = logs.get("agent.volumes")

# May be a link of the operator's to another disk.
VOLUMES: Final = "volumes"
ROLES: Final = "roles"
DESTROYED: Final = ".destroyed"
TRASH: Final = ".trash"

_ABOVE: Final = 0o755
# Of a volume's own directory: as of a sandbox, it is given to who uses it.
MODE: Final = 0o750
_MAX_NAMED: Final = 5
# Why a directory that is there is not removed when an empty one would be.
_IN_THE_WAY: Final = frozenset({errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR, errno.EBUSY})


class _Aside(NamedTuple):
    """The directory of a volume that was destroyed, perhaps."""

    key: VolumeKey
    generation: int


def _parts(key: VolumeKey) -> tuple[str, ...]:
    """Where the volume is, as names beneath the directory of all.  Raises ValueError."""
    # No role has a blank in it.
    role = key.role.replace("/", " ")
    return ROLES, check_part(role), check_part(key.volume_id)


def path_of(work_dir: str, key: VolumeKey) -> str:
    """Where the volume is.  Raises ValueError."""
    return "/".join((work_dir, VOLUMES, *_parts(key)))


def _aside_parts(aside: _Aside) -> tuple[str, ...]:
    return DESTROYED, str(aside.generation), *_parts(aside.key)[1:]


class VolumeStore:
    """Of one work directory.  `erase` is for a worker thread, the rest for the loop."""

    def __init__(self, work_dir: str) -> None:
        self._work_dir = work_dir
        self._erasing = threading.Lock()

    def path_of(self, key: VolumeKey) -> str:
        return path_of(self._work_dir, key)

    def give(self, key: VolumeKey, uid: int, gid: int) -> None:
        """Its directory belongs to who uses it; what is in it stays as it is.

        Raises Unavailable where it is not there.
        """
        try:
            with self._volumes() as root, closing(open_directory(root, _parts(key))) as fd:
                found = os.fstat(fd)
                if (found.st_uid, found.st_gid) != (uid, gid):
                    os.fchown(fd, uid, gid)
        except OSError as error:
            raise _unavailable("cannot be used", key, error) from None

    @property
    def used(self) -> bool:
        """Whether there has ever been a volume."""
        return Path(self._work_dir, VOLUMES).exists()

    @contextlib.contextmanager
    def _volumes(self) -> Iterator[int]:
        """The directory of all, opened.  Raises FileNotFoundError: there has never been one."""
        with opened(f"{self._work_dir}/{VOLUMES}") as fd:
            yield fd

    # ---- Operations (core.volumes.Directories) -------------------------------------

    def create(self, volumes: Sequence[VolumeKey]) -> None:
        """As `Directories` says.  An empty directory that is there already was left by an
        agent that died before its checkpoint had the volume."""
        done: list[VolumeKey] = []
        try:
            with opened(self._work_dir) as work_dir:
                _make(work_dir, VOLUMES)
            with self._volumes() as root:
                made = _Above(root)
                for key in volumes:
                    self._create(made, key)
                    done.append(key)
                made.sync()
        except (OSError, Conflict) as error:
            self._undo_create(done)
            if isinstance(error, Conflict):
                raise
            raise _unavailable("cannot be made", _next(volumes, done), error) from None

    def _create(self, made: _Above, key: VolumeKey) -> None:
        *above, name = _parts(key)
        with closing(made.opened(above)) as parent:
            try:
                # Made anew, for it may have been given to somebody.
                os.rmdir(name, dir_fd=parent)
            except FileNotFoundError:
                pass
            except OSError as error:
                if error.errno not in _IN_THE_WAY:
                    raise
                text = f"{self.path_of(key)} is there and cannot be used ({error.strerror})"
                hint = "no volume is known for it: see to what is in it, and remove it"
                raise Conflict(f"{text}; {hint}", field="volumes") from None
            os.close(new_directory(parent, name, MODE))

    def _undo_create(self, done: list[VolumeKey]) -> None:
        for key in done:
            *above, name = _parts(key)
            # What stays is empty, and in nobody's way.
            with contextlib.suppress(OSError), self._volumes() as root:
                with closing(open_directory(root, above)) as parent:
                    os.rmdir(name, dir_fd=parent)

    def destroy(self, volumes: Sequence[VolumeKey], generation: int) -> None:
        """As `Directories` says.  Conflict: something is mounted there or below, which is
        more than a volume's."""
        self._require_unmounted(volumes)
        begun: list[_Aside] = []
        try:
            with self._volumes() as root:
                made = _Above(root)
                for key in volumes:
                    # Whatever of it was done when it fails.
                    begun.append(_Aside(key, generation))
                    self._put_aside(made, begun[-1])
                made.sync()
        except OSError as error:
            self._undo_destroy(begun)
            key = begun[-1].key if begun else volumes[0]
            raise _unavailable("cannot be put aside", key, error) from None

    def _require_unmounted(self, volumes: Sequence[VolumeKey]) -> None:
        root = f"{self._work_dir}/{VOLUMES}"
        mounts = sorted(mounted_beneath(Path(root)))
        base = os.path.realpath(root)
        for key in volumes if mounts else ():
            place = "/".join((base, *_parts(key)))
            for mount in mounts:
                if mount == place or mount.startswith(place + "/"):
                    text = f"the volume {key} cannot be destroyed: {mount} is a mount"
                    raise Conflict(f"{text}; unmount it first", field="volumes")

    def _put_aside(self, made: _Above, aside: _Aside) -> None:
        *above, name = _parts(aside.key)
        with (
            # In this order they are brought to the platter: it is there before it is gone.
            closing(made.opened(_aside_parts(aside)[:-1])) as target,
            closing(made.opened(above)) as source,
        ):
            try:
                os.rename(name, name, src_dir_fd=source, dst_dir_fd=target)
            except FileNotFoundError:
                # Somebody has done it already.
                log.warning("volume was gone before it was destroyed", volume=str(aside.key))
            except PermissionError:
                # Its own bits, or flags, do not keep a volume.
                soften(source, name)
                os.rename(name, name, src_dir_fd=source, dst_dir_fd=target)

    def _undo_destroy(self, begun: list[_Aside]) -> None:
        for aside in begun:
            try:
                with self._volumes() as root:
                    if not _is_there(root, aside.key):
                        self._put_back(root, aside)
            except OSError as error:
                # The next start puts it back.
                log.error("volume cannot be put back", volume=str(aside.key), error=error)

    def _put_back(self, root: int, aside: _Aside) -> None:
        *above, name = _parts(aside.key)
        with (
            closing(open_directory(root, _aside_parts(aside)[:-1])) as source,
            closing(_Above(root).opened(above)) as target,
        ):
            # One that was made in its place is as little known as that it was destroyed.
            with contextlib.suppress(FileNotFoundError):
                os.rmdir(name, dir_fd=target)
            os.rename(name, name, src_dir_fd=source, dst_dir_fd=target)
            os.fsync(target)
            os.fsync(source)

    # ---- Erasing -------------------------------------------------------------------

    def erase(self, generations: Collection[int]) -> list[OSError]:
        """Erase what operations of these generations have put aside, which the checkpoint
        knows, and what an earlier run did not come to.

        What stood in the way is returned, and tried again with the next.  Raises OSError.
        """
        with self._erasing, contextlib.ExitStack() as stack:
            try:
                root = stack.enter_context(self._volumes())
            except FileNotFoundError:
                return []
            trash = Trash(root, TRASH)
            stack.callback(trash.close)
            for fd in _present(root, (DESTROYED,)):
                for name in map(str, generations):
                    # One operation may have found nothing to put aside.
                    with contextlib.suppress(FileNotFoundError):
                        trash.take(fd, name)
            # It may have come since, and may be of the same file system.
            for mount in sorted(mounted_beneath(Path(self._work_dir, VOLUMES, TRASH))):
                return [OSError(errno.EBUSY, "is a mount, below what is to be erased", mount)]
            return trash.empty()

    # ---- The start -----------------------------------------------------------------

    def recover(self, known: Collection[VolumeKey], generation: int) -> list[str]:
        """Before anything else: see to it that the volumes of the checkpoint, and no others,
        are in their places.

        generation: what the checkpoint knows.  Returns the paths of what is there and
        nobody's; it is left alone.  Raises InvalidValue, naming what an operator can do,
        where a volume's directory is missing: what was in it is not given up in silence.
        """
        try:
            with self._volumes() as root:
                self._settle(root, known, generation)
                self._require_all(root, known)
                return self._left_over(root, known)
        except FileNotFoundError:
            if not known:
                return []
            raise _missing([self.path_of(key) for key in sorted(known)]) from None
        except OSError as error:
            text = f"cannot be put in order: {error.strerror} ({error.filename or 'no name'})"
            raise InvalidValue("volumes", f"{self._work_dir}/{VOLUMES}", text) from None

    def _settle(self, root: int, known: Collection[VolumeKey], generation: int) -> None:
        """Nothing is left of what was put aside, so that generations may begin anew."""
        for fd in _present(root, (DESTROYED,)):
            asides = sorted(_asides(fd), key=lambda each: each.generation)
            back: dict[VolumeKey, _Aside] = {}
            for each in asides:
                if each.key not in known:
                    continue
                if each.generation > generation:
                    # The earliest is what the checkpoint has: later ones were made after it.
                    back.setdefault(each.key, each)
                elif not _is_there(root, each.key):
                    # It could not be put back by who failed to destroy it.
                    back[each.key] = each
            trash = Trash(root, TRASH)
            try:
                # First, so that a start after this one does not take them for the earliest.
                for each in asides:
                    if back.get(each.key) != each:
                        self._throw_away(root, trash, each)
                for each in back.values():
                    log.warning("volume stays: its end was not written down", volume=str(each.key))
                    self._put_back(root, each)
                for name in _names(fd):
                    trash.take(fd, name)
            finally:
                trash.close()

    def _throw_away(self, root: int, trash: Trash, aside: _Aside) -> None:
        with closing(open_directory(root, _aside_parts(aside)[:-1])) as parent:
            trash.take(parent, aside.key.volume_id)
            os.fsync(parent)

    def _require_all(self, root: int, known: Collection[VolumeKey]) -> None:
        missing: list[str] = []
        for key in sorted(known):
            if not _is_there(root, key):
                missing.append(self.path_of(key))
        if missing:
            raise _missing(missing)

    def _left_over(self, root: int, known: Collection[VolumeKey]) -> list[str]:
        """Directories of no volume; those that are empty were left by a crash, and go."""
        places = {_parts(key) for key in known}
        found: list[str] = []
        for roles in _present(root, (ROLES,)):
            for role in sorted(_names(roles)):
                for fd in _present(roles, (role,)):
                    for name in sorted(_names(fd)):
                        place = (ROLES, role, name)
                        if place not in places and not _is_removed(fd, name):
                            found.append("/".join((self._work_dir, VOLUMES, *place)))
        return found


def _names(fd: int) -> list[str]:
    with os.scandir(fd) as entries:
        return [entry.name for entry in entries]


def _is_there(root: int, key: VolumeKey) -> bool:
    """Whether the directory is there, whoever may look into it."""
    *above, name = _parts(key)
    for fd in _present(root, above):
        with contextlib.suppress(FileNotFoundError):
            return stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode)
    return False


def _is_removed(parent: int, name: str) -> bool:
    try:
        os.rmdir(name, dir_fd=parent)
    except OSError:
        return False
    return True


def _present(root: int, parts: Sequence[str]) -> Iterator[int]:
    """The directory, opened, if it is one and there."""
    try:
        fd = open_directory(root, parts)
    except (FileNotFoundError, NotADirectoryError):
        return
    with closing(fd):
        yield fd


def _asides(fd: int) -> Iterator[_Aside]:
    """What was put aside; what else is there is nobody's."""
    for generation in filter(str.isdigit, _names(fd)):
        for roles in _present(fd, (generation,)):
            for role in _names(roles):
                for names in _present(roles, (role,)):
                    for name in _names(names):
                        yield _Aside(VolumeKey(role.replace(" ", "/"), name), int(generation))


class _Above:
    """The directories that volumes are in, of one operation: made where they are missing, and
    each brought to the platter once, however many volumes there are."""

    def __init__(self, root: int) -> None:
        self._root = root
        # In which something was made or moved; the first ones are above the others.
        self._changed: dict[tuple[str, ...], None] = {}

    def opened(self, parts: Sequence[str]) -> int:
        """One of them, for something to be made or moved in it."""
        fd = os.dup(self._root)
        for depth, part in enumerate(parts):
            try:
                # Also where it is there: a crash has left it perhaps before it was written.
                self._changed[tuple(parts[:depth])] = None
                with contextlib.suppress(FileExistsError):
                    os.close(new_directory(fd, part, _ABOVE))
                below = open_directory(fd, (part,))
            finally:
                os.close(fd)
            fd = below
        self._changed[tuple(parts)] = None
        return fd

    def sync(self) -> None:
        """What was done is there whatever becomes of the machine."""
        for parts in self._changed:
            with closing(open_directory(self._root, parts)) as fd:
                os.fsync(fd)


def _next(volumes: Sequence[VolumeKey], done: Sequence[object]) -> VolumeKey:
    """Of which volume something went wrong; the last one if it was of all."""
    return volumes[min(len(done), len(volumes) - 1)]


def _make(parent: int, name: str) -> None:
    with contextlib.suppress(FileExistsError):
        os.close(new_directory(parent, name, _ABOVE))
    # Also of one that a crash has left perhaps before it was on the platter.
    os.fsync(parent)


def _unavailable(what: str, key: VolumeKey, error: OSError) -> Unavailable:
    return Unavailable(f"the volume {key} {what}: {error.strerror}", field="volumes")


def _missing(places: list[str]) -> InvalidValue:
    shown = ", ".join(places[:_MAX_NAMED])
    if len(places) > _MAX_NAMED:
        shown += f" and {len(places) - _MAX_NAMED} more"
    text = (
        f"must be there, for tasks may have kept something in it: {shown}; mount or restore what"
        " is missing, or make an empty directory there to go on without what was in it"
    )
    return InvalidValue("volumes", f"{len(places)} missing", text)


__all__ = ["VolumeStore", "path_of"]
