"""MapReduce on a cluster of real daemons: trackers as processes, jobs whose programs wait for
the test.

A program of a test takes its time by waiting for a file: `gate(...)` says which, and `open`
makes it.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from frameworks.mapreduce.client.served import ServedClient
from frameworks.mapreduce.core.views import JobView, TaskView
from frameworks.mapreduce.job import JobSpec, Program
from tests.kit.cluster import Cluster, Daemon
from tests.kit.local import MESOS_PY
from tests.kit.waiting import until

JOB: Final = "job_20261128141500_0001"
LIMIT_S: Final = 300.0
_ENDED: Final = ("succeeded", "failed", "killed")

_WORDS: Final = """\
import sys
for line in sys.stdin:
    for word in line.split():
        print(f"{word}\\t1")
"""
_SUM: Final = """\
import itertools, sys
pairs = (line.rstrip("\\n").split("\\t") for line in sys.stdin)
for word, found in itertools.groupby(pairs, lambda pair: pair[0]):
    print(f"{word}\\t{sum(int(count) for _, count in found)}")
"""
# Runs what follows once the gate is open; `{}` is its file.
_WAIT: Final = """\
import os, time
while not os.path.exists({gate!r} + "/all") and not os.path.exists(
    {gate!r} + "/" + os.environ["mapreduce_task_attempt_id"]
):
    time.sleep(0.02)
