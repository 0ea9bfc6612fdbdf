"""dockerd as we use it: short calls through the SDK in threads, streams on the loop.

Three things can come of a call: an answer, `Declined` (dockerd says no, and why), or
`Silent`: nothing is known, what was asked for may have happened or may happen yet.
Streams (events, logs, pulls) cost no thread, however many there are.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

import aiohttp
import docker
import requests
from docker import auth as docker_auth
from docker import errors as docker_errors
from docker import types as docker_types
from docker.utils import parse_repository_tag

from agent.containers.docker.ending import Standing, standing_of
from agent.containers.docker.request import CreateRequest
from agent.containers.docker.settings import LABEL_CONTAINER, LABELS, Dockerd, DockerSettings
from agent.containers.docker.transport import cut_off, new_client
from mesos_py.errors import Unavailable, shortened

T = TypeVar("T")

THREADS: Final = 8
# Of the pieces of output: the stream, and how long the piece is.
FRAME_HEADER: Final = 8
# Longer lines of JSON are not dockerd's.
_MAX_LINE: Final = 1 << 20


class EngineError(Exception):
    """A call had no success."""


class Silent(EngineError):
    """dockerd did not answer: it is not there, stands still, or is too slow."""


class Declined(EngineError):
    """dockerd answered that it will not; `status` is that of HTTP."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(shortened(text.strip()))
        self.status = status

    @property
    def unknown(self) -> bool:
        """What was asked for does not exist."""
        return self.status == 404

    @property
    def conflict(self) -> bool:
        return self.status == 409


