"""Reduces that fetch the outputs of maps: what they are told, and what they could not have."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from frameworks.mapreduce.core import ending
from frameworks.mapreduce.core.jobs import Job
from frameworks.mapreduce.core.journal import OutputsLost
from frameworks.mapreduce.core.orders import Send
from frameworks.mapreduce.core.state import State
from frameworks.mapreduce.core.tasks import Attempt
from frameworks.mapreduce.messages import Maps, WantMaps
from frameworks.mapreduce.names import parse_attempt
from frameworks.mapreduce.work import Failure

# So many times an agent alone may say that an output cannot be fetched; then it is the agent
# that cannot.
ALONE: Final = 3


def wanted(state: State, attempt: Attempt, message: WantMaps) -> None:
    """Answered now, or as soon as there is something new and all maps are done; it is asked
    again in any case."""
    attempt.wants = max(0, message.since)
    _answer(state, state.jobs[attempt.job_id], attempt)


def answer_waiting(state: State, job: Job) -> None:
    """Reduces that have heard of all maps but the last need not ask again to hear of it."""
    if job.maps.settled:
        for attempt in job.reduces.live.values():
            if attempt.wants is not None:
                _answer(state, job, attempt)


def _answer(state: State, job: Job, attempt: Attempt) -> None:
    since = attempt.wants
    if since is None:
        return
    outputs = job.outputs.since(since, attempt.task)
    if outputs:
        attempt.wants = None
        message = Maps(attempt.name, since, outputs)
        state.order(Send(attempt.agent_id, attempt.worker_id, message))


# ---- Lost outputs --------------------------------------------------------------------------


def lost(state: State, job: Job, reduce: Attempt, names: Iterable[str], why: str) -> bool:
    """A reduce could not fetch what these attempts made.  Whether it is at fault itself.

    Two agents that say so are believed, and so is one if no other has reduces of the job: the
    maps are done again.  One that is alone with what it says, several times, is at fault
    itself, and so is one that cannot fetch again what was made again: the reduce is done
    elsewhere.
    """
    if not job.active:
        return False
    agreed: list[str] = []
    at_fault = False
    for name in dict.fromkeys(names):
        parsed = parse_attempt(name)
        if parsed is None or job.outputs.attempt_of(parsed.task) != name:
            continue  # replaced, or lost, already
        reports = job.outputs.report(name, reduce.agent_id)
        others = {attempt.agent_id for attempt in job.reduces.live.values()} - {reduce.agent_id}
        again = job.maps.tasks[parsed.task].last_fetch_agent == reduce.agent_id
        if len(reports) > 1 or (not others and not again):
            agreed.append(name)
            alone = len(reports) == 1
            job.maps.tasks[parsed.task].last_fetch_agent = reduce.agent_id if alone else ""
        elif again or reports[reduce.agent_id] >= ALONE:
            at_fault = True
    if agreed:
        lose(state, job, agreed, why, fetch=True)
    return at_fault


def lose(state: State, job: Job, names: list[str], why: str, fetch: bool) -> None:
    """These outputs are gone: exactly those are made again, if any reduce needs them."""
    state.write(OutputsLost(tuple(names), why, fetch, state.now_s))
    state.revive = True
    if not fetch:
        return
    for name in names:
        parsed = parse_attempt(name)
        assert parsed is not None
        if job.maps.tasks[parsed.task].fetch_failures >= job.maps.rules.limit:
            message = f"the output of {parsed.task_id} could not be fetched, made again and again"
            failure = Failure(blame="fetch", message=f"{message}: {why}", lost=(name,))
            ending.stop(state, job, "failed", failure.message, failure, name)
            return
