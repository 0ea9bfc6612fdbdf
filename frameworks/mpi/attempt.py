"""One launch of a job: the launcher, a task for each host, and what becomes of both."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from frameworks.common.gang import Share, times
from frameworks.mpi.backends.base import Host, Launch
from frameworks.mpi.cluster import Agent, answers
from frameworks.mpi.core import job
from frameworks.mpi.core.streams import Reports, Text
from frameworks.mpi.files import Files
from frameworks.mpi.launcher import Launcher
from frameworks.mpi.output import Output
from frameworks.mpi.ranks import kept, watched
from frameworks.mpi.requests import Requests
from frameworks.mpi.settings import Settings
from frameworks.runtime.addresses import own_address
from mesos_py import CommandInfo, MesosPyError, TaskInfo, TaskStatus, command_task

# For the launcher to say what it wants: much, as machines may be starved.  Offers that do not
# last so long are not missed here, but when they are to be used.
ASK_S: Final = 30.0
_WATCH_EVERY_S: Final = 1.5
_WATCH_WITHIN_S: Final = 1.5
_SILENT_S: Final = 4.0


class Attempt:
    """See the module.  `tasks` says what to launch, `job` is told what happens then."""

    def __init__(
        self,
        settings: Settings,
        shares: Sequence[Share],
        agents: Mapping[str, Agent],
        output: Output,
        now_s: Callable[[], float],
    ) -> None:
        self.shares = shares
        self._settings = settings
        self._agents = [agents[share.agent_id] for share in shares]
        self._output = output
        self._now_s = now_s
        self._word = secrets.token_hex(12)
        self._reports = Reports(self._word.encode())
        self._files = Files(settings.files)
        self._uris: list[CommandInfo.URI] = []
        self._requests = Requests(settings.backend, len(shares))
        self._launcher: Launcher | None = None
        self._helpers: list[asyncio.Task[None]] = []
        self._asked: list[TaskInfo] | None = None
        self.job: job.Job | None = None
        # Set whenever the job may have come to its end.
        self.news = asyncio.Event()
        self._unexplained = asyncio.Event()

    async def tasks(self) -> list[TaskInfo]:
        """Start the launcher; a task for each share, in their order.  At once and the same
        ones, if it was asked before.

        Raises MesosPyError if the launcher is not here, ends, or does not say what it wants.
        """
        if self._asked is None:
            self._asked = await self._ask()
        return self._asked

    def is_for(self, shares: Sequence[Share]) -> bool:
        """Whether it is for as many slots of the same agents, on whatever offers."""
        return [(each.agent_id, each.slots) for each in shares] == [
            (each.agent_id, each.slots) for each in self.shares
        ]

    async def _ask(self) -> list[TaskInfo]:
        settings = self._settings
        address = settings.address or own_address(self._agents[0].address, "--address")
        program = kept(
            settings.program,
            word=self._word.encode(),
            directory=settings.directory,
            launcher=address,
        )
        names = host_names(self._agents)
        hosts = [Host(name, each.slots) for name, each in zip(names, self.shares, strict=True)]
        asking = await self._requests.listen()
        launch = Launch(hosts, address, program, self._word.encode(), asking)
        self._launcher = Launcher(settings.backend, launch, self._requests, self._on_text)
        await self._launcher.start()
        self._uris = self._files.start(address)
        commands = await self._commands(self._launcher)
        return [self._task(number, command) for number, command in enumerate(commands)]

    def begin(self, tasks: Sequence[TaskInfo]) -> job.Job:
        """The tasks are being launched."""
        hosts = [
            job.Host(share.agent_id, agent.hostname, task.task_id.value, share.slots)
            for share, agent, task in zip(self.shares, self._agents, tasks, strict=True)
        ]
        timeout_s = self._settings.start_timeout_s
        self.job = job.Job(
            hosts,
            start_timeout_s=timeout_s,
            now_s=self._now_s(),
            orphaned=self._settings.backend.orphaned,
            unbegun=self._settings.backend.unbegun,
            told=self._settings.backend.tells_who_entered,
        )
        self._helpers = [
            asyncio.create_task(self._until_ended()),
            *(asyncio.create_task(self._watch(agent)) for agent in self._agents),
        ]
        return self.job

    def status(self, status: TaskStatus) -> None:
        """An update of a task has come."""
        if self.job is not None:
            self.job.status(status, self._now_s())
            self.news.set()

    async def close(self) -> None:
        """End the launcher, and all that goes with it.  Idempotent."""
        for helper in self._helpers:
            helper.cancel()
        await asyncio.gather(*self._helpers, return_exceptions=True)
        if self._launcher is not None:
            await self._launcher.kill()
        self._requests.close()
        self._files.close()

    # ---- Its parts -------------------------------------------------------

    async def _commands(self, launcher: Launcher) -> list[str]:
        said = asyncio.create_task(self._requests.all())
        ended = asyncio.create_task(launcher.wait())
        try:
            await asyncio.wait({said, ended}, timeout=ASK_S, return_when=asyncio.FIRST_COMPLETED)
            if said.done():
                return said.result()
            if ended.done():
                code = ended.result()
                raise MesosPyError(f"the launcher has ended with {code} before it began")
            raise MesosPyError(f"the launcher has not said within {ASK_S:g} s what it wants")
        finally:
            for each in (said, ended):
                each.cancel()
            await asyncio.gather(said, ended, return_exceptions=True)

    def _task(self, number: int, command: str) -> TaskInfo:
        settings, share = self._settings, self.shares[number]
        return command_task(
            f"{settings.name}.{number}",
            f"mpi-{self._word[:8]}-{number}",
            share.agent_id,
            watched(command.strip()),
            resources=times(settings.ask.each, share.slots),
            env=settings.env,
            user=settings.user or None,
            uris=[*settings.uris, *self._uris],
            container=settings.container,
            kill_grace_s=1.0,
        )

    async def _until_ended(self) -> None:
        assert self._launcher is not None
        assert self.job is not None
        try:
            code = await self._launcher.wait()
        except MesosPyError:
            code = 1
        for text in self._reports.rests():
            await self._output.write("stderr", text)
        await self._output.end()
        self.job.launcher_ended(code, self._now_s())
        if self.job.unexplained:
            self._unexplained.set()
        self.news.set()

    async def _on_text(self, stream: str, text: Text) -> None:
        if stream == "stderr" and text.rank is None:
            text = self._without_states(text)
        elif stream == "stderr":
            own, reports = self._reports.feed(text)
            text = Text(text.rank, own)
            for report in reports:
                if self.job is not None:
                    self.job.reported(report, self._now_s())
                    self.news.set()
        if text.data:
            await self._output.write(stream, text)

    def _without_states(self, text: Text) -> Text:
        """What the launcher itself says, without what it says to us."""
        backend, kept_lines = self._settings.backend, []
        for line in text.data.splitlines(keepends=True):
            entered, failed = backend.entered(line), backend.failed(line)
            if entered is not None and self.job is not None:
                self.job.entered(entered)
            if failed is not None and self.job is not None:
                self.job.told_failed(failed, self._now_s())
                self.news.set()
            if not backend.is_state(line):
                kept_lines.append(line)
        return Text(None, b"".join(kept_lines))

    async def _watch(self, agent: Agent) -> None:
        """The master allows an agent a minute to come back.  A job does not."""
        assert self.job is not None
        if not agent.port or not await answers(agent, _WATCH_WITHIN_S):
            return  # not reached from here: it is the master that will tell
        heard_s = self._now_s()
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_WATCH_EVERY_S):
                    await self._unexplained.wait()
            # Else what was explained since would let this look without a pause, for ever.
            self._unexplained.clear()
            patience_s = 0.0 if self.job.unexplained else _SILENT_S
            if await answers(agent, _WATCH_WITHIN_S):
                heard_s = self._now_s()
                if self.job.unexplained:
                    return
            elif self._now_s() - heard_s >= patience_s:
                self.job.agent_lost(agent.agent_id, "does not answer any more", self._now_s())
                self.news.set()
                return


def host_names(agents: Sequence[Agent]) -> list[str]:
    """A name for each, unique: the address, by which others find it, where that will do."""
    for names in ([a.address for a in agents], [a.hostname for a in agents]):
        if all(names) and len(set(names)) == len(names):
            return names
    return [agent.agent_id for agent in agents]
