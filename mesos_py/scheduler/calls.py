"""What a scheduler can ask for: the calls that driver and asyncio client share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence

from mesos_py.errors import Conflict, Unavailable
from mesos_py.ids import check_id
from mesos_py.resources import Resources
from mesos_py.scheduler import checks
from mesos_py.scheduler.checks import (
    AgentLike,
    ExecutorLike,
    FiltersLike,
    InverseOfferLike,
    OfferLike,
    OperationLike,
    ReconcileLike,
    RoleConstraints,
    TaskLike,
    text_of,
)
from mesos_py.scheduler.needs import NeedLike
from mesos_py.scheduler.session import SchedulerSession
from mesos_py.v1.scheduler_pb2 import Call
from mesos_py.v1.types_pb2 import (
    AgentID,
    ExecutorID,
    ExecutorInfo,
    FrameworkInfo,
    Offer,
    OperationStatus,
    TaskID,
    TaskInfo,
    TaskStatus,
)


class SharedSession:
    """A session with its lock; `with shared as session:` for one step of it.

    `wake` is called after each step, on the thread that made it: there may be
    something to write or to show.
    """

    def __init__(self, session: SchedulerSession, default_user: str, default_hostname: str) -> None:
        self.session = session
        self.lock = threading.Lock()
        self.wake: Callable[[], None] = lambda: None
        # Why it has failed; calls raise it from then on.
        self.failure: BaseException | None = None
        self.default_user = default_user
        self.default_hostname = default_hostname

    def __enter__(self) -> SchedulerSession:
        if self.failure is not None:
            raise Unavailable(f"the scheduler has ended: {self.failure}") from self.failure
        self.lock.acquire()
        return self.session

    def __exit__(self, *_: object) -> None:
        self.lock.release()
        self.wake()


class SchedulerCalls:
    """The calls.  From any thread, at any time; none waits for the master.

    Each is checked here and raises InvalidValue or TooLarge, naming the field and the
    value, before anything is sent.  What the master refuses comes back as
    `Scheduler.call_refused`, what becomes of tasks as `Scheduler.status_update`.

    After `stop` or `abort` calls do nothing; after a failure they raise Unavailable.

    Wherever an offer, agent, task or executor is named, its id as a text will do as
    well as the id message; for an offer also the Offer itself.
    """

    def __init__(self, shared: SharedSession, implicit_acknowledgements: bool) -> None:
        self._shared = shared
        self._implicit = implicit_acknowledgements

    # ---- What is known -------------------------------------------------------

    @property
    def framework_id(self) -> str:
        """The framework's id; empty before the first subscription of a new one."""
        return self._shared.session.framework_id

    @property
    def connected(self) -> bool:
        """Whether there is a subscription at this moment."""
        return self._shared.session.subscribed

    @property
    def standing_by(self) -> bool:
        """Whether a master has taken this instance in as a standby, at this moment."""
        return self._shared.session.standing_by

    def guaranteed_share(self) -> Resources:
        """What the framework is guaranteed, as the master said last: nothing is taken back
        below it, and it gets that much whenever it needs it.

        Empty before the first subscription, and where nothing is guaranteed.
        """
        return self._shared.session.guaranteed_share

    # ---- Offers --------------------------------------------------------------

    def launch_tasks(
        self,
        offers: OfferLike | Iterable[OfferLike],
        tasks: TaskInfo | Iterable[TaskInfo],
        filters: FiltersLike = None,
    ) -> None:
        """Launch tasks on the resources of one or several offers of one agent.

        What the tasks leave goes back to the master and is refused for the seconds in
        `filters` (a number, or Filters; None: 5 s).  No tasks: the offers are declined.
        A task's agent id is filled in.  The offers cannot be used again.

        Raises InvalidValue for offers that are unknown, used before or of different
        agents or roles, and for tasks with unusable, equal or missing ids; TooLarge if
        all the tasks together do not fit into one message.  For an offer that has been
        rescinded or whose subscription ended, each task gets a `status_update` with
        TASK_DROPPED (TASK_LOST without PARTITION_AWARE), reason INVALID_OFFERS.
        """
        listed = [tasks] if isinstance(tasks, TaskInfo) else list(tasks)
        launch = Offer.Operation(
            type=Offer.Operation.LAUNCH, launch=Offer.Operation.Launch(task_infos=listed)
        )
        self.accept_offers(offers, [launch], filters)

    def launch_group(
        self,
        offers: OfferLike | Iterable[OfferLike],
        executor: ExecutorInfo,
        tasks: Iterable[TaskInfo],
        filters: FiltersLike = None,
    ) -> None:
        """Launch tasks as a group, all or none, with one executor for all of them.

        Its type says whose: CUSTOM, or DEFAULT for that of the agent (see
        `default_executor`).  An executor with the same description that runs there takes
        the group as well.  Otherwise as `launch_tasks`, but what is wrong with one task is
        wrong with all: each gets TASK_ERROR, reason TASK_GROUP_INVALID.
        """
        group = Offer.Operation(type=Offer.Operation.LAUNCH_GROUP)
        group.launch_group.executor.CopyFrom(executor)
        if not executor.framework_id.value:
            # A master of Apache Mesos fills it in for single tasks only.
            group.launch_group.executor.framework_id.value = self.framework_id
        group.launch_group.task_group.tasks.extend(tasks)
        self.accept_offers(offers, [group], filters)

    def accept_offers(
        self,
        offers: OfferLike | Iterable[OfferLike],
        operations: Sequence[Offer.Operation],
        filters: FiltersLike = None,
    ) -> None:
        """Like `launch_tasks`, with operations; they are carried out in order.

        `mesos_py.launch`, `reserve`, `unreserve`, `create_volume`, `destroy_volume`,
        `grow_volume` and `shrink_volume` make them; each may rest on what those before it
        have made, also a launch on what is reserved, or on a volume that is made, here.  What
        is wrong with one concerns it alone: its tasks get a `status_update`, others a
        `call_refused`, and an `operation_update` with OPERATION_ERROR if they have an id.
        What is reserved is offered again at once; it stays reserved when the framework is
        gone.
        """
        ids, checked = checks.offer_ids_of(offers), checks.filters_of(filters)
        with self._shared as session:
            session.accept(ids, operations, checked)

    def decline_offers(
        self, offers: OfferLike | Iterable[OfferLike], filters: FiltersLike = None
    ) -> None:
        """Give offers back.  The same resources are not offered again for the seconds in
        `filters` (None: 5 s; infinity: a year, or until `set_needs_offers(True)`).

        An offer that is gone is passed over; InvalidValue for one that was used before.
        """
        ids, checked = checks.offer_ids_of(offers), checks.filters_of(filters)
        with self._shared as session:
            session.decline(ids, checked)

    def reconcile_operations(self, operations: Iterable[OperationLike] = ()) -> None:
        """Ask what became of operations that have an id; each answer is an
        `operation_update`.

        Name them by id, by `(operation id, agent id)` or by their last status.  None named:
        all that wait for their acknowledgement.  OPERATION_UNKNOWN is the answer for one
        that never arrived, and for one whose outcome was acknowledged: ask after a lost link
        about those without an outcome, and look at what is offered.
        """
        entries = checks.operation_entries(operations)
        with self._shared as session:
            asked = Call.ReconcileOperations(operations=entries)
            session.say(Call.RECONCILE_OPERATIONS, reconcile_operations=asked)

    def acknowledge_operation(self, status: OperationStatus) -> None:
        """As `acknowledge`, of an `operation_update`."""
        if self._implicit:
            raise Conflict(
                "updates are acknowledged implicitly here: pass implicit_acknowledgements=False"
            )
        self._acknowledge_operation(status)

    def _acknowledge_operation(self, status: OperationStatus) -> None:
        if not status.uuid.value:
            return
        done = Call.AcknowledgeOperationStatus(
            agent_id=status.agent_id, uuid=status.uuid.value, operation_id=status.operation_id
        )
        with self._shared as session:
            session.say(Call.ACKNOWLEDGE_OPERATION_STATUS, acknowledge_operation_status=done)

    def accept_inverse_offers(
        self,
        offers: InverseOfferLike | Iterable[InverseOfferLike],
        filters: FiltersLike = None,
    ) -> None:
        """Say that this framework will have left the machines in time.

        A promise that operators see, and nothing else: end the tasks there yourself.  The
        same of an inverse offer that asks for something back (`asked_back`).  While
        something is left there the question comes again after the seconds in `filters`
        (None: 5 s), or with `set_needs_offers(True)`.
        """
        ids, checked = checks.inverse_offer_ids_of(offers), checks.filters_of(filters)
        with self._shared as session:
            session.answer_inverse(ids, True, checked)

    def decline_inverse_offers(
        self,
        offers: InverseOfferLike | Iterable[InverseOfferLike],
        filters: FiltersLike = None,
    ) -> None:
        """Say that this framework will not have left in time; `filters` as above."""
        ids, checked = checks.inverse_offer_ids_of(offers), checks.filters_of(filters)
        with self._shared as session:
            session.answer_inverse(ids, False, checked)

    # ---- Wants ---------------------------------------------------------------

    def set_needs_offers(self, needs: bool, roles: str | Iterable[str] | None = None) -> None:
        """Whether offers are wanted, for these roles (None: all).

        False (SUPPRESS) costs nothing and lets other frameworks have what there is: say
        it whenever nothing waits.  True (REVIVE) also forgets all refusals made by
        `decline_offers` and `launch_tasks`, so that everything free is offered at once.
        Kept over a lost link.
        """
        with self._shared as session:
            session.set_needs_offers(needs, roles)

    def set_filters(
        self,
        hosts: Sequence[str] | None = None,
        min_free: Resources | Sequence[Resources] | None = None,
        constraints: RoleConstraints | None = None,
    ) -> None:
        """Which offers are wanted at all, for all roles; replaces what was set before.

        `hosts`: agents with one of these host names only.  `min_free`: agents with at
        least this much free (of several bundles: one of them).  `constraints`: conditions
        on attributes (`mesos_py.constraints`).  All that are given must hold; None
        clears.  Kept over a lost link.

        Raises InvalidValue for an empty list of hosts, for a `min_free` that is not made
        of amounts, and for malformed constraints.
        """
        with self._shared as session:
            session.set_filters(hosts, min_free, constraints)

    def request_resources(self, needs: Iterable[NeedLike]) -> None:
        """State the least that the framework needs to hold in all, as a whole: `Need`, or
        `(what for, resources of one, how many)`.  What it holds already counts.

        While it lacks some of that, others may be made to give up what they hold above
        what is theirs; and its own, up to its needs, is taken back last.  The answer is
        `Scheduler.needs_answered`: operators may allow less.  State other needs at any
        time; an empty list: no more than one gets by fair sharing.  Sent only when it
        differs from the last time.  Kept over a lost link.  What waits beyond what is
        needed is said by `state_waiting`.

        Raises InvalidValue for a count below one, a need of nothing, and more than 1000, and
        TooLarge for more than a MiB.
        """
        listed = list(needs)
        with self._shared as session:
            session.request(listed)

    def state_waiting(self, waiting: Iterable[NeedLike]) -> None:
        """State what waits, as a whole, in the form of `request_resources`.

        It allocates nothing and takes nothing from anybody; it lets the cluster explain
        why nothing fits ("needs 100 cpus, the largest agent has 2").  An empty list:
        nothing is waiting.  Sent only when it differs from the last time.  Kept over a
        lost link.
        """
        listed = list(waiting)
        with self._shared as session:
            session.wait_for(listed)

    def update_framework(self, framework: FrameworkInfo) -> None:
        """Change name, roles, labels, failover time-out and so on.

        Replaces the description as a whole, the filters of `set_filters` excepted; what
        is not set gets the same defaults as at the start.  Raises InvalidValue for
        another id, user, principal or checkpoint, which cannot change.
        """
        info = checks.complete_framework(
            framework, self._shared.default_user, self._shared.default_hostname
        )
        with self._shared as session:
            session.update_framework(info)

    # ---- Tasks and executors -------------------------------------------------

    def kill_task(
        self, task: TaskLike, agent: AgentLike | None = None, *, grace_s: float | None = None
    ) -> None:
        """End a task: SIGTERM, after the grace (None: the task's own) SIGKILL.

        Said again after a lost link until the task is known to have ended.  A task that
        the master does not know is answered as `reconcile_tasks` would be; name the
        agent where you know it.
        """
        kill = Call.Kill(
            task_id=TaskID(value=check_id("task_id", text_of(task))),
            agent_id=_agent(agent),
            kill_policy=checks.kill_policy_of(grace_s),
        )
        with self._shared as session:
            session.kill(kill)

    def reconcile_tasks(self, tasks: Iterable[ReconcileLike] = ()) -> None:
        """Ask for the state of tasks; each answer is a `status_update`.

        Name tasks by id, by `(task id, agent id)` or by their last status.  None named:
        all that the master knows.  A task on an agent that has not come back after a
        change of master gets no answer: ask again later, with growing pauses.
        """
        listed = list(tasks)
        with self._shared as session:
            session.reconcile(listed)

    def acknowledge(self, status: TaskStatus | Iterable[TaskStatus]) -> None:
        """Say that an update has been dealt with, so that the next of its task may come.

        Only with `implicit_acknowledgements=False`; raises Conflict otherwise.  A status
        without a uuid needs none and is passed over.
        """
        if self._implicit:
            raise Conflict(
                "updates are acknowledged implicitly here: pass implicit_acknowledgements=False"
            )
        self._acknowledge([status] if isinstance(status, TaskStatus) else status)

    def _acknowledge(self, statuses: Iterable[TaskStatus]) -> None:
        with self._shared as session:
            session.acknowledge(statuses)

    def send_framework_message(self, executor: ExecutorLike, agent: AgentLike, data: bytes) -> None:
        """Send `data` to a custom executor.  Best effort: it may be lost.

        Without a link to the master it is refused (`Scheduler.call_refused`).
        """
        message = Call.Message(
            executor_id=ExecutorID(value=check_id("executor_id", text_of(executor))),
            agent_id=_agent(agent),
            data=data,
        )
        with self._shared as session:
            session.message(message)

    def shutdown_executor(self, executor: ExecutorLike, agent: AgentLike) -> None:
        """Ask a custom executor to end, tasks included; after its grace it is killed."""
        shutdown = Call.Shutdown(
            executor_id=ExecutorID(value=check_id("executor_id", text_of(executor))),
            agent_id=_agent(agent),
        )
        with self._shared as session:
            session.say(Call.SHUTDOWN, shutdown=shutdown)


def _agent(agent: AgentLike | None) -> AgentID | None:
    return None if agent is None else AgentID(value=check_id("agent_id", text_of(agent)))


__all__ = ["SchedulerCalls", "SharedSession"]