"""


class Tracker(Daemon):
    """`mesos-py mapreduce tracker`; may be killed and started again, with the same state."""

    def argv(self) -> list[str]:
        argv = [*MESOS_PY, "mapreduce", "tracker", "--port-file", str(self._port_file)]
        for name, value in self.flags.items():
            argv += [f"--{name.replace('_', '-')}"] + ([value] if value else [])
        return argv

    @property
    def client(self) -> ServedClient:
        return ServedClient(f"http://127.0.0.1:{self.port}")


class Resume(Daemon):
    """`mesos-py mapreduce resume` of the state of a tracker that has ended; `launch` it."""

    def argv(self) -> list[str]:
        own = ("--state", self.flags["state"], "--master", self.flags["master"])
        return [*MESOS_PY, "mapreduce", "resume", *own]


class MapReduce(Cluster):
    """A cluster with trackers, that end before the rest of it."""

    def __init__(self, directory: Path, **flags: str) -> None:
        super().__init__(directory, **flags)
        self.trackers: list[Tracker] = []
        self.resumes: list[Resume] = []
        self.gates = directory / "gates"
        self.gates.mkdir()

    def _end(self) -> dict[str, int]:
        codes = {}
        for tracker in self.trackers:
            if tracker.alive:
                codes[tracker.name] = tracker.stop()
        return codes | super()._end()

    @property
    def daemons(self) -> list[Daemon]:
        return [*self.trackers, *self.resumes, *super().daemons]

    # ---- Trackers --------------------------------------------------------------------------

    def tracker(self, name: str = "tracker", **flags: str) -> Tracker:
        """Started; all have the same state."""
        own = {"master": self.address, "state": str(self.directory / "state")}
        made = Tracker("tracker", name, self.directory, own | flags)
        self.trackers.append(made)
        made.start()
        return made

    def resumed(self) -> Resume:
        """Another tracker of the state, in place of one that has ended; it waits for the jobs'
        ends."""
        own = {"master": self.address, "state": str(self.directory / "state")}
        made = Resume("resume", f"resume-{len(self.resumes)}", self.directory, own)
        self.resumes.append(made)
        made.launch()
        return made

    def active(self, tracker: Tracker) -> Tracker:
        until(lambda: b'"active":true' in _info(tracker), LIMIT_S)
        return tracker

    def lose(self, agent: Daemon) -> None:
        """Its machine: the agent, and all that it has started."""
        agent.kill()
        for pid in self.strays():
            here = Path(f"/proc/{pid}/cwd")
            with suppress(OSError):
                if here.readlink().is_relative_to(agent.work_dir):
                    os.kill(pid, signal.SIGKILL)

    # ---- Jobs ------------------------------------------------------------------------------

    def wordcount(self, *texts: str, reduces: int = 2, **more: Any) -> JobSpec:
        """Each text is a file, and the input of a map.

        gated: "map", "reduce" or both: attempts of these wait for `open`.
        """
        gated = more.pop("gated", "")
        job_id = more.pop("job_id", JOB)
        source = self.directory / f"in-{job_id}"
        source.mkdir()
        for number, text in enumerate(texts):
            (source / f"{number:03}.txt").write_text(text)
        programs = {}
        for kind, text in (("map", _WORDS), ("reduce", _SUM)):
            path = source.with_name(f"{kind}-{job_id}.py")
            path.write_text(_WAIT.format(gate=str(self.gates)) * (kind in gated) + text)
            programs[kind] = Program(command=f"{sys.executable} {path}")
        return JobSpec(
            job_id=job_id,
            name="words",
            user="tester",
            inputs=(str(source),),
            output=str(self.directory / f"out-{job_id}"),
            mapper=programs["map"],
            reducer=programs["reduce"] if reduces else None,
            reduces=reduces,
            conf={
                "mapreduce.map.memory.mb": "128",
                "mapreduce.reduce.memory.mb": "128",
                "mapreduce.map.cpu.vcores": "0.5",
                "mapreduce.reduce.cpu.vcores": "0.5",
                **more.pop("conf", {}),
            },
            **more,
        )

    def open(self, attempt: str = "all") -> None:
        """Attempts that wait go on: this one, or all, also those to come."""
        (self.gates / attempt).touch()

    def wait_for(
        self, tracker: Tracker, done: Callable[[JobView], object], job: str = JOB
    ) -> JobView:
        """Of a tracker that may have to become active first."""
        found: list[JobView] = []

        def look() -> bool:
            found[:] = [self.view(tracker, job)]
            return bool(done(found[0]))

        until(look, LIMIT_S)
        return found[0]

    def view(self, tracker: Tracker, job: str = JOB) -> JobView:
        self.active(tracker)
        return tracker.client.view(job)

    def wait_running(self, tracker: Tracker, kind: str, count: int, job: str = JOB) -> None:
        """Until so many attempts have been heard of: what was launched may not have arrived."""

        def look() -> bool:
            self.active(tracker)
            states = [
                each.state for task in self.tasks(tracker, kind, job) for each in task.attempts
            ]
            return states.count("running") == count

        until(look, LIMIT_S)

    def end_of(self, tracker: Tracker, job: str = JOB) -> JobView:
        return self.wait_for(tracker, lambda view: view.state in _ENDED, job)

    def tasks(self, tracker: Tracker, kind: str, job: str = JOB) -> list[TaskView]:
        return [task for task in tracker.client.tasks(job) if task.kind == kind]

    def settled(self, job: str = JOB) -> None:
        """Until nothing is left of an ended job but its output and history."""
        state = self.directory / "state"
        until(lambda: not (state / "jobs" / job).exists(), LIMIT_S)
        names = (f"published/{job}", f"jobs/{job}*", f"work/attempt_{job.removeprefix('job_')}_*")
        assert [path for name in names for path in self._in_sandboxes(name)] == []

    def published(self, job: str = JOB) -> list[Path]:
        """What agents have of the job: the directories."""
        return self._in_sandboxes(f"published/{job}")

    def _in_sandboxes(self, name: str) -> list[Path]:
        runs = "agents/*/frameworks/*/executors/*/runs"
        return [
            path
            for agent in self.agents
            for run in agent.work_dir.glob(f"{runs}/*")
            if not run.is_symlink()
            for path in run.glob(name)
        ]


def output(spec: JobSpec) -> dict[str, int]:
    """What has been counted; complains of anything that should not be in the directory."""
    directory = Path(spec.output)
    names = sorted(each.name for each in directory.iterdir())
    assert names == ["_SUCCESS", *(f"part-{number:05}" for number in range(spec.reduces))]
    found: dict[str, int] = {}
    for name in names[1:]:
        for line in (directory / name).read_text().splitlines():
            word, count = line.split("\t")
            assert word not in found, f"{word} twice"
            found[word] = int(count)
    return found


def _info(tracker: Tracker) -> bytes:
    from http.client import HTTPConnection

    connection = HTTPConnection("127.0.0.1", tracker.port, timeout=30)
    try:
        connection.request("GET", "/v1/tracker")
        return connection.getresponse().read()
    finally:
        connection.close()
