"""What a framework's scheduler implements.

A scheduler is told of offers and of what becomes of its tasks through the methods
of `Scheduler`, and acts through the `SchedulerDriver` that each of them is given
(`driver.py`; what it can ask for is in `calls.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mesos_py import logs
from mesos_py.resources import Resources
from mesos_py.v1.scheduler_pb2 import Call, Event
from mesos_py.v1.types_pb2 import InverseOffer, MasterInfo, Offer, OperationStatus, TaskStatus

if TYPE_CHECKING:
    # Only the name of a type: the driver is built on this module.
    from mesos_py.scheduler.driver import SchedulerDriver

log = logs.get("scheduler")


class Scheduler:
    """Override what you need; everything does nothing by default.

    All methods are called on one thread, the driver's callback thread, one at a time
    and in the order in which the master sent things.  While one runs, no other does:
    long work belongs on a thread of your own, which may call the driver at any time.
    None is called before `SchedulerDriver.start` and none once `stop`, `abort` or
    `error` was called.

    What a method raises is logged with its traceback, ends the driver and is raised by
    `SchedulerDriver.run` and `join`; the framework stays registered for its failover
    time-out, so that a new scheduler with its id can take its tasks over.

    Ids are given as texts.
    """

    def registered(
        self, driver: SchedulerDriver, framework_id: str, master_info: MasterInfo
    ) -> None:
        """The first subscription of this driver has begun: it is the active instance.

        Called once, before any other method (but `standby`, and `disconnected` after
        that).  Keep `framework_id` where a successor finds it: a scheduler that
        subscribes with it (FrameworkInfo.id) gets this one's tasks.

        Whoever gave an id may have taken over from another instance, and cannot tell
        from this call: so read what is kept elsewhere, and ask how its tasks are
        (`driver.reconcile_tasks`) before launching any.
        """

    def reregistered(self, driver: SchedulerDriver, master_info: MasterInfo) -> None:
        """The subscription was renewed, with the same master or another one.

        Called after each `disconnected` once there is a master again.  All earlier
        offers are dead.  With several instances (`standby`) another one may have been
        active meanwhile, also if this one was never told to stand by: read what is kept
        elsewhere as in `registered`.  What happened to tasks meanwhile may be unknown to the master
        for a while; `driver.reconcile_tasks` asks.  Suppressed roles, filters, stated
        needs and kills that were not answered have been said again by the driver.
        """

    def disconnected(self, driver: SchedulerDriver) -> None:
        """The link to the master is lost; the driver is looking for one by itself.

        Called once per loss, also while standing by.  Tasks go on running.  All offers
        are dead: a launch on one is answered by a `status_update` with TASK_DROPPED or
        TASK_LOST.  Kills, acknowledgements and reconciliations may be called for and are
        sent later.
        """

    def standby(self, driver: SchedulerDriver, ahead: int) -> None:
        """Another instance of the framework is active; this one waits to take over.

        Only with `SchedulerDriver(..., standby=True)`.  Called instead of `registered` or
        `reregistered`, and again whenever `ahead` has changed: so many instances are
        promoted before this one.  When its turn comes, `registered` is called (the first
        time) or `reregistered`.

        For an instance that was active before, this is the end of its rule: all offers
        are dead, and what becomes of launches and kills that were under way is told to
        the other one.  Calls made now are not kept for later: `call_refused` answers
        them, a launch is answered by a `status_update`.
        """

    def resource_offers(self, driver: SchedulerDriver, offers: Sequence[Offer]) -> None:
        """Resources of agents that this framework may use now.

        Called with all offers of one round, each of one agent and one role.  Answer
        each offer once, here or later: `driver.launch_tasks`, `accept_offers` or
        `decline_offers`.  An offer with a `max_task_duration` is kept for short tasks:
        what is launched there is ended when it has run for so long (TASK_FAILED,
        REASON_MAX_COMPLETION_TIME_REACHED); it cannot be used together with other
        offers.  What is kept unanswered counts as used by this framework and is taken
        back by the master after its offer time-out.
        """

    def offer_rescinded(self, driver: SchedulerDriver, offer_id: str) -> None:
        """The offer can no longer be used: it timed out, or its agent went away.

        May come for an offer that was answered already (the messages crossed); then the
        tasks of that answer get a `status_update` that says what became of them.
        """

    def inverse_offers(self, driver: SchedulerDriver, offers: Sequence[InverseOffer]) -> None:
        """Something is asked of this framework, for each agent that is named.

        With `unavailability`: the machine is to be absent from its `start` on, and this
        framework has something there (`resources`).  With `revocation`: the `resources`
        are wanted back for another framework.  `mesos_py.asked_back(offer)` shows what,
        until when, in which role, and which tasks were chosen; end these or others of that
        role on that agent before the deadline, or those chosen are killed
        (`mesos_py.is_preempted(status)`).  Accepting says that you will; declining saves nothing.

        Of absences: answer with `driver.accept_inverse_offers` (it will have left by then) or
        `decline_inverse_offers`: operators see that.  To leave is to end the tasks there
        and start them elsewhere; offers of such machines say when as well
        (`offer.unavailability`).  Nothing is taken before an operator does so by hand.
        """

    def needs_answered(self, driver: SchedulerDriver, answer: Event.Needs) -> None:
        """What became of the needs that were stated (`driver.request_resources`).

        Called after each statement, and again when that changes.  `answer.accepted` are
        those that count, `answer.admitted` says whether all mandatory ones can be met
        (nothing is offered before), `answer.message` in words what was cut and why, or why
        the framework is not admitted.
        """

    def guarantee_changed(self, driver: SchedulerDriver, share: Resources) -> None:
        """`driver.guaranteed_share()` is `share` now."""

    def inverse_offer_rescinded(self, driver: SchedulerDriver, offer_id: str) -> None:
        """The question is void: the time is another one now, or the machine stays or is
        away, or it was not answered in time."""

    def status_update(self, driver: SchedulerDriver, status: TaskStatus) -> None:
        """A task has a new state, or is reported once more.

        For one task the updates come in order; the next comes after this one was
        acknowledged, which happens when this method returns (unless the driver was made
        with `implicit_acknowledgements=False`: then call `driver.acknowledge`).  Until
        then an update is sent again, also to a successor of this scheduler: at least
        once, so handle one that comes twice.  One that this driver has acknowledged is
        not shown again.

        A status without a uuid is the master's own word (`reason` says why: an answer
        to a reconciliation, a launch that could not be) and needs no acknowledgement.
        `mesos_py.is_terminal(status.state)` tells whether the task has ended.
        """

    def operation_update(self, driver: SchedulerDriver, status: OperationStatus) -> None:
        """What became of an operation that has an id (`mesos_py.reserve`, `create_volume` ...).

        OPERATION_FINISHED is told once its agent has written it down, and again until it
        is acknowledged, which happens when this method returns (or by
        `driver.acknowledge_operation`, as with `status_update`): handle one that comes
        twice.  OPERATION_ERROR, by the master: it was not carried out, `status.message`
        says why.  OPERATION_DROPPED: it did not reach its agent.  OPERATION_UNREACHABLE and
        OPERATION_GONE_BY_OPERATOR: its agent is away, or gone.
        """

    def framework_message(
        self, driver: SchedulerDriver, agent_id: str, executor_id: str, data: bytes
    ) -> None:
        """An executor has sent `data`.  Best effort: it may be lost, never altered."""

    def agent_lost(self, driver: SchedulerDriver, agent_id: str) -> None:
        """An agent is gone.  Its tasks are reported by `status_update`, reliably; this
        notice is not reliable."""

    def executor_lost(
        self, driver: SchedulerDriver, agent_id: str, executor_id: str, status: int
    ) -> None:
        """A custom executor has ended with this wait status, -1 if that is unknown.

        Its tasks are reported by `status_update`; this notice is not reliable.
        """

    def call_refused(self, driver: SchedulerDriver, refusal: Event.Refused) -> None:
        """A call was not carried out: `refusal.message` says why in words, `code` is a
        stable word, `field` and `value` name what was at fault.

        Tasks of a refused launch get a `status_update` as well.  By default the refusal
        is logged as a warning.
        """
        log.warning(
            "call refused",
            call=call_name(refusal.call),
            code=refusal.code,
            field=refusal.field,
            value=refusal.value,
            why=refusal.message,
        )

    def error(self, driver: SchedulerDriver, message: str) -> None:
        """The driver cannot go on: the master refused the subscription for good or gave
        it to another instance, or no master was found in the time allowed.

        Called at most once, as the last method; `run` and `join` raise the same.
        """


def call_name(kind: Call.Type.ValueType) -> str:
    """The name of a call's type, also of one that only a later protocol has."""
    return Call.Type.Name(kind) if kind in Call.Type.values() else str(kind)


__all__ = ["Scheduler", "call_name"]
