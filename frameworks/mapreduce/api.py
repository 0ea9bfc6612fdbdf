"""MapReduce from Python.

::

    from frameworks import mapreduce

    def words(line):
        for word in line.split():
            yield word, 1

    def total(word, counts):
        yield word, sum(counts)

    done = mapreduce.run(
        mapper=words, combiner=total, reducer=total,
        inputs="books/*.txt", output="counts", reduces=4, local=2,
    )
    print(done.counters)

What maps, combines and reduces is a function (its contract is in `functions.py`) or a command
line, as for Hadoop Streaming.  Functions travel by cloudpickle: those of `__main__` with all
that they use, those of a module by its name, so the module must be there for tasks too
(`files=["module.py"]` brings it).

Where it runs: `local=N` in N processes of this machine, without a cluster; `master=` on a
cluster, by a tracker in this process, which must stay until the job ends; `tracker=URL` on a
cluster, by a tracker that runs elsewhere.  With none of them: on the cluster that
MESOS_PY_MASTER names, or else the one at 127.0.0.1:5050.
"""

from __future__ import annotations

import getpass
import inspect
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Required, Self, TypedDict, Unpack

from frameworks.mapreduce import conf as properties
from frameworks.mapreduce import functions, report, streaming, submission
from frameworks.mapreduce.client import Target, connect
from frameworks.mapreduce.client.base import Client, has_ended
from frameworks.mapreduce.core.views import JobView, TaskView
from frameworks.mapreduce.data import files
from frameworks.mapreduce.job import JobSpec, Program
from frameworks.mapreduce.streaming import Options
from frameworks.mapreduce.work import Counters, Failure
from mesos_py.errors import InvalidValue, MesosPyError, Unavailable

_LOOK_S: Final = (0.05, 1.0)
# So long the end of a job that was killed is waited for.
END_S: Final = 30.0

Work = Callable[..., Any] | str


class JobFailed(MesosPyError):
    """The job has failed or was killed; the text begins with what its program has said.

    view: all that is known of it.  failure: the first cause, if there is one.
    """

    code = "job-failed"

    def __init__(self, view: JobView, text: str) -> None:
        super().__init__(text, job_id=view.job_id, state=view.state)
        self.view = view

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.view, self.message))

    @property
    def failure(self) -> Failure | None:
        return self.view.failure


class Known:
    """A job that was submitted, by whomever."""

    def __init__(self, client: Client, job_id: str) -> None:
        self._client = client
        self.job_id = job_id

    def status(self) -> JobView:
        """How it is now.  Raises Unavailable."""
        return self._client.view(self.job_id)

    def tasks(self) -> Sequence[TaskView]:
        return self._client.tasks(self.job_id)

    @property
    def counters(self) -> Counters:
        """{group: {name: count}} so far."""
        return self.status().counters

    def kill(self, why: str = "killed by its user") -> None:
        self._client.kill(self.job_id, why)

    def wait(
        self, timeout_s: float | None = None, told: Callable[[JobView], None] | None = None
    ) -> JobView:
        """Until it has ended.  `told` is called with how it is, time and again.

        Raises JobFailed if it does not succeed, and TimeoutError when the time is over (the job
        goes on).  A tracker that does not answer is asked until it does.
        """
        begun = time.monotonic()
        pause = _LOOK_S[0]
        while True:
            view = self._look()
            if view is not None:
                if told is not None:
                    told(view)
                if has_ended(view):
                    break
            left = None if timeout_s is None else begun + timeout_s - time.monotonic()
            if left is not None and left <= 0:
                raise TimeoutError(f"{self.job_id} has not ended within {timeout_s:g} s")
            time.sleep(pause if left is None else min(pause, left))
            pause = min(pause * 1.3, _LOOK_S[1])
        if view.state != "succeeded":
            raise failed(view, self.tasks())
        return view

    def _look(self) -> JobView | None:
        try:
            return self.status()
        except Unavailable:
            return None


class Job(Known):
    """A job that this process has submitted.  `close` (or `with`) ends what this process runs for
    it; a job of a tracker elsewhere goes on."""

    def __init__(self, client: Client, spec: JobSpec) -> None:
        super().__init__(client, spec.job_id)
        self.spec = spec
        # The command by which it goes on if this process dies; "" if there is none.
        self.resumed_by = client.resumed_by

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def failed(view: JobView, tasks: Sequence[TaskView]) -> JobFailed:
    """The error for a job that has ended, and has not succeeded."""
    if view.state == "killed":
        return JobFailed(view, f"{view.job_id} was killed: {view.why}")
    return JobFailed(view, "\n".join(report.failure_lines(view, tasks)))


class Asked(TypedDict, total=False):
    """A job, by keyword: see `run`."""

    mapper: Required[Work]
    reducer: Work | None
    combiner: Work | None
    inputs: Required[str | Sequence[str]]
    output: Required[str]
    reduces: int
    conf: Mapping[str, object]
    files: Sequence[str]
    archives: Sequence[str]
    env: Mapping[str, str]
    name: str
    partitioner: str


