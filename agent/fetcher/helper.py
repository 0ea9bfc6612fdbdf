"""The process that fetches for one task: `python -m agent.fetcher`.

It becomes the task's user before it opens anything, so that it can do no more than the
task itself could, and whatever happens to it happens to this task alone: it is killed
when the fetch is stopped or takes too long.  See `job` for what it is told and says.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import resource
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from agent.fetcher import archives, sources
from agent.fetcher.archives import CHUNK_BYTES, BadArchive, write_all
from agent.fetcher.job import Item, Job, Word
from agent.fetcher.tree import Full, Tree, Unsafe

# How often progress is told at most.
_TELL_EVERY_S: Final = 0.5
# What unpacking may take beside what is used before it: dictionaries of compressors.
_UNPACK_MEMORY_BYTES: Final = 1 << 30
_DISK: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO})


class _Failure(Exception):
    """The end of the job; the arguments are kind and reason."""

    def __init__(self, kind: str, why: str) -> None:
        super().__init__(kind, why)
        self.kind = kind
        self.why = why


class _Telling:
    """Writes words; of progress not every one."""

    def __init__(self) -> None:
        self._told_s = 0.0
        self.item = 0

    def say(self, word: Word) -> None:
        line = json.dumps({"item": self.item, **word})
        os.write(1, line.encode() + b"\n")

    def progress(self, word: Word) -> None:
        now_s = time.monotonic()
        if now_s - self._told_s >= _TELL_EVERY_S:
            self._told_s = now_s
            self.say(word)


def main() -> None:
    """The process: one line with a job comes in, words go out."""
    os.umask(0o022)
    # What fetches leaves no memory behind that might hold passwords.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    line = sys.stdin.buffer.readline()
    if not line:
        return
    job: Job = json.loads(line)
    threading.Thread(target=_end_with_agent, daemon=True).start()
    telling = _Telling()
    code = 1
    try:
        run(job, telling)
        telling.say({"what": "done"})
        code = 0
    except _Failure as failure:
        telling.say({"what": "failed", "kind": failure.kind, "why": failure.why})
    except MemoryError:
        telling.say({"what": "failed", "kind": "refused", "why": "needs too much memory"})
    except BrokenPipeError:
        pass
    except Exception as error:
        # A bug of ours or of a library: still a word that names it.
        text = f"{type(error).__name__}: {error}"[:300]
        telling.say({"what": "failed", "kind": "other", "why": text})
    # Not by way of clean-ups: threads of libraries may hang in the network.
    os._exit(code)


def run(job: Job, telling: _Telling) -> None:
    """Do the job.  Raises _Failure."""
    fetched = [item["uri"] for item in job["items"] if item["source"] is None]
    try:
        sources.prepare(fetched)
    except sources.SourceError as error:
        raise _Failure("source", str(error)) from None
    if any(item["extract"] for item in job["items"]):
        with contextlib.suppress(ImportError):
            import zstandard  # noqa: F401
    _become(job["user"])
    sandbox, sink = job["sandbox"], job["sink"]
    tree = Tree(sandbox, job["max_bytes"]) if sandbox is not None else None
    for number, item in enumerate(job["items"]):
        telling.item = number
        telling.say({"what": "start"})
        if tree is not None:
            _fetch(item, tree, telling)
        else:
            assert sink is not None
            limit = Tree(-1, job["max_bytes"])
            got = _copy(item, sink, limit, telling)
            telling.say({"what": "got", "bytes": got})


def _end_with_agent() -> None:
    while sys.stdin.buffer.read(4096):
        pass
    os._exit(1)


def _become(user: tuple[int, int, list[int]] | None) -> None:
    if user is None:
        return
    uid, gid, groups = user
    try:
        os.setgroups(groups)
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    except OSError as error:
        raise _Failure("other", f"cannot become uid {uid}: {error.strerror}") from None


def _fetch(item: Item, tree: Tree, telling: _Telling) -> None:
    """Put one item into the sandbox."""
    form = archives.format_of(item["target"][-1]) if item["extract"] else None
    if form is not None and item["source"] is not None:
        # Mesos: of a cached archive only the content appears.
        _verify(item, item["source"], telling)
        _unpack(sources.as_binary(item["source"]), form, item, tree, telling)
        return
    mode = 0o755 if item["executable"] else 0o644
    try:
        fd = tree.file(item["target"], mode)
        try:
            got = _copy(item, fd, tree, telling)
        except BaseException:
            # A part of a file must not be taken for the whole.
            with contextlib.suppress(OSError):
                tree.remove(item["target"])
            raise
        finally:
            os.close(fd)
        telling.say({"what": "got", "bytes": got})
        if form is not None:
            _unpack(sources.as_binary(tree.read(item["target"])), form, item, tree, telling)
    except Unsafe as error:
        raise _Failure("refused", str(error)) from None
    except OSError as error:
        raise _disk(error) from None


def _copy(item: Item, fd: int, limit: Tree, telling: _Telling) -> int:
    """Write what the item leads to into `fd`; how many bytes.  Raises _Failure."""
    stream, total = _opened(item)
    digest = hashlib.new(item["checksum"][0]) if item["checksum"] else None
    got = 0
    try:
        if total is not None and item["source"] is None:
            telling.say({"what": "bytes", "bytes": 0, "total": total})
        while data := _read(item, stream):
            limit.charge(len(data))
            try:
                write_all(fd, data)
            except OSError as error:
                raise _disk(error) from None
            if digest is not None:
                digest.update(data)
            got += len(data)
            progress: Word = {"what": "bytes", "bytes": got}
            if total is not None:
                progress["total"] = total
            telling.progress(progress)
    except Full as error:
        raise _Failure("refused", f"is {error}") from None
    finally:
        with contextlib.suppress(Exception):
            stream.close()
    if total is not None and got != total:
        raise _Failure("source", f"ended after {got} of {total} bytes")
    if digest is not None and item["checksum"] is not None:
        _compare(item["checksum"], digest.hexdigest())
    return got


def _opened(item: Item) -> sources.Opened:
    if item["source"] is not None:
        size = os.fstat(item["source"]).st_size
        return sources.Opened(sources.as_binary(item["source"]), size)
    try:
        return sources.open_uri(item["uri"])
    except Exception as error:
        raise _Failure("source", _without(item, sources.why(error))) from None


def _read(item: Item, stream: sources.Stream) -> bytes:
    try:
        return stream.read(CHUNK_BYTES)
    except Exception as error:
        text = _without(item, sources.why(error))
        raise _Failure("source", f"broke off: {text}") from None


def _verify(item: Item, fd: int, telling: _Telling) -> None:
    if item["checksum"] is None:
        return
    digest = hashlib.new(item["checksum"][0])
    at = 0
    while data := os.pread(fd, CHUNK_BYTES, at):
        digest.update(data)
        at += len(data)
        telling.progress({"what": "bytes", "bytes": at})
    _compare(item["checksum"], digest.hexdigest())


def _compare(wanted: tuple[str, str], found: str) -> None:
    kind, digits = wanted
    if found != digits:
        raise _Failure("checksum", f"wrong checksum: {kind} is {found}, not {digits}")


def _unpack(
    source: BinaryIO, form: archives.Format, item: Item, tree: Tree, telling: _Telling
) -> None:
    moved = 0

    def progress(entries: int, written: int) -> None:
        nonlocal moved
        moved = written
        telling.progress({"what": "bytes", "bytes": written})

    with source, _less_memory():
        try:
            entries = archives.unpack(source, form, item["target"], tree, progress)
        except Unsafe as error:
            raise _Failure("refused", f"not unpacked: {error}") from None
        except Full as error:
            raise _Failure("refused", f"not unpacked: {error}") from None
        except BadArchive as error:
            raise _Failure("refused", str(error)) from None
        except OSError as error:
            raise _disk(error) from None
    telling.say({"what": "unpacked", "entries": entries, "bytes": moved})


@contextlib.contextmanager
def _less_memory() -> Iterator[None]:
    """Archives may ask for absurd amounts of memory: the limit is set around unpacking."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    soft = pages * resource.getpagesize() + _UNPACK_MEMORY_BYTES
    if before[1] != resource.RLIM_INFINITY:
        soft = min(soft, before[1])
    resource.setrlimit(resource.RLIMIT_AS, (soft, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def _disk(error: OSError) -> _Failure:
    text = os.strerror(error.errno) if error.errno else str(error)
    if error.errno == errno.ENOSPC:
        text = "the disk of the agent is full (no space left on device)"
    kind = "disk" if error.errno in _DISK else "other"
    return _Failure(kind, f"cannot be written: {text}")


def _without(item: Item, text: str) -> str:
    """Libraries like to repeat the URI, with all that is secret in it."""
    return text.replace(item["uri"], item["shown"])
