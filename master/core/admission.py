"""Registration of agents: who is admitted, and when it is told.

The registry has the record of an agent before the agent hears REGISTERED, so that no
successor can take it for a stranger.  An agent whose record is there as it is to be
needs no write: a whole cluster may come back at once.  What waits for the registry is
an `Admission`; meanwhile its link may end, or a later stream of the agent may come.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from functools import partial
from typing import Final

from google.protobuf.message import Message

from master.core import admitted, agents, draining, recovery, returning
from master.core import offers as offering
from master.core.cluster import Cluster
from master.core.gone import AgentGone, is_gone
from master.core.ledger import Holder, require_fit
from master.core.machines import MachineDown
from master.core.records import Admission, Agent, Expected, Turn
from master.core.registry import MAX_RECORD_BYTES, too_large
from mesos_py.clock import Now
from mesos_py.constraints import host_of
from mesos_py.conversions import with_reserved
from mesos_py.errors import (
    InvalidValue,
    MesosPyError,
    Unavailable,
    UnsupportedProtocol,
    shortened,
)
from mesos_py.ids import check_id
from mesos_py.resources import Resources
from mesos_py.states import is_terminal
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import registry_pb2 as reg
from mesos_py.v1 import types_pb2 as pb

MAX_INFO_BYTES: Final = MAX_RECORD_BYTES // 2
# So many leaderships no cluster has had.  A registry that was emptied is passed what its
# agents have seen, and a single one that is mistaken must not use the numbers up.
MAX_EPOCHS_AHEAD: Final = 2**32


@dataclass(frozen=True, slots=True)
class _Checked:
    """What a registration says, once nothing is wrong with it."""

    amount: Resources
    report: returning.Report
    charged: dict[Holder, Resources]


def register(c: Cluster, link: int, call: agent_pb2.Call.Register, now: Now) -> None:
    """REGISTER on a new stream: answered with REGISTERED, or REFUSED and the end."""
    given = c.agent_of_link.get(link) or c.admission_of_link.get(link)
    if given is not None:
        c.drop("agent-registered-twice", agent=given)
        return
    if call.epoch > c.epoch + MAX_EPOCHS_AHEAD:
        reason = f"is no epoch of this cluster: this master's is {c.epoch}"
        _refuse(c, link, call, InvalidValue("epoch", call.epoch, reason))
        return
    if call.epoch > c.epoch:
        c.drop("agent-knows-newer-epoch", agent=call.agent_info.id.value, epoch=call.epoch)
        text = f"the agent has orders of epoch {call.epoch}, and this master's is {c.epoch}"
        _refuse(c, link, call, Unavailable(text))
        c.outbox.newer_epoch(call.epoch)
        return
    turn = Turn(call.instance, call.attempt)
    if _is_overtaken(c, call.agent_info.id.value, turn):
        c.drop("registration-overtaken", agent=call.agent_info.id.value)
        c.outbox.close(link, "a later stream of the agent has come before")
        return
    info = pb.AgentInfo()
    info.CopyFrom(call.agent_info)
    try:
        checked = _checked(c, info, call)
    except MesosPyError as error:
        _refuse(c, link, call, error)
        return
    made = not info.id.value
    replaced = _replaced(c, info) if made else []
    if made:
        info.id.value = c.new_agent_id()
    admission = Admission(info.id.value, link, info, call, turn, made)
    _displace_admission(c, admission.agent_id)
    key = admitted.key_of(admission.agent_id)
    record = admitted.record_of(c, admission.agent_id)
    if record is None or record.HasField("unreachable_time") or not c.registry.settled(key):
        _await(c, admission, record or reg.Agent(), replaced, now)
        return
    if record.info != info:
        # Nothing rests on the newest resources or address being stored.
        record.info.CopyFrom(info)
        c.registry.write({key: record}, admitted.nothing_follows, now)
    _enter(c, admission, checked, now)


def _is_overtaken(c: Cluster, agent_id: str, turn: Turn) -> bool:
    known, waiting = c.agents.get(agent_id), c.admissions.get(agent_id)
    if known is not None and turn.is_late(known.turn):
        return True
    return waiting is not None and turn.is_late(waiting.turn)


def _refuse(c: Cluster, link: int, call: agent_pb2.Call.Register, error: MesosPyError) -> None:
    """It may ask again if that can change.  What runs on an agent that others take for
    gone has to end: that agent asks again when it is started anew, if at all."""
    message = shortened(error.message)
    c.drop("agent-refused", hostname=shortened(call.agent_info.hostname), why=message)
    refused = agent_pb2.Event.Refused(code=error.code, message=message)
    down = isinstance(error, MachineDown) and c.machines.is_down(call.agent_info)
    runs = bool(call.executors) or any(not is_terminal(each.state) for each in call.tasks)
    refused.shut_down = isinstance(error, AgentGone) or (down and runs)
    refused.final = refused.shut_down or not isinstance(error, Unavailable)
    c.outbox.to_agent(link, agent_pb2.Event(type=agent_pb2.Event.REFUSED, refused=refused))
    c.outbox.close(link, message)


# ---- Checks ----------------------------------------------------------------------


def _checked(c: Cluster, info: pb.AgentInfo, call: agent_pb2.Call.Register) -> _Checked:
    """Everything that can be refused is refused before anything is changed."""
    agent_id = info.id.value
    if call.protocol_version > c.options.protocol_version:
        raise UnsupportedProtocol(
            f"the agent (version {call.version}) speaks protocol {call.protocol_version}, "
            f"this master at most {c.options.protocol_version}"
        )
    if not info.hostname:
        raise InvalidValue("agent_info.hostname", "", "must not be empty")
    if info.ByteSize() > MAX_INFO_BYTES:
        # Later changes of its record must find room as well.
        raise too_large("agent_info", info.ByteSize(), MAX_INFO_BYTES)
    if c.planned.is_down(info):
        raise MachineDown(f"machine {info.hostname} is down for maintenance")
    if agent_id:
        check_id("agent_info.id", agent_id)
        _check_id_is_its_own(c, info)
    configured = Resources.from_proto("agent_info.resources", info.resources)
    if not configured:
        raise InvalidValue("agent_info.resources", "", "must not be empty")
    amount = with_reserved(configured, Resources.from_proto("reserved", call.reserved))
    report = returning.read(call, amount)
    charged = returning.charges(c, agent_id, report, amount)
    require_fit(agent_id, amount, charged)
    return _Checked(amount, report, charged)


def _check_id_is_its_own(c: Cluster, info: pb.AgentInfo) -> None:
    agent_id = info.id.value
    record = admitted.record_of(c, agent_id)
    if record is not None and record.HasField("gone_time"):
        if not c.registry.settled(admitted.key_of(agent_id)):
            return  # it will be looked at again when that is certain
        since = datetime.datetime.fromtimestamp(record.gone_time.nanoseconds / 1e9, datetime.UTC)
        raise AgentGone(
            f"agent {agent_id} was marked gone on {since:%Y-%m-%d %H:%M:%S} UTC: "
            "an agent with this id can never come back"
        )
    known: Agent | Expected | None = c.agents.get(agent_id) or c.expected.get(agent_id)
    if known is not None and known.info.hostname != info.hostname:
        raise InvalidValue(
            "agent_info.hostname", info.hostname, f"the agent was {known.info.hostname} before"
        )


def _replaced(c: Cluster, info: pb.AgentInfo) -> list[str]:
    """Where a new agent is, an old one that is away cannot come back."""
    found: list[str] = []
    for agent_id in c.places.at(info):
        if is_gone(admitted.record_of(c, agent_id)):
            continue  # its record stays
        known = c.agents.get(agent_id)
        away = known is None or not known.connected
        if away and agent_id not in c.admissions:
            found.append(agent_id)
    return found


# ---- Waiting for the registry ------------------------------------------------------


def _await(
    c: Cluster, admission: Admission, record: reg.Agent, replaced: list[str], now: Now
) -> None:
    agent_id = admission.agent_id
    c.admissions[agent_id] = admission
    c.admission_of_link[admission.link] = agent_id
    # It is here: nobody takes it for lost as long as its link lasts.
    c.removals.discard(agent_id)
    c.unreachable.pop(agent_id, None)
    c.timers.cancel("unreachable", agent_id)
    c.timers.cancel("expected", agent_id)
    record.info.CopyFrom(admission.info)
    admitted.mark_reachable(record)
    changes: dict[str, Message | None] = {admitted.key_of(old): None for old in replaced}
    changes[admitted.key_of(agent_id)] = record
    c.registry.write(changes, partial(_stored, c, admission, replaced), now)


def _stored(c: Cluster, admission: Admission, replaced: list[str], now: Now) -> None:
    """The registry has the record: the agent is told, if it is still there."""
    for old in replaced:
        if admitted.record_of(c, old) is not None:
            continue  # it has come back all the same
        known = c.agents.get(old)
        if known is not None:
            agents.remove(c, known, "another agent registered at its address", now)
        elif old in c.expected:
            recovery.expect_no_more(c, old)
    if c.admissions.get(admission.agent_id) is not admission:
        c.drop("admission-without-agent", agent=admission.agent_id)
        return
    _end_admission(c, admission)
    try:
        checked = _checked(c, admission.info, admission.register)
    except MesosPyError as error:
        # Something has changed since its registration came.
        _refuse(c, admission.link, admission.register, error)
        _withdraw(c, admission, now)
        return
    _enter(c, admission, checked, now)


def _end_admission(c: Cluster, admission: Admission) -> None:
    del c.admissions[admission.agent_id]
    del c.admission_of_link[admission.link]


def _displace_admission(c: Cluster, agent_id: str) -> None:
    """A later stream of the agent has come: it counts."""
    waiting = c.admissions.get(agent_id)
    if waiting is not None:
        _end_admission(c, waiting)
        c.outbox.close(waiting.link, "the agent registered again")


def vanished(c: Cluster, link: int, now: Now) -> None:
    """The link of an agent ended that was to be admitted."""
    admission = c.admissions[c.admission_of_link[link]]
    _end_admission(c, admission)
    _withdraw(c, admission, now)


def _withdraw(c: Cluster, admission: Admission, now: Now) -> None:
    """The agent did not get as far as to be told: it is again what it was before, and
    its record says so."""
    agent_id = admission.agent_id
    known, record = c.agents.get(agent_id), admitted.record_of(c, agent_id)
    if record is None or record.HasField("gone_time"):
        return  # it was marked as gone, or sent away, meanwhile
    if admission.made:
        admitted.remove(c, agent_id, admitted.nothing_follows, now)
    elif known is None:
        expected = c.expected.get(agent_id)
        recovery.expect(c, agent_id, expected.info if expected else admission.info, now)
    elif known.unreachable is not None:
        agents.stay_unreachable(c, known, known.unreachable, now)
    else:
        c.judge("unreachable", agent_id, now.monotonic_s + c.options.agent_timeout_s, now)


# ---- In ------------------------------------------------------------------------------


def _enter(c: Cluster, admission: Admission, checked: _Checked, now: Now) -> None:
    """The agent is admitted, for this master and all later ones: it is told so."""
    agent_id, info, call = admission.agent_id, admission.info, admission.register
    known, expected = c.agents.get(agent_id), c.expected.pop(agent_id, None)
    was_unreachable = known is not None and known.unreachable is not None
    changed = known is not None and _hosts_differ(known.info, info)
    amount = checked.amount
    if known is None:
        agent = Agent(agent_id, info, host_of(info), amount, call.version, registered=now)
        c.agents[agent_id] = agent
    else:
        agent = known
        _displace(c, agent, now)
        agent.info, agent.host, agent.total = info, host_of(info), amount
        agent.version, agent.reregistered = call.version, now
    c.places.put(agent_id, info)
    c.unreachable.pop(agent_id, None)
    c.removals.discard(agent_id)
    c.ledger.put_agent(agent_id, amount, checked.charged)
    agent.capabilities = tuple(each.type for each in call.capabilities)
    agent.link, agent.disconnected, agent.unreachable = admission.link, None, None
    agent.leaving = False
    c.agent_of_link[admission.link] = agent_id
    agent.turn = admission.turn
    agent.pings_unanswered = 0
    c.timers.cancel("unreachable", agent_id)
    c.timers.cancel("expected", agent_id)
    c.timers.set("ping", agent_id, now.monotonic_s + c.options.agent_ping_s)
    first = known is None and expected is None
    c.counters["agents_registered" if first else "agents_reregistered"] += 1
    draining.recall(c, agent)
    c.tell_agent(agent, now, attributes_changed=changed)
    _greet(c, agent)
    draining.registered(c, agent, call.draining, now)
    returning.take_back(c, agent, checked.report, was_unreachable or first, now)
    recovery.came_back(c, agent_id, now)


def _hosts_differ(old: pb.AgentInfo, new: pb.AgentInfo) -> bool:
    """Whether a framework that refused the agent may think otherwise now."""
    return list(old.attributes) != list(new.attributes) or old.domain != new.domain


def _greet(c: Cluster, agent: Agent) -> None:
    registered = agent_pb2.Event.Registered(
        agent_id=pb.AgentID(value=agent.agent_id),
        ping_timeout_seconds=c.options.agent_ping_s * c.options.agent_max_missed_pings,
        master_info=c.info,
        protocol_version=c.options.protocol_version,
    )
    c.to_agent(agent, agent_pb2.Event(type=agent_pb2.Event.REGISTERED, registered=registered))


def _displace(c: Cluster, agent: Agent, now: Now) -> None:
    """An older stream of the same agent is ended; its offers are void."""
    offering.drop_all(c, agent.offers, "the agent registered again", now, tell=True)
    if agent.link is not None:
        del c.agent_of_link[agent.link]
        c.outbox.close(agent.link, "the agent registered again")
        agent.link = None
