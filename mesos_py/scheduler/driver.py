"""The scheduler's driver: callbacks on a thread, calls from any thread."""

from __future__ import annotations

from mesos_py.clock import Clock
from mesos_py.drivers import CallbackDriver
from mesos_py.election import Detector
from mesos_py.errors import MesosPyError
from mesos_py.rpc import LINK_TIMEOUTS, LinkTimeouts
from mesos_py.scheduler.aio import STOP_TIMEOUT_S, Acknowledgements, SchedulerClient
from mesos_py.scheduler.api import Scheduler
from mesos_py.scheduler.calls import SchedulerCalls
from mesos_py.scheduler.session import Disconnected, Item
from mesos_py.v1.scheduler_pb2 import Event
from mesos_py.v1.types_pb2 import FrameworkInfo


class SchedulerDriver(SchedulerCalls, CallbackDriver[Item]):
    """Runs a `Scheduler` against the master that leads.

    ::

        SchedulerDriver(MyScheduler(), FrameworkInfo(name="mine"), "10.0.0.1:5060").run()

    It finds the master, subscribes, watches the link, and renews it without end; the
    callbacks are those of `Scheduler`, the calls those of `SchedulerCalls`.

    It ends when asked to (`stop`, `abort`), and by itself when a callback raises, when
    the master refuses the subscription for good or gives it to another instance, and
    when no master was found in `connect_timeout_s`.  In these cases `run` and `join`
    raise the reason: a driver never looks alive while it does nothing.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        framework: FrameworkInfo,
        master: str | Detector,
        *,
        implicit_acknowledgements: bool = True,
        standby: bool = False,
        connect_timeout_s: float | None = None,
        stop_timeout_s: float = STOP_TIMEOUT_S,
        timeouts: LinkTimeouts = LINK_TIMEOUTS,
        clock: Clock | None = None,
    ) -> None:
        """Starts nothing yet; calls may be made already.

        framework: needs a name; user, host name and failover time-out (an hour) get
            defaults, an id makes this the successor of an earlier scheduler.
        master: `host:port`, `h1:p1,h2:p2` of which one leads, or `zk://h1:p1,h2:p2/path`
            by which the leader is found; or a Detector.  `http://host:port` (or more of
            them, also `http://principal:secret@...`) and `http+zk://...` speak the Mesos v1
            HTTP API to the master, which may be one of Apache Mesos.
        implicit_acknowledgements: an update is acknowledged when `status_update`
            returns; else the scheduler calls `acknowledge` itself.
        standby: this is one of several instances of the framework, all started alike, of
            which one is active and the others wait to take over (`Scheduler.standby`).
            The framework's id must be given, the same in all of them.
        connect_timeout_s: give up (MasterUnreachable) when the first subscription (or the
            place among the standbys) takes longer; None: never.
        stop_timeout_s: how long `stop` tries to deliver TEARDOWN.

        Raises InvalidValue for a framework or master text that cannot be.
        """
        self._client = SchedulerClient(
            framework,
            master,
            implicit_acknowledgements=implicit_acknowledgements,
            standby=standby,
            connect_timeout_s=connect_timeout_s,
            stop_timeout_s=stop_timeout_s,
            timeouts=timeouts,
            clock=clock,
        )
        SchedulerCalls.__init__(self, self._client._shared, implicit_acknowledgements)
        CallbackDriver.__init__(self, f"scheduler {framework.name}")
        self._scheduler = scheduler
        self._registered = False
        self._acks = Acknowledgements(self._client._acknowledge)

    # ---- Life ----------------------------------------------------------------

    def run(self) -> None:
        """`start`, then `join`.  KeyboardInterrupt stops the driver (TEARDOWN) and is
        raised again."""
        super().run()

    def stop(self, failover: bool = False) -> None:
        """End; returns at once, `join` waits.  From any thread, also in a callback.

        Without `failover` the framework ends with all its tasks: the master is told
        TEARDOWN, and is tried to be reached for `stop_timeout_s` if it is away.  With
        `failover` the tasks go on, and a scheduler with the framework's id can take over
        within the failover time-out.  An instance that stands by leaves, and the framework
        goes on, whatever is said.  No callback is made any more.
        """
        self._quiet = True
        self._outside_callback(lambda: self._client.stop(failover))

    def abort(self) -> None:
        """End at once, sending nothing more; the framework stays as with `failover`."""
        self._quiet = True
        self._client.abort()

    # ---- The threads' work ---------------------------------------------------

    async def _link(self) -> None:
        async with self._client:
            async for batch in self._client.batches():
                await self._take_in(batch)

    def _dispatch(self, batch: list[Item]) -> None:
        try:
            for item in batch:
                if self._quiet:
                    break
                self._tell(item)
        finally:
            # Also after a failed callback: the ones before it have been dealt with.
            self._acks.flush()
            self._settle_callback()

    def _tell(self, item: Item) -> None:
        scheduler = self._scheduler
        self._client._note_role(item)
        if isinstance(item, Disconnected):
            scheduler.disconnected(self)
        elif item.type == Event.UPDATE:
            scheduler.status_update(self, item.update.status)
            if self._implicit:
                self._acks.add(item.update.status)
        elif item.type == Event.OFFERS:
            scheduler.resource_offers(self, item.offers.offers)
        elif item.type == Event.RESCIND:
            scheduler.offer_rescinded(self, item.rescind.offer_id.value)
        elif item.type == Event.SUBSCRIBED:
            self._tell_subscribed(item.subscribed)
        elif item.type == Event.FAILURE:
            self._tell_failure(item.failure)
        else:
            self._tell_rare(item)

    def _tell_rare(self, event: Event) -> None:
        scheduler = self._scheduler
        if event.type == Event.STANDBY:
            scheduler.standby(self, event.standby.ahead)
        elif event.type == Event.MESSAGE:
            message = event.message
            scheduler.framework_message(
                self, message.agent_id.value, message.executor_id.value, message.data
            )
        elif event.type == Event.UPDATE_OPERATION_STATUS:
            status = event.update_operation_status.status
            scheduler.operation_update(self, status)
            if self._implicit:
                self._acknowledge_operation(status)
        elif event.type == Event.REFUSED:
            scheduler.call_refused(self, event.refused)
        elif event.type == Event.INVERSE_OFFERS:
            scheduler.inverse_offers(self, event.inverse_offers.inverse_offers)
        elif event.type == Event.NEEDS:
            scheduler.needs_answered(self, event.needs)
        elif event.type == Event.GUARANTEE:
            scheduler.guarantee_changed(self, self.guaranteed_share())
        elif event.type == Event.RESCIND_INVERSE_OFFER:
            offer_id = event.rescind_inverse_offer.inverse_offer_id.value
            scheduler.inverse_offer_rescinded(self, offer_id)

    def _tell_failure(self, failure: Event.Failure) -> None:
        agent_id, executor_id = failure.agent_id.value, failure.executor_id.value
        if executor_id:
            status = failure.status if failure.HasField("status") else -1
            self._scheduler.executor_lost(self, agent_id, executor_id, status)
        else:
            self._scheduler.agent_lost(self, agent_id)

    def _tell_subscribed(self, subscribed: Event.Subscribed) -> None:
        if self._registered:
            self._scheduler.reregistered(self, subscribed.master_info)
        else:
            self._registered = True
            self._scheduler.registered(self, subscribed.framework_id.value, subscribed.master_info)

    def _link_ended(self, error: BaseException | None) -> None:
        if error is not None:
            text = error.message if isinstance(error, MesosPyError) else repr(error)
            self._scheduler.error(self, text)
        self._shared.failure = error

    def _cut(self) -> None:
        self._shared.failure = self._failure
        self._client.abort()

    def _interrupted(self) -> None:
        self.stop()


__all__ = ["SchedulerDriver"]
