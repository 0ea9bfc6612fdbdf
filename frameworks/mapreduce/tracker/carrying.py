"""From the brain's orders to calls of the driver."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Final

from frameworks.mapreduce.core.orders import (
    AnyOrder,
    AskOffers,
    Commit,
    Decline,
    FinishJob,
    Journal,
    KillAttempt,
    Launch,
    ReleaseWorker,
    Send,
    StopOffers,
)
from frameworks.mapreduce.records import encode
from frameworks.mapreduce.tracker import sweep
from frameworks.mapreduce.tracker.cleaning import Cleaning, Spot
from frameworks.mapreduce.tracker.roster import Roster
from frameworks.mapreduce.tracker.workers import Workers
from mesos_py import Offer, Resources, SchedulerDriver, command_task, logs, resources_of
from mesos_py.errors import InvalidResources, InvalidValue, MesosPyError, TooLarge

log = logs.get("mapreduce.tracker")

CLEANER: Final = Resources.of(cpus=0.01, mem=16)


class Carrier:
    """Carries out what is for the cluster; for the engine's thread.

    commit, finish: what is for file systems.  refused: told of a Launch that cannot be sent in
    that form, and why.  released: told of a worker that was told to end.
    """

    def __init__(
        self,
        driver: SchedulerDriver,
        workers: Workers,
        roster: Roster,
        cleaning: Cleaning,
        *,
        commit: Callable[[Commit], None],
        finish: Callable[[FinishJob], None],
        refused: Callable[[Launch, str], None],
        released: Callable[[Spot], None],
    ) -> None:
        self._driver = driver
        self._workers = workers
        self._roster = roster
        self._cleaning = cleaning
        self._commit = commit
        self._finish = finish
        self._refused = refused
        self._released = released
        # What the brain wants, and what the master was told last.
        self._wanted = False
        self._asked: bool | None = None
        self._rooms_for: frozenset[str] = frozenset()

    def carry(self, orders: Iterable[AnyOrder]) -> None:
        """Of a round, in order; but offers are declined together."""
        declined: dict[float, list[str]] = defaultdict(list)
        for order in orders:
            if isinstance(order, Decline):
                declined[order.refuse_s].append(order.offer_id)
            elif isinstance(order, Launch):
                self._launch(order)
            elif isinstance(order, (AskOffers, StopOffers)):
                # To revive is to forget refusals: those that are said later would stay.
                self._decline_all(declined)
                self._ask(order)
            else:
                self._other(order)
        self._decline_all(declined)
        self._ask(None)

    def decline(self, offer_ids: list[str], refuse_s: float) -> None:
        self._driver.decline_offers(offer_ids, refuse_s)

    def _decline_all(self, declined: dict[float, list[str]]) -> None:
        for refuse_s, offer_ids in declined.items():
            self.decline(offer_ids, refuse_s)
        declined.clear()

    def clean(self, offer: Offer) -> bool:
        """Use an offer for commands that remove files; False if there is nothing to remove
        there, or no room."""
        agent_id = offer.agent_id.value
        if agent_id not in self._rooms_for:
            return False
        commands = self._cleaning.commands(agent_id, _fitting(offer))
        tasks = [
            command_task(
                one.task_id,
                one.task_id,
                offer,
                sweep.command(one.task_id, one.worker_id, one.job_id),
                resources=CLEANER,
            )
            for one in commands
        ]
        if tasks:
            self._driver.launch_tasks(offer, tasks, 0.0)
        return bool(tasks)

    # ---- Inside ----------------------------------------------------------------------------

    def _other(self, order: AnyOrder) -> None:
        if isinstance(order, KillAttempt):
            one = self._roster.live.get(order.attempt)
            self._driver.kill_task(order.attempt, None if one is None else one.agent_id)
        elif isinstance(order, Send):
            data = encode(order.message)
            self._driver.send_framework_message(order.worker_id, order.agent_id, data)
        elif isinstance(order, ReleaseWorker):
            self._driver.shutdown_executor(order.worker_id, order.agent_id)
            self._workers.gone(order.worker_id)
            self._released((order.agent_id, order.worker_id))
        elif isinstance(order, Commit):
            self._commit(order)
        elif isinstance(order, FinishJob):
            self._finish(order)
        else:
            assert isinstance(order, Journal), order

    def _launch(self, launch: Launch) -> None:
        try:
            tasks = self._workers.tasks(launch)
            self._driver.launch_tasks(launch.offer_ids, tasks, launch.refuse_s)
        except (InvalidValue, TooLarge) as error:
            log.warning("launch refused", agent=launch.agent_id, error=error.message)
            self._give_back(launch)
            self._refused(launch, error.message)

    def _give_back(self, launch: Launch) -> None:
        try:
            self.decline(list(launch.offer_ids), launch.refuse_s)
        except MesosPyError as error:
            log.warning("offers not given back", error=error.message)

    def _ask(self, order: AskOffers | StopOffers | None) -> None:
        """Revive and suppress, as the brain and those who clean want it."""
        if order is not None:
            self._wanted = isinstance(order, AskOffers)
        rooms_for = frozenset(self._cleaning.wants_room())
        fresh = bool(rooms_for - self._rooms_for)
        self._rooms_for = rooms_for
        wanted = self._wanted or bool(rooms_for)
        if wanted != self._asked or (wanted and (fresh or isinstance(order, AskOffers))):
            self._driver.set_needs_offers(wanted)
            self._asked = wanted


def _fitting(offer: Offer) -> int:
    """How many commands fit."""
    try:
        left, count = resources_of(offer), 0
    except InvalidResources:
        return 0
    while count < 100 and left.contains(CLEANER):
        left, count = left - CLEANER, count + 1
    return count


__all__ = ["Carrier"]
