"""Jobs of trackers that run elsewhere, by HTTP (`tracker.wire`)."""

from __future__ import annotations

import http.client
from collections.abc import Sequence
from typing import Final, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from frameworks.mapreduce import records
from frameworks.mapreduce.client.base import Client
from frameworks.mapreduce.core.views import JobView, TaskView
from frameworks.mapreduce.job import JobSpec
from frameworks.mapreduce.tracker import wire
from mesos_py.errors import InvalidValue, MesosPyError, Unavailable

T = TypeVar("T", bound=msgspec.Struct)

ANSWER_S: Final = 30.0
_PAGE: Final = 1000
_ENDED: Final = 1000


class ServedClient(Client):
    """`urls`: of one tracker, or of several that stand by for each other, parted by commas."""

    def __init__(self, urls: str) -> None:
        """Raises InvalidValue."""
        self._hosts = [_host_of(each) for each in urls.split(",") if each.strip()]
        if not self._hosts:
            raise InvalidValue("tracker", urls, "must be a URL, as http://host:port")
        self._state: str | None = None

    def staging(self, job_id: str) -> str:
        if self._state is None:
            # All that stand by for each other have the same.
            self._state = self._ask("GET", "/v1/tracker", wire.TrackerInfo).state
        return f"{self._state.rstrip('/')}/jobs/{job_id}"

    def submit(self, spec: JobSpec) -> None:
        self._ask("POST", "/v1/jobs", wire.Accepted, records.encode(spec))

    def view(self, job_id: str) -> JobView:
        return self._ask("GET", f"/v1/jobs/{quote(job_id, safe='')}", wire.Watched).view

    def views(self) -> list[JobView]:
        return list(self._ask("GET", f"/v1/jobs?ended={_ENDED}", wire.Jobs).jobs)

    def tasks(self, job_id: str) -> Sequence[TaskView]:
        found: list[TaskView] = []
        while True:
            query = urlencode({"since": len(found), "limit": _PAGE})
            path = f"/v1/jobs/{quote(job_id, safe='')}/tasks?{query}"
            page = self._ask("GET", path, wire.Tasks)
            found += page.tasks
            if not page.more or not page.tasks:
                return found

    def kill(self, job_id: str, why: str) -> None:
        path = f"/v1/jobs/{quote(job_id, safe='')}/kill"
        self._exchange_any("POST", path, records.encode(wire.Kill(why)))

    def close(self) -> None:
        """Nothing was begun here."""

    # ---- HTTP ------------------------------------------------------------------------------

    def _ask(self, method: str, path: str, kind: type[T], body: bytes = b"") -> T:
        host, data = self._exchange_any(method, path, body)
        return records.decode(kind, data, f"answer of the tracker at {host}")

    def _exchange_any(self, method: str, path: str, body: bytes = b"") -> tuple[str, bytes]:
        """The one that answers is asked first from then on."""
        last: Unavailable | None = None
        for host in list(self._hosts):
            try:
                data = _exchange(host, method, path, body)
            except Unavailable as error:
                last = error
                continue
            self._hosts.remove(host)
            self._hosts.insert(0, host)
            return host, data
        raise last or Unavailable("no tracker answers")


def _host_of(url: str) -> str:
    text = url.strip()
    parts = urlsplit(text if "//" in text else f"//{text}")
    try:
        port = parts.port
    except ValueError:
        port = None
    if parts.scheme not in ("", "http") or not parts.hostname or port is None:
        raise InvalidValue("tracker", url, "must be a URL, as http://host:port")
    return parts.netloc


def _exchange(host: str, method: str, path: str, body: bytes) -> bytes:
    """Raises Unavailable, and what the tracker refuses with."""
    connection = http.client.HTTPConnection(host, timeout=ANSWER_S)
    headers = {"Content-Type": "application/json"} if body else {}
    try:
        connection.request(method, path, body=body or None, headers=headers)
        answer = connection.getresponse()
        status, data = answer.status, answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise Unavailable(f"the tracker at {host} does not answer: {error}") from error
    finally:
        connection.close()
    if status >= 400:
        raise _error(host, status, data)
    return data


def _error(host: str, status: int, data: bytes) -> MesosPyError:
    try:
        return wire.raised(msgspec.json.decode(data, type=wire.Error))
    except msgspec.MsgspecError:
        text = f"the tracker at {host} has answered {status}"
        return Unavailable(text) if status >= 500 else MesosPyError(text)
