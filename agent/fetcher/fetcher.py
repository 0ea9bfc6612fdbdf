"""The agent's part of fetching: what is shared, who works, for how long, what was said.

A fetch runs in processes of its own (`helper`), as the task's user: one for each file
that the cache has not got, then one that fills the sandbox.  To cancel the coroutine
ends them.  What happens is told in the task's stderr and in the agent's log.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pwd
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from agent.containers import sandbox
from agent.containers.users import User
from agent.core.effects import ContainerSpec
from agent.fetcher.cache import Cache, Growing, Key, Lease, NoRoom
from agent.fetcher.job import Item, Job
from agent.fetcher.uris import item_of
from agent.fetcher.watch import Failed, Watch, size_text
from mesos_py import logs
from mesos_py.config_kinds import duration_text
from mesos_py.errors import InvalidValue, Refused
from mesos_py.metrics import Metrics

log = logs.get("agent.fetcher")

# Processes at the same time; further fetches wait.
MAX_AT_ONCE: Final = 8
# What fetching needs of the agent's own environment: ways out, and trust.
_PASSED_ON: Final = (
    *("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "LANG", "LC_ALL", "TZ"),
    *("JAVA_HOME", "HADOOP_HOME", "HADOOP_CONF_DIR", "CLASSPATH", "ARROW_LIBHDFS_DIR"),
)
_MAX_WORD_BYTES: Final = 64 * 1024


@dataclass(frozen=True)
class Limits:
    """What an operator may choose."""

    cache_bytes: int = 2 << 30
    stall_timeout_s: float = 60.0
    timeout_s: float = 1800.0
    max_bytes: int = 10 << 30
    frameworks_home: str | None = None


class Fetcher:
    """Fetches for all tasks of one agent.  Used from one event loop."""

    def __init__(self, work_dir: str, limits: Limits, metrics: Metrics) -> None:
        self._work_dir = work_dir
        self._limits = limits
        self.cache = Cache(Path(work_dir, "fetcher", "cache"), limits.cache_bytes)
        self._running: dict[str, asyncio.Task[None]] = {}
        self._free = asyncio.Semaphore(MAX_AT_ONCE)
        self._ends = metrics.counter("fetches_total", "Fetches for tasks, by outcome", ("outcome",))
        metrics.watch(
            "fetcher_cache_bytes", "Bytes in the fetcher's cache", lambda: self.cache.used_bytes
        )
        metrics.watch("fetcher_cache_hits", "Files that were in the cache", lambda: self.cache.hits)
        metrics.watch(
            "fetcher_cache_misses", "Files that were not in the cache", lambda: self.cache.misses
        )

    def start(self) -> None:
        """Forget what an earlier run of the agent had cached.  Raises OSError."""
        self.cache.clear()

    def begin(
        self,
        spec: ContainerSpec,
        find_user: Callable[[str], User],
        done: Callable[[Exception | None], None],
    ) -> None:
        """`run`, beside the loop; `done` is told of its end, with what it raised.

        After `stop` it is told as well, with None; after `close` it is not.
        """
        container_id = spec.container_id
        task = asyncio.get_running_loop().create_task(self.run(spec, find_user))
        self._running[container_id] = task

        def ended(task: asyncio.Task[None]) -> None:
            if self._running.pop(container_id, None) is not None:
                error = None if task.cancelled() else task.exception()
                # What is no Exception ends the agent anyway.
                done(error if isinstance(error, Exception) else None)

        task.add_done_callback(ended)

    def stop(self, container_id: str) -> None:
        """End what was begun for the container, if anything was."""
        task = self._running.get(container_id)
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        """End all that was begun, telling nobody, and wait until it has."""
        tasks = list(self._running.values())
        self._running.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def run(self, spec: ContainerSpec, find_user: Callable[[str], User]) -> None:
        """Put all that the container's command asks for into its sandbox.

        Raises Refused, or whatever `find_user` raises, naming the URI (without secrets) and
        the cause.  What the task did to be killed is not known here: cancel.
        """
        outcome = "failed"
        try:
            user = await asyncio.to_thread(find_user, spec.user)
            with self._place(spec, user) as place:
                await self._in_time(spec, user, place)
            outcome = "fetched"
        except asyncio.CancelledError:
            outcome = "stopped"
            raise
        except OSError as error:
            where = error.filename or "the sandbox"
            text = f"cannot fetch into the sandbox: {where}: {error.strerror}"
            raise Refused(text) from error
        finally:
            self._ends.labels(outcome).inc()

    @contextlib.contextmanager
    def _place(self, spec: ContainerSpec, user: User) -> Iterator[_Place]:
        with contextlib.ExitStack() as stack:
            root = stack.enter_context(sandbox.opened(self._work_dir))
            made = sandbox.create(root, spec.sandbox, user.uid, user.gid)
            directory = stack.enter_context(sandbox.closing(made))
            opened = sandbox.open_output(directory, sandbox.STDERR, user.uid, user.gid)
            stderr = stack.enter_context(sandbox.closing(opened))
            yield _Place(directory, stderr, spec)

    async def _in_time(self, spec: ContainerSpec, user: User, place: _Place) -> None:
        current: list[str] = []
        try:
            async with asyncio.timeout(self._limits.timeout_s):
                await self._all(spec, user, place, current)
        except TimeoutError:
            limit = duration_text(self._limits.timeout_s)
            raise self._refusal(place, current[-1], f"took longer than {limit} in all") from None
        except Failed as failure:
            raise self._refusal(place, failure.item["shown"], failure.why) from None
        except InvalidValue as error:
            raise self._refusal(place, str(error.value), error.reason) from None

    def _refusal(self, place: _Place, uri: str, why: str) -> Refused:
        text = f"cannot fetch {uri}: {why}"
        place.say(text)
        log.warning("fetch failed", container=place.container_id, uri=uri, why=why)
        # A reader of the task's output finds that it has none, not that it is missing.
        with contextlib.suppress(OSError):
            place.make_stdout()
        return Refused(text, uri=uri, why=why)

    async def _all(
        self, spec: ContainerSpec, user: User, place: _Place, current: list[str]
    ) -> None:
        leases: list[tuple[Key, Lease]] = []
        home = self._limits.frameworks_home
        current.append("its URIs")
        items = [item_of(uri, home) for uri in spec.command.uris]
        try:
            for item, uri in zip(items, spec.command.uris, strict=True):
                current.append(item["shown"])
                if uri.cache and self.cache.capacity_bytes:
                    lease = await self._lease(item, user, place)
                    if lease is not None:
                        item["source"] = lease.fd
                        leases.append((_key(user, item), lease))
            job = _job(items, user, self._limits.max_bytes)
            job["sandbox"] = place.directory
            try:
                await self._work(job, user, place, None, current)
            except Failed as failure:
                if failure.item["source"] is not None and failure.kind in ("checksum", "refused"):
                    self.cache.discard(_key(user, failure.item))
                raise
        finally:
            for _, lease in leases:
                lease.release()

    async def _lease(self, item: Item, user: User, place: _Place) -> Lease | None:
        """The item from the cache; None: it is fetched without it."""

        async def fill(fd: int, growing: Growing) -> None:
            most = min(self._limits.max_bytes, self.cache.capacity_bytes)
            job = _job([item], user, most)
            job["sink"] = fd
            try:
                await self._work(job, user, place, growing, [])
            except Failed as failure:
                # The source's fault is one without the cache, too.
                if failure.kind in ("source", "checksum"):
                    raise
                raise NoRoom(failure.why) from None

        try:
            lease = await self.cache.get(_key(user, item), fill)
        except NoRoom as error:
            place.say(f"{item['shown']} is fetched without the cache: {error}")
            log.info("fetch without cache", container=place.container_id, why=str(error))
            return None
        if lease.found:
            place.say(f"{item['shown']} is in the cache ({size_text(lease.size)})")
        return lease

    async def _work(
        self,
        job: Job,
        user: User,
        place: _Place,
        growing: Growing | None,
        current: list[str],
    ) -> None:
        """One process does the job.  Raises Failed and NoRoom."""
        async with self._free:
            with tempfile.TemporaryFile() as errors:
                process = await _started(job, user, errors)
                try:
                    now_s = asyncio.get_running_loop().time()
                    watch = Watch(job, place, growing, current, now_s)
                    await self._heard(process, job, watch)
                finally:
                    if process.returncode is None:
                        with contextlib.suppress(ProcessLookupError):
                            process.kill()
                    await _gone(process)
                watch.settle(_tail(errors), process.returncode)

    async def _heard(self, process: asyncio.subprocess.Process, job: Job, watch: Watch) -> None:
        loop = asyncio.get_running_loop()
        stall_s = self._limits.stall_timeout_s
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            async with asyncio.timeout(stall_s) as stalled:
                process.stdin.write(json.dumps(job).encode() + b"\n")
                while line := await process.stdout.readline():
                    if watch.hear(json.loads(line), loop.time()):
                        stalled.reschedule(loop.time() + stall_s)
        except TimeoutError:
            if not stalled.expired():
                raise
            text = f"stalled: nothing came for {duration_text(stall_s)}"
            raise Failed(watch.item, "source", text) from None
        except (ConnectionError, ValueError):
            return  # its last word is missing, which is said then


class _Place:
    """The sandbox of a fetch, and the words for its owner."""

    def __init__(self, directory: int, stderr: int, spec: ContainerSpec) -> None:
        self.directory = directory
        self.container_id = spec.container_id
        self._stderr = stderr

    def say(self, text: str) -> None:
        with contextlib.suppress(OSError):  # a full disk must not hide its own report
            os.write(self._stderr, f"fetcher: {text}\n".encode("utf-8", "replace"))

    def make_stdout(self) -> None:
        found = os.fstat(self._stderr)
        os.close(sandbox.open_output(self.directory, sandbox.STDOUT, found.st_uid, found.st_gid))


def _key(user: User, item: Item) -> Key:
    return (str(user.uid), item["uri"], item["checksum"])


def _job(items: Sequence[Item], user: User, max_bytes: int) -> Job:
    return Job(items=list(items), user=user.switch, sandbox=None, sink=None, max_bytes=max_bytes)


async def _started(job: Job, user: User, errors: IO[bytes]) -> asyncio.subprocess.Process:
    opened = [job["sandbox"], job["sink"], *(item["source"] for item in job["items"])]
    root = str(Path(__file__).parents[2])
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    environment |= {
        "PATH": os.environ.get("PATH", os.defpath),
        "PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")])),
        # Where libraries look for the user's own access to stores.
        "HOME": await asyncio.to_thread(_home, user.uid),
    }
    return await asyncio.create_subprocess_exec(
        # -s: what lies in that HOME is not to be run before it has that user's rights only.
        *(sys.executable, "-P", "-s", "-X", "utf8", "-m", "agent.fetcher"),
        env=environment,
        cwd="/",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=errors,
        pass_fds=sorted({fd for fd in opened if fd is not None}),
        start_new_session=True,
        limit=_MAX_WORD_BYTES,
    )


async def _gone(process: asyncio.subprocess.Process) -> None:
    """It was killed, or has said its last word: a moment, also for one who is cancelled."""
    waiting = asyncio.ensure_future(process.wait())
    cancelled: asyncio.CancelledError | None = None
    while not waiting.done():
        try:
            await asyncio.shield(waiting)
        except asyncio.CancelledError as error:
            cancelled = error
    assert process.stdin is not None
    process.stdin.close()
    if cancelled is not None:
        raise cancelled


def _home(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_dir
    except KeyError:
        return "/"


def _tail(errors: IO[bytes]) -> str:
    size = errors.seek(0, os.SEEK_END)
    errors.seek(max(0, size - 2000))
    lines = errors.read().decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:300] if lines else ""
