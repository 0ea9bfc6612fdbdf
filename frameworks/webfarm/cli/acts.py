"""What `up`, `deploy` and `down` do."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from frameworks.webfarm.core.haproxy import Front
from frameworks.webfarm.haproxy.process import Haproxy
from frameworks.webfarm.options import FarmFlags
from frameworks.webfarm.run import Settings, Wrapper
from frameworks.webfarm.state import StateDirectory
from mesos_py.errors import Conflict, InvalidValue, MesosPyError, NotFound, Unavailable
from mesos_py.files import DirectoryLock
from mesos_py.operator import DEFAULT_MASTER, OperatorClient
from mesos_py.scheduler.aio import default_user

LOOK_EVERY_S: Final = 0.1
MASTER_ANSWERS_S: Final = 10.0


def run_farm(master: str | None, flags: FarmFlags) -> None:
    """Until a signal, or until the farm was ended.  Raises MesosPyError."""
    lock = _locked(flags.state_dir)
    try:
        limits = flags.limits()
        settings = Settings(
            master=master or DEFAULT_MASTER,
            name=flags.name,
            role=flags.role,
            user=flags.user or _server_user(),
            site=flags.site,
            period_s=flags.period_s,
            failover_s=flags.failover_s,
            limits=limits,
            rules=flags.rules(),
        )
        asyncio.run(_run(settings, flags))
    finally:
        lock.release()


async def _run(settings: Settings, flags: FarmFlags) -> None:
    balancer = Haproxy(flags.state_dir, flags.front())
    try:
        state = StateDirectory(flags.state_dir)
        await Wrapper(settings, state, balancer, flags.apache()).run()
    except* MesosPyError as group:
        # One of several things that are done side by side; the others were ended for it.
        raise _first(group) from group
    finally:
        balancer.leave()


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def deploy_site(directory: Path, site: str, timeout_s: float) -> None:
    """Ask it of the wrapper that runs, and say how it goes.  Raises Unavailable if none runs,
    MesosPyError with the reason if it fails."""
    if not site:
        raise InvalidValue("SITE", site, "must not be empty")
    state = StateDirectory(directory)
    status = _shown(state)
    if not status["running"]:
        raise Unavailable(
            f"nobody looks after the farm in {directory}: `mesos-py webfarm up` does not run"
        )
    wish = state.make_wish(site=site)
    said = ""

    def over() -> str | None:
        nonlocal said
        status = _shown(state)
        if status["handled"] < wish.number:
            return None
        if status["handled"] > wish.number:
            raise Conflict("another deployment was asked for meanwhile")
        rollout = status["rollout"]
        text = _progress(status)
        if rollout["outcome"] == "rolling" and text != said:
            said = text
            click.echo(text, err=True)
        return None if rollout["outcome"] == "rolling" else str(rollout["outcome"])

    if _until(over, timeout_s, "the deployment is not over") == "failed":
        raise MesosPyError(f"deployment stopped: {_shown(state)['rollout']['why']}")
    click.echo(f"{len(_shown(state)['servers'])} servers have {site}")


def end_farm(directory: Path, master: str | None, timeout_s: float) -> None:
    """Through the wrapper if one runs, else here.  Raises NotFound if there is no farm."""
    state = StateDirectory(directory)
    record = state.record()
    if record is None:
        raise state.no_farm()
    try:
        lock = DirectoryLock(directory)
    except Conflict:
        state.make_wish(down=True)
        _until(lambda: state.record() is None, timeout_s, "the farm is not down")
        return
    try:
        asyncio.run(_close_balancer(directory))
        if record.framework_id:
            where = master or record.master
            with OperatorClient(where, timeout_s=MASTER_ANSWERS_S) as client:
                try:
                    client.teardown(record.framework_id)
                except NotFound:
                    click.echo("the master does not know the farm any more", err=True)
        state.clear()
    finally:
        lock.release()


async def _close_balancer(directory: Path) -> None:
    balancer = Haproxy(directory, Front())
    try:
        await balancer.close()
    finally:
        balancer.leave()


def _locked(directory: Path) -> DirectoryLock:
    try:
        return DirectoryLock(directory)
    except Conflict as error:
        raise Conflict(
            f"the farm in {directory} is looked after by process {error.fields['pid']} already",
            field="state-dir",
            value=str(directory),
        ) from None


def _server_user() -> str:
    """Apache does not serve as root; who does on Debian is www-data."""
    return "www-data" if os.geteuid() == 0 else default_user()


def _shown(state: StateDirectory) -> dict[str, Any]:
    status = state.status()
    if status is None:
        raise state.no_farm()
    return status


def _progress(status: dict[str, Any]) -> str:
    version = status["rollout"]["version"]
    new = [each for each in status["servers"] if each["version"] == version]
    serving = sum(each["phase"] == "serving" for each in new)
    waits = f"; waits: {status['waits'][0]}" if status["waits"] else ""
    return f"{serving} of {status['wanted']} replaced{waits}"


def _until(look: Callable[[], Any], timeout_s: float, else_say: str) -> Any:
    """What `look` returns once it is true.  Raises Unavailable after the time."""
    end_s = time.monotonic() + timeout_s
    while not (found := look()):
        if time.monotonic() > end_s:
            raise Unavailable(f"{else_say} after {timeout_s:g} s")
        time.sleep(LOOK_EVERY_S)
    return found


__all__ = ["deploy_site", "end_farm", "run_farm"]
