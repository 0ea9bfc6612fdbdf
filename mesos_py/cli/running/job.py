"""A command that runs on the cluster, once or several times: what to launch, when it
is done, and with which exit code.  Pure: told of offers and statuses, answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from mesos_py.cli.exits import Exit, of_signal
from mesos_py.resources import Resources
from mesos_py.states import (
    TASK_DROPPED,
    TASK_ERROR,
    TASK_FAILED,
    TASK_FINISHED,
    TASK_KILLED,
    TASK_KILLING,
    TASK_LOST,
    TASK_RUNNING,
    TERMINAL,
    is_preempted,
    short_name,
)
from mesos_py.v1.types_pb2 import (
    CommandInfo,
    ContainerInfo,
    Environment,
    HealthCheck,
    Offer,
    TaskInfo,
    TaskStatus,
)

_SIGTERM: Final = 15

# The task never reached its agent, for no fault of its own: its offer had gone.
_OFFER_GONE: Final = frozenset(
    {
        TaskStatus.REASON_INVALID_OFFERS,
        TaskStatus.REASON_AGENT_DISCONNECTED,
        TaskStatus.REASON_AGENT_REMOVED,
    }
)


@dataclass(frozen=True)
class Spec:
    """What is to be run.

    `each` is what one instance needs besides its ports; `ids` is what their task ids
    begin with, unique for this run.
    """

    name: str
    ids: str
    command: CommandInfo
    each: Resources
    instances: int = 1
    ports: int = 0
    retries: int = 0
    container: ContainerInfo | None = None
    health: HealthCheck | None = None


class Stage(Enum):
    """How far an instance has come."""

    WAITING = "waiting"
    LAUNCHED = "launched"
    RUNNING = "running"
    ENDED = "ended"


@dataclass
class Instance:
    """One of the instances.  `code` is its exit code, once it has ended."""

    index: int
    task_id: str
    stage: Stage = Stage.WAITING
    attempt: int = 0
    launches: int = 0
    agent_id: str = ""
    hostname: str = ""
    # Of the present attempt: whether its process is known to have existed.
    ran: bool = False
    code: int | None = None
    why: str = ""


@dataclass(frozen=True)
class Answer:
    """What to do with an offer: launch these (decline it if there are none)."""

    offer: Offer
    tasks: Sequence[TaskInfo]


@dataclass(frozen=True)
class Heard:
    """What a status meant.

    `again`: the instance waits for offers once more.  `own_code`: its process ended by
    itself, with an exit code.
    """

    instance: Instance
    ended: bool
    again: bool
    own_code: bool
    text: str


@dataclass
class Job:
    """All instances of a run."""

    spec: Spec
    instances: list[Instance] = field(init=False)
    # The exit code of the whole, should it be given up; set by `give_up`.
    given_up: int | None = None

    def __post_init__(self) -> None:
        self.instances = [
            Instance(index, self._task_id(index, 0)) for index in range(self.spec.instances)
        ]
        self._by_task = {each.task_id: each for each in self.instances}
        self._ended = 0

    # ---- Looking at it ---------------------------------------------------

    @property
    def waiting(self) -> list[Instance]:
        return [each for each in self.instances if each.stage is Stage.WAITING]

    @property
    def live(self) -> list[Instance]:
        """Those whose task has been launched and has not ended."""
        return [each for each in self.instances if each.stage in (Stage.LAUNCHED, Stage.RUNNING)]

    @property
    def done(self) -> bool:
        return self._ended == len(self.instances)

    @property
    def exit_code(self) -> int:
        """That of the first instance whose code is not zero."""
        if self.given_up is not None:
            return self.given_up
        return next((each.code for each in self.instances if each.code), Exit.OK)

    def counts(self) -> dict[str, int]:
        """How many are at each stage."""
        found = Counter(each.stage for each in self.instances)
        return {stage.value: found[stage] for stage in Stage}

    def title(self, instance: Instance) -> str:
        """What people know the instance by."""
        if self.spec.instances == 1:
            return self.spec.name
        return f"{self.spec.name}.{instance.index}"

    def wants(self) -> list[tuple[str, Resources, int]]:
        """What is waited for, for `state_waiting`: name, amount, how many."""
        count = len(self.waiting)
        return [(self.spec.name, self.spec.each, count)] if count else []

    # ---- Offers ----------------------------------------------------------

    def on_offers(self, offers: Iterable[Offer]) -> list[Answer]:
        """An answer to each offer; instances are spread over the offers in turn.

        Room that is kept for short tasks is left to those who know how long theirs run."""
        rooms = [_Room(offer) for offer in offers]
        waiting = [] if self.given_up is not None else self.waiting
        usable = [room for room in rooms if not room.short and room.fits(self.spec)]
        while waiting and usable:
            for room in usable:
                if not waiting:
                    break
                room.tasks.append(self._launched(waiting.pop(0), room))
            usable = [room for room in usable if room.fits(self.spec)]
        return [Answer(room.offer, room.tasks) for room in rooms]

    def _launched(self, instance: Instance, room: _Room) -> TaskInfo:
        resources, ports = room.take(self.spec)
        instance.stage = Stage.LAUNCHED
        instance.agent_id = room.offer.agent_id.value
        instance.hostname = room.offer.hostname
        task = TaskInfo(
            name=self.title(instance),
            resources=resources.to_proto(),
            command=self._command(instance, ports),
            health_check=self.spec.health,
        )
        if self.spec.container is not None:
            task.container.CopyFrom(self.spec.container)
        task.task_id.value = instance.task_id
        task.agent_id.value = instance.agent_id
        return task

    def _command(self, instance: Instance, ports: Sequence[int]) -> CommandInfo:
        command = CommandInfo()
        command.CopyFrom(self.spec.command)
        extra = {
            "MESOS_PY_INSTANCE": str(instance.index),
            "MESOS_PY_INSTANCES": str(self.spec.instances),
            "MESOS_PY_ATTEMPT": str(instance.attempt),
        }
        if ports:
            extra["PORT"] = str(ports[0])
            extra["PORTS"] = ",".join(map(str, ports))
            extra.update({f"PORT{number}": str(port) for number, port in enumerate(ports)})
        given = {each.name for each in command.environment.variables}
        command.environment.variables.extend(
            Environment.Variable(name=name, type=Environment.Variable.VALUE, value=value)
            for name, value in extra.items()
            if name not in given
        )
        return command

    # ---- Statuses --------------------------------------------------------

    def on_status(self, status: TaskStatus) -> Heard | None:
        """Take a status in; None for a task that is not (or no more) one of ours."""
        instance = self._by_task.get(status.task_id.value)
        if instance is None or instance.task_id != status.task_id.value:
            return None
        if instance.stage in (Stage.ENDED, Stage.WAITING):
            return None
        if status.state in (TASK_RUNNING, TASK_KILLING):
            instance.stage = Stage.RUNNING
            instance.ran = True
        elif status.HasField("exit_status"):
            instance.ran = True
        if status.state not in TERMINAL:
            text = short_name(status.state)
            return Heard(instance, ended=False, again=False, own_code=False, text=text)
        text = self._ending(status)
        again = self._start_over(instance, status)
        if not again:
            self._end(instance, code_of(status, ran=instance.ran), text)
        own = status.state in (TASK_FINISHED, TASK_FAILED) and (
            status.exit_status.HasField("exit_code")
        )
        return Heard(instance, ended=True, again=again, own_code=own, text=text)

    def _start_over(self, instance: Instance, status: TaskStatus) -> bool:
        if self.given_up is not None:
            return False
        if _offer_was_gone(status, instance) or is_preempted(status):
            pass  # bad luck with an offer, or room that others needed more, is no attempt
        elif instance.attempt < self.spec.retries and _worth_retrying(status):
            instance.attempt += 1
        else:
            return False
        # A new id each time: late news of the old task must not be taken for news
        # of the new one.
        instance.launches += 1
        instance.stage = Stage.WAITING
        instance.ran = False
        instance.task_id = self._task_id(instance.index, instance.launches)
        self._by_task[instance.task_id] = instance
        return True

    def _ending(self, status: TaskStatus) -> str:
        words = [short_name(status.state)]
        if status.message:
            words.append(status.message)
        return ": ".join(words)

    def give_up(self, code: int) -> list[Instance]:
        """End the run with `code`; returns the instances whose tasks are to be killed."""
        if self.given_up is None:
            self.given_up = code
        for each in self.waiting:
            self._end(each, Exit.NOT_RUN, "never ran")
        return self.live

    def is_stray(self, status: TaskStatus) -> bool:
        """Whether this is news of a live task that was given up for lost and replaced."""
        instance = self._by_task.get(status.task_id.value)
        return (
            instance is not None
            and instance.task_id != status.task_id.value
            and status.state not in TERMINAL
        )

    def _end(self, instance: Instance, code: int, why: str) -> None:
        instance.stage = Stage.ENDED
        instance.code = code
        instance.why = why
        self._ended += 1

    def _task_id(self, index: int, launches: int) -> str:
        number = f"-{index}" if self.spec.instances > 1 else ""
        return f"{self.spec.ids}{number}" + (f"-r{launches}" if launches else "")


class _Room:
    """What is left of an offer."""

    def __init__(self, offer: Offer) -> None:
        self.offer = offer
        self.left = Resources.from_proto("offer", offer.resources)
        self.short = offer.HasField("max_task_duration")
        self.tasks: list[TaskInfo] = []

    def fits(self, spec: Spec) -> bool:
        if not self.left.contains(spec.each):
            return False
        ports = self.left.ranges.get("ports", ())
        return sum(end - begin + 1 for begin, end in ports) >= spec.ports

    def take(self, spec: Spec) -> tuple[Resources, Sequence[int]]:
        wanted = spec.each
        ports: Sequence[int] = ()
        if spec.ports:
            ports = self.left.pick("ports", spec.ports)
            wanted = wanted + Resources.of(ports=[(port, port) for port in ports])
        self.left = self.left - wanted
        return wanted, ports


def _offer_was_gone(status: TaskStatus, instance: Instance) -> bool:
    if instance.ran or status.state not in (TASK_LOST, TASK_DROPPED):
        return False
    return status.source == TaskStatus.SOURCE_MASTER and status.reason in _OFFER_GONE


def _worth_retrying(status: TaskStatus) -> bool:
    """Not what somebody wanted to end, nor what no agent would take."""
    if status.state == TASK_KILLED and status.HasField("healthy"):
        return not status.healthy  # its health check wanted it
    return status.state not in (TASK_FINISHED, TASK_KILLED, TASK_ERROR)


def code_of(status: TaskStatus, *, ran: bool) -> int:
    """The exit code that stands for how a task ended.

    Its own, or 128 and the signal; where there is neither: 1 for a task that ran and
    failed, NOT_RUN for one that did not run or whose end nobody saw.
    """
    ended = status.exit_status
    if ended.HasField("signal"):
        return of_signal(ended.signal)
    code = ended.exit_code if ended.HasField("exit_code") else None
    match status.state:
        case _ if code:
            return code
        case state if state == TASK_FINISHED:
            return Exit.OK
        case state if state == TASK_FAILED and ran:
            return Exit.NEGATIVE
        case state if state == TASK_KILLED and ran:
            # It took SIGTERM for a request and left in peace; it did not finish.
            return of_signal(_SIGTERM)
        case _:
            return Exit.NOT_RUN