class Engine:
    """One dockerd, over its Unix socket.  Used from one event loop."""

    def __init__(self, settings: DockerSettings) -> None:
        self._settings = settings
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="docker")
        self._mine = threading.local()
        # All threads' clients, for the end.
        self._clients: list[docker.APIClient] = []
        self._session: aiohttp.ClientSession | None = None
        self.dockerd = Dockerd()

    async def connect(self) -> None:
        """Find out whom we talk to.  Raises Unavailable naming the socket and the cause."""
        try:
            version, info = await self._in_thread(self._describe)
        except EngineError as error:
            where = str(self._settings.socket)
            raise Unavailable(
                f"docker-socket: {where!r}: dockerd does not answer: {error}",
                field="docker-socket",
                value=where,
            ) from None
        self.dockerd = Dockerd(
            version=str(version.get("Version", "")),
            api_version=str(version.get("ApiVersion", "")),
            cgroup_driver=str(info.get("CgroupDriver", "")),
            has_init=bool(info.get("InitBinary")),
        )
        self._session = aiohttp.ClientSession(
            connector=aiohttp.UnixConnector(str(self._settings.socket), limit=0),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._settings.timeout_s),
        )

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
        for client in self._clients:
            cut_off(client)
            client.close()

    # ---- Containers ----------------------------------------------------------------

    async def create(self, request: CreateRequest) -> str:
        """The container's docker id."""

        def create(client: docker.APIClient) -> Any:
            return client.create_container(
                request.image,
                name=request.name,
                host_config=_host_config(client, request),
                use_config_proxy=False,
                **request.config,
            )

        return str((await self._call(create))["Id"])

    async def start(self, docker_id: str) -> None:
        await self._call(lambda client: client.start(docker_id))

    async def inspect(self, name: str) -> Standing | None:
        """By docker id or name; None: there is none."""
        try:
            return standing_of(await self._call(lambda client: client.inspect_container(name)))
        except Declined as declined:
            if declined.unknown:
                return None
            raise

    async def kill(self, docker_id: str, number: int) -> None:
        await self._call(lambda client: client.kill(docker_id, number))

    async def remove(self, docker_id: str) -> None:
        """With its processes, if any are left, and the volumes that have no name."""
        await self._call(lambda client: client.remove_container(docker_id, v=True, force=True))

    async def update(self, docker_id: str, arguments: Mapping[str, Any]) -> None:
        await self._call(lambda client: client.update_container(docker_id, **arguments))

    async def stats(self, docker_id: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = await self._call(
            lambda client: client.stats(docker_id, stream=False, one_shot=True)
        )
        return found

    async def create_exec(
        self, docker_id: str, argv: list[str], environment: Mapping[str, str]
    ) -> str:
        made = await self._call(
            lambda client: client.exec_create(docker_id, argv, environment=dict(environment))
        )
        return str(made["Id"])

    async def inspect_exec(self, exec_id: str) -> tuple[int | None, int]:
        """Its exit code, None while it runs; and its pid, 0 if it has none."""
        found = await self._call(lambda client: client.exec_inspect(exec_id))
        code = found.get("ExitCode")
        return None if found.get("Running") or code is None else int(code), int(
            found.get("Pid") or 0
        )

    async def labelled(self, **wanted: str) -> list[tuple[str, str]]:
        """Docker id and container id of all that carry exactly these labels of ours."""
        labels = {f"{LABELS}{name}": value for name, value in wanted.items()}
        filters = {"label": [f"{name}={value}" for name, value in labels.items()]}
        rows = await self._call(lambda client: client.containers(all=True, filters=filters))
        found = [(str(row["Id"]), row.get("Labels") or {}) for row in rows]
        return [
            (docker_id, str(theirs.get(LABEL_CONTAINER, "")))
            for docker_id, theirs in found
            # dockerd compares exactly, too: this is so important that we look ourselves.
            if labels.items() <= theirs.items()
        ]

    async def has_image(self, image: str) -> bool:
        try:
            await self._call(lambda client: client.inspect_image(image))
        except Declined as declined:
            if declined.unknown:
                return False
            raise
        return True

    # ---- Streams -------------------------------------------------------------------

    async def events(self, since_s: int) -> AsyncGenerator[tuple[str, str], None]:
        """What befalls our containers: docker id and "die", "oom" and so on.

        The first value, with empty texts, says that from now on nothing is missed.
        """
        wanted = {"type": ["container"], "label": [LABEL_CONTAINER], "event": ["die", "oom"]}
        query = {"since": str(since_s), "filters": json.dumps(wanted)}
        async with self._stream("GET", "/events", query) as response:
            yield "", ""
            async for line in _lines(response):
                yield str(line.get("id", "")), str(line.get("status", ""))

    async def logs(
        self, docker_id: str, *, since: str = "0", follow: bool = False, tail: int | None = None
    ) -> AsyncGenerator[bytes, None]:
        """The output, in docker's frames, each entry with its time; `tail`: the last ones."""
        query = {"stdout": "1", "stderr": "1", "timestamps": "1", "since": since}
        query["follow"] = "1" if follow else "0"
        query["tail"] = "all" if tail is None else str(tail)
        async with self._stream("GET", f"/containers/{docker_id}/logs", query) as response:
            async for chunk in response.content.iter_any():
                yield chunk

    async def start_exec(self, exec_id: str) -> AsyncGenerator[bytes, None]:
        """Run it to its end; its output, of both streams as it comes."""
        body = {"Detach": False, "Tty": False}
        rest = b""
        async with self._stream("POST", f"/exec/{exec_id}/start", {}, body=body) as response:
            async for chunk in response.content.iter_any():
                rest += chunk
                while len(rest) >= FRAME_HEADER:
                    end = FRAME_HEADER + int.from_bytes(rest[4:FRAME_HEADER], "big")
                    if end > len(rest):
                        break
                    yield rest[FRAME_HEADER:end]
                    rest = rest[end:]

    async def pull(self, image: str) -> AsyncGenerator[Mapping[str, Any], None]:
        """Progress, in docker's words.  Raises Declined if the pull fails."""
        repository, tag = parse_repository_tag(image)
        headers = await self._call(lambda client: _credentials(self._settings, repository))
        query = {"fromImage": repository, "tag": tag or "latest"}
        async with self._stream("POST", "/images/create", query, headers) as response:
            async for line in _lines(response):
                if "error" in line:
                    raise Declined(500, str(line["error"]))
                yield line

    @contextlib.asynccontextmanager
    async def _stream(
        self,
        method: str,
        path: str,
        query: dict[str, str],
        headers: dict[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        assert self._session is not None
        url = f"http://docker/v{self.dockerd.api_version}{path}"
        try:
            async with self._session.request(
                method, url, params=query, headers=headers, json=body
            ) as response:
                if response.status >= 400:
                    raise Declined(response.status, _message(await response.text()))
                yield response
        except (aiohttp.ClientError, OSError) as error:
            raise Silent(str(error) or type(error).__name__) from None

    # ---- Threads -------------------------------------------------------------------

    async def _call(self, work: Callable[[Any], T]) -> T:
        return await self._in_thread(lambda: work(self._client()))

    async def _in_thread(self, work: Callable[[], T]) -> T:
        def run() -> T:
            with _translated():
                return work()

        return await asyncio.get_running_loop().run_in_executor(self._threads, run)

    def _describe(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """In a thread: what it is, asked in the oldest words that we speak."""
        with contextlib.closing(self._new_client(Dockerd().api_version)) as client:
            return client.version(api_version=False), client.info()

    def _new_client(self, version: str) -> docker.APIClient:
        return new_client(str(self._settings.socket), version, self._settings.timeout_s)

    def _client(self) -> docker.APIClient:
        """This thread's own: the SDK's are not made for several at a time."""
        client: docker.APIClient | None = getattr(self._mine, "client", None)
        if client is None:
            client = self._new_client(self.dockerd.api_version)
            self._mine.client = client
            self._clients.append(client)
        return client


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    """The SDK's errors, and those of what it is built on, as ours."""
    try:
        yield
    except docker_errors.APIError as error:
        response = error.response
        status = response.status_code if response is not None else 500
        raise Declined(status, str(error.explanation or error)) from None
    except (requests.exceptions.RequestException, OSError) as error:
        raise Silent(_innermost(error)) from None
    except docker_errors.DockerException as error:
        # The SDK's own checks of arguments, and a first connection that fails.
        if isinstance(error, docker_errors.InvalidArgument):
            raise Declined(400, str(error)) from None
        raise Silent(_innermost(error)) from None


def _innermost(error: BaseException) -> str:
    """What went wrong at the bottom: "No such file or directory"."""
    seen: BaseException = error
    while (inner := seen.__cause__ or seen.__context__) is not None:
        seen = inner
    if isinstance(seen, OSError) and seen.strerror:
        return seen.strerror
    return shortened(str(seen) or type(seen).__name__)


def _host_config(client: docker.APIClient, request: CreateRequest) -> Any:
    arguments = dict(request.host)
    log = arguments.pop("log")
    return client.create_host_config(
        **arguments,
        log_config=docker_types.LogConfig(type="json-file", config=log),
        mounts=[
            docker_types.Mount(
                each.target,
                each.source,
                type="volume" if each.is_volume else "bind",
                read_only=each.read_only,
            )
            for each in request.mounts
        ],
        ulimits=[
            docker_types.Ulimit(name=each.name, soft=each.soft, hard=each.hard)
            for each in request.ulimits
        ],
    )


def _credentials(settings: DockerSettings, repository: str) -> dict[str, str]:
    """What the operator's config.json has for the image's registry, as a header."""
    path = str(settings.config / "config.json") if settings.config is not None else None
    configured = docker_auth.load_config(config_path=path)
    registry, _ = docker_auth.resolve_repository_name(repository)
    found = docker_auth.resolve_authconfig(configured, registry)
    if not found:
        return {}
    return {"X-Registry-Auth": docker_auth.encode_header(found).decode("ascii")}


async def _lines(response: aiohttp.ClientResponse) -> AsyncGenerator[dict[str, Any], None]:
    """JSON objects, one a line."""
    rest = b""
    async for chunk in response.content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line.strip():
                yield _object(line)
        if len(rest) > _MAX_LINE:
            raise Silent("dockerd sent a line without an end")
    if rest.strip():
        yield _object(rest)


def _object(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        raise Silent("dockerd sent what is no JSON") from None
    return found if isinstance(found, dict) else {}


def _message(text: str) -> str:
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        return text
