"""A tracker over HTTP: see `wire` for what is asked and answered."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

import msgspec
from aiohttp import web

from frameworks.mapreduce.job import JobSpec
from frameworks.mapreduce.names import Kind
from frameworks.mapreduce.records import decode, encode
from frameworks.mapreduce.tracker.tracker import Tracker
from frameworks.mapreduce.tracker.wire import (
    STATUS,
    Accepted,
    Jobs,
    Kill,
    Tasks,
    TrackerInfo,
    Watched,
    error_of,
)
from mesos_py import logs
from mesos_py.errors import InvalidValue, MesosPyError, NotFound, PortInUse
from mesos_py.exposition import mount

log = logs.get("mapreduce.service")

T = TypeVar("T")
Answer = Awaitable[web.StreamResponse]
Handler = Callable[[web.Request], Answer]

# Functions of users travel in a job.
MOST_BYTES: Final = 256 * 1024 * 1024
MOST_WAIT_S: Final = 60.0
LOOK_EVERY_S: Final = 0.25
MOST_TASKS: Final = 10_000
# So many jobs are taken on at a time.
SUBMITTING: Final = 16
_KINDS: Final = ("map", "reduce")
_STATES: Final = ("waiting", "running", "committing", "done", "failed")


class Service:
    """The handlers.  What blocks runs on threads of the loop."""

    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker
        # To look at a job's input may take long: nobody else is to wait for that.
        self._submitting = ThreadPoolExecutor(SUBMITTING, thread_name_prefix="mapreduce submit")

    def close(self) -> None:
        """What was begun is finished by itself."""
        self._submitting.shutdown(wait=False, cancel_futures=True)

    def app(self) -> web.Application:
        app = web.Application(client_max_size=MOST_BYTES, middlewares=[_errors])
        app.router.add_get("/v1/tracker", self._info)
        app.router.add_post("/v1/jobs", self._submit)
        app.router.add_get("/v1/jobs", self._jobs)
        app.router.add_get("/v1/jobs/{job}", self._job)
        app.router.add_get("/v1/jobs/{job}/tasks", self._tasks)
        app.router.add_post("/v1/jobs/{job}/kill", self._kill)
        mount(app, lambda: _aside(self._tracker.metrics))
        return app

    async def _info(self, request: web.Request) -> web.Response:
        info: TrackerInfo = self._tracker.info
        return _json(info)

    async def _submit(self, request: web.Request) -> web.Response:
        spec = decode(JobSpec, await request.read(), "job")
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._submitting, self._tracker.submit, spec)
        return _json(Accepted(spec.job_id), 201)

    async def _jobs(self, request: web.Request) -> web.Response:
        ended = _whole(request, "ended", 100, 10_000)
        views = await _aside(lambda: self._tracker.views(ended))
        return _json(Jobs(tuple(views)))

    async def _job(self, request: web.Request) -> web.Response:
        job_id = request.match_info["job"]
        known = request.query.get("version", "")
        wait_s = _seconds(request, "wait_s")
        loop = asyncio.get_running_loop()
        end_s = loop.time() + wait_s
        while True:
            view = await _aside(lambda: self._tracker.view(job_id))
            version = hashlib.blake2b(encode(view), digest_size=8).hexdigest()
            if not known or version != known or loop.time() >= end_s:
                return _json(Watched(version, view))
            await asyncio.sleep(LOOK_EVERY_S)

    async def _tasks(self, request: web.Request) -> web.Response:
        job_id = request.match_info["job"]
        kind: Kind | None = _word(request, "kind", _KINDS)  # type: ignore[assignment]
        state = _word(request, "state", _STATES)
        since = _whole(request, "since", 0, 2**31)
        limit = _whole(request, "limit", 1000, MOST_TASKS)
        ask = functools.partial(self._tracker.tasks, job_id, kind, state)  # type: ignore[arg-type]
        found = await _aside(lambda: ask(since, limit + 1))
        return _json(Tasks(tuple(found[:limit]), len(found) > limit))

    async def _kill(self, request: web.Request) -> web.Response:
        job_id = request.match_info["job"]
        body = await request.read()
        kill = decode(Kill, body, "kill") if body else Kill()
        await _aside(lambda: self._tracker.kill(job_id, kill.why))
        return web.json_response({}, status=202)


class Server:
    """A service on a thread and loop of its own."""

    def __init__(self, tracker: Tracker) -> None:
        self._service = Service(tracker)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="mapreduce http", daemon=True
        )
        self._runner: web.AppRunner | None = None

    def start(self, ip: str, port: int) -> int:
        """Bind and serve; the port (0 picks one).  Raises PortInUse."""
        self._thread.start()
        return asyncio.run_coroutine_threadsafe(self._begin(ip, port), self._loop).result()

    def close(self) -> None:
        """Answers under way get half a second.  May be called again."""
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        if not self._loop.is_closed():
            self._loop.close()

    async def _begin(self, ip: str, port: int) -> int:
        runner = web.AppRunner(
            self._service.app(), access_log=None, handle_signals=False, shutdown_timeout=0.5
        )
        await runner.setup()
        try:
            await web.TCPSite(runner, ip, port).start()
        except OSError as error:
            await runner.cleanup()
            text = f"port {port} on {ip}: {error.strerror or error}"
            raise PortInUse(text, ip=ip, port=port) from None
        self._runner = runner
        bound: int = runner.addresses[0][1]
        log.info("tracker served", ip=ip, port=bound)
        return bound

    async def _end(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
        self._service.close()
        await self._loop.shutdown_default_executor()


@web.middleware
async def _errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except MesosPyError as error:
        return _json(error_of(error), STATUS.get(error.code, 500))
    except web.HTTPNotFound:
        return _json(error_of(NotFound("path", request.path)), 404)
    except web.HTTPException as refusal:
        text = f"{request.method} {request.path}: {refusal.reason}"
        return _json(error_of(MesosPyError(text)), refusal.status)
    except OSError as broken:
        log.exception("request failed", path=request.path)
        return _json(error_of(MesosPyError(f"{request.path}: {broken}")), 500)


async def _aside(work: Callable[[], T]) -> T:
    return await asyncio.to_thread(work)


def _json(record: msgspec.Struct, status: int = 200) -> web.Response:
    return web.Response(body=encode(record), status=status, content_type="application/json")


def _word(request: web.Request, name: str, words: tuple[str, ...]) -> str | None:
    text = request.query.get(name)
    if text is not None and text not in words:
        raise InvalidValue(name, text, f"must be one of {', '.join(words)}")
    return text


def _whole(request: web.Request, name: str, default: int, most: int) -> int:
    text = request.query.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit()) or int(text[:20]) > most:
        raise InvalidValue(name, text, f"must be a whole number from 0 to {most}")
    return int(text)


def _seconds(request: web.Request, name: str) -> float:
    text = request.query.get(name, "0")
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= MOST_WAIT_S:
        raise InvalidValue(name, text, f"must be seconds from 0 to {MOST_WAIT_S:g}")
    return value


__all__ = ["Server", "Service"]