def run(
    *,
    master: str | None = None,
    local: int | None = None,
    tracker: str | None = None,
    state: str = "",
    timeout_s: float | None = None,
    **asked: Unpack[Asked],
) -> JobView:
    """Run a job and wait for it; how it has ended, with its counters.

    The job:
    mapper: function or command.  reducer: the same; None: what maps write is the output.
    combiner: a reducer for what one map has written.
    inputs: path or URL, or several: of files, directories or globs.
    output: path or URL of the directory to be made.
    reduces: how many reduces (1).  conf: properties (`conf.py`).  name: of the job.
    files, archives: paths or URLs, `PATH#NAME` by another name, for the tasks' directory.
    env: variables of the tasks.  partitioner: "hash" or "key-field".

    state: with `master`, URL of a directory that agents reach, for what is shipped and what must
    survive this process; default: one beside the output, until the job has ended.

    Raises InvalidValue, NotFound and AlreadyExists for what is wrong with it, and JobFailed.
    Interrupted (Ctrl-C, any exception), or not done within `timeout_s`, the job is killed; the
    latter raises TimeoutError.
    """
    target = Target(master=master, local=local, tracker=tracker, state=state)
    with _submitted(asked, target) as job:
        try:
            return job.wait(timeout_s)
        except JobFailed:
            raise
        except BaseException:
            _end(job)
            raise


def _end(job: Job) -> None:
    """Kill it, and wait a while until nothing of it is left."""
    with suppress(MesosPyError, TimeoutError):
        job.kill("its program was interrupted")
        job.wait(END_S)


def submit(
    *,
    master: str | None = None,
    local: int | None = None,
    tracker: str | None = None,
    state: str = "",
    **asked: Unpack[Asked],
) -> Job:
    """As `run`, but do not wait: the job's handle.  Close it when done with it."""
    target = Target(master=master, local=local, tracker=tracker, state=state)
    return _submitted(asked, target)


def _submitted(asked: Asked, target: Target) -> Job:
    options = options_of(asked)
    return start(options, programs_of(asked, options), target)


def start(options: Options, programs: submission.Programs, target: Target) -> Job:
    """Ship and submit.  Nothing is left behind if the job is not accepted."""
    job_id = submission.new_job_id()
    output = files.absolute(options.output, options.conf, "-output")
    client = connect(target, output=output, job_id=job_id)
    try:
        spec = submission.job_of(
            options,
            programs,
            job_id=job_id,
            user=getpass.getuser(),
            staging=client.staging(job_id),
            now_s=time.time(),
        )
        try:
            spec = submission.ship(spec, options.shipped)
            client.submit(spec)
        except BaseException:
            submission.unship(spec)
            raise
    except BaseException:
        client.close()
        raise
    return Job(client, spec)


def options_of(asked: Asked) -> Options:
    """Checked.  Raises InvalidValue naming the argument."""
    for name in asked:
        if name not in Asked.__annotations__:
            raise InvalidValue(name, asked.get(name), "is not an argument")
    for name in ("mapper", "inputs", "output"):
        if not asked.get(name):
            raise InvalidValue(name, asked.get(name), "must be given")
    given = asked["inputs"]
    inputs = [given] if isinstance(given, (str, os.PathLike)) else list(given)
    partitioner = asked.get("partitioner", "hash")
    if partitioner not in ("hash", "key-field"):
        raise InvalidValue("partitioner", partitioner, "must be hash or key-field")
    conf = _conf_of(asked)
    shipped = [streaming.given("files", os.fspath(each)) for each in asked.get("files", ())]
    shipped += [
        streaming.given("archives", os.fspath(each), archive=True)
        for each in asked.get("archives", ())
    ]
    return Options(
        inputs=[part for each in inputs for part in streaming.parts_of(os.fspath(each)) if part],
        output=os.fspath(asked["output"]),
        reduces=properties.REDUCES.of(conf),
        partitioner=partitioner,
        shipped=streaming.check_names(shipped),
        env=dict(asked.get("env", {})),
        conf=conf,
    )


def _conf_of(asked: Asked) -> dict[str, str]:
    given = {name: _text(value) for name, value in asked.get("conf", {}).items()}
    conf = properties.normalised(given)
    if "reduces" in asked:
        conf[properties.REDUCES.name] = str(asked["reduces"])
    if asked.get("name"):
        conf[properties.JOB_NAME.name] = asked["name"]
    conf = properties.normalised(conf)
    if asked.get("reducer") is None:
        if properties.REDUCES.name in conf and properties.REDUCES.of(conf):
            raise InvalidValue("reduces", properties.REDUCES.of(conf), "needs a reducer")
        conf[properties.REDUCES.name] = "0"
    return conf


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def programs_of(asked: Asked, options: Options) -> submission.Programs:
    """Raises InvalidValue naming the argument and what in it cannot be sent."""
    shipped = {each.name for each in options.shipped}
    mapper = _program("mapper", asked["mapper"], shipped)
    combiner = reducer = None
    if options.reduces:
        combiner = _program("combiner", asked.get("combiner"), shipped)
        reducer = _program("reducer", asked.get("reducer"), shipped)
    return submission.Programs(mapper or Program(), combiner, reducer)


def _program(argument: str, work: Work | None, shipped: set[str]) -> Program | None:
    if work is None:
        return None
    if isinstance(work, str):
        return submission.command(argument, work, shipped)
    if not callable(work):
        raise InvalidValue(argument, work, "must be a function or a command")
    try:
        return Program(function=functions.packed(work))
    except InvalidValue as error:
        raise InvalidValue(argument, error.value, error.reason + _culprits(work)) from error


def _culprits(function: Callable[..., Any]) -> str:
    """What a function uses that cannot be sent, in words: `cloudpickle` names only its type."""
    try:
        used = inspect.getclosurevars(function)
    except TypeError:
        return ""
    named = {**used.globals, **used.nonlocals}
    bad = [name for name, value in named.items() if not _can_be_sent(value)]
    return f"; it uses {', '.join(sorted(bad))}: make that inside of the function" if bad else ""


def _can_be_sent(value: object) -> bool:
    import cloudpickle

    try:
        cloudpickle.dumps(value)
    except Exception:
        return False
    return True
