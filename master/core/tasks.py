"""Status updates on their way up, acknowledgements and kills on their way down."""

from __future__ import annotations

from typing import Final

from master.core import reconcile, statuses
from master.core.cluster import Cluster
from master.core.frameworks import order_shutdown
from master.core.kills import copied, order_kill
from master.core.records import Agent, Framework, Task
from mesos_py.clock import Now
from mesos_py.errors import InvalidValue
from mesos_py.ids import UUID_BYTES, check_id
from mesos_py.states import REPORTED, STORED, TERMINAL, TaskState, is_terminal, may_follow
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb

MAX_EARLY_KILLS: Final = 1000
MAX_ENDED: Final = 200
_COUNTERS: Final = {state: f"task_states/{pb.TaskState.Name(state)}" for state in STORED}


def on_update(c: Cluster, agent: Agent, call: agent_pb2.Call.Update, now: Now) -> None:
    """An agent reports.  It repeats the update until the framework has acknowledged."""
    framework_id = call.framework_id.value
    # Each of these is read once: an access to a message costs several of a variable.
    status, latest = call.status, call.latest_state
    task_id, state, uuid = status.task_id.value, status.state, status.uuid
    c.counters["updates_received"] += 1
    if state not in REPORTED or latest not in REPORTED:
        c.drop("update-impossible-state", task=task_id, state=state)
        return
    framework = c.frameworks.get(framework_id)
    task = framework.find(task_id) if framework is not None else None
    here = task is not None and task.agent_id == agent.agent_id
    if not here and latest in TERMINAL:
        # A task that nobody knows any more may still have occupied something.
        c.settle(agent.agent_id, framework_id, "task", task_id, now)
    if framework is None or len(uuid) != UUID_BYTES:
        _take_unanswerable(c, agent, framework, task if here else None, call, now)
        return
    no_news = ""
    if agent.ended.get((framework_id, task_id)) == uuid:
        # Its acknowledgement crossed it, or was lost on the way to the agent.
        no_news = "update-acknowledged"
        if task is not None and here and task.update_uuid == uuid:
            c.complete(framework, task, now)
    elif task is not None and not here:
        # The framework has started the task anew elsewhere, and would take the end
        # of the old copy for that of the new one.
        no_news = "update-other-agent"
    elif task is not None:
        apply(c, task, status, latest, now)
        if task.update_state in TERMINAL and state not in TERMINAL:
            # The framework has been told of the end: nothing goes back from there.
            no_news = "update-after-the-end"
    if no_news:
        c.drop(no_news, task=task_id, agent=agent.agent_id)
        _pass_on(c, agent, framework_id, task_id, uuid)
        return
    # An update of a task that is forgotten here goes on as well: only the
    # framework's acknowledgement ends the agent's repeating.
    if not statuses.send(c, framework, status):
        c.drop("update-framework-away", framework=framework_id, task=task_id)
        return
    c.counters["updates_forwarded"] += 1


def apply(
    c: Cluster,
    task: Task,
    status: pb.TaskStatus,
    latest: TaskState.ValueType,
    now: Now,
) -> None:
    """Take over what the agent says of the task; terminal states free its resources."""
    state = status.state
    newest = state if state in TERMINAL else latest
    if newest != task.state:
        if may_follow(task.state, newest):
            task.state = newest
            c.counters[_COUNTERS[newest]] += 1
        else:
            c.drop(
                "update-backwards",
                task=task.task_id,
                state=pb.TaskState.Name(task.state),
                reported=pb.TaskState.Name(newest),
            )
    if newest in TERMINAL:
        task.kill_pending = False
        # Whatever was believed before: the agent says that its processes are gone.
        c.release(task.agent_id, task.holder, now)
    if task.update_state is None or may_follow(task.update_state, state):
        statuses.record(c, task, status, now)
        task.update_state = state
        task.update_uuid = status.uuid
    elif state in TERMINAL:
        # Another end than the first does not count; that it was heard of does.
        task.update_uuid = status.uuid


def _take_unanswerable(
    c: Cluster,
    agent: Agent,
    framework: Framework | None,
    task: Task | None,
    call: agent_pb2.Call.Update,
    now: Now,
) -> None:
    """An update that nobody can acknowledge.  `task`: if it is on this agent."""
    task_id, uuid = call.status.task_id.value, call.status.uuid
    if framework is None:
        c.drop("update-unknown-framework", framework=call.framework_id.value, task=task_id)
        if uuid:
            # The agent waits for an acknowledgement, and so has not heard of the end.
            order_shutdown(c, agent, call.framework_id.value)
        return
    c.drop("update-without-uuid", task=task_id, agent=agent.agent_id)
    if task is not None and call.latest_state in TERMINAL:
        # The agent keeps no update of this end: it took the framework for gone, which
        # has come back (under an id that was forgotten here).
        status = pb.TaskStatus()
        status.CopyFrom(call.status)
        status.ClearField("uuid")
        apply(c, task, status, call.latest_state, now)
        c.complete(framework, task, now)
        statuses.send(c, framework, status)


def acknowledge(c: Cluster, framework: Framework, call: sched.Call.Acknowledge, now: Now) -> None:
    """ACKNOWLEDGE: passed on to the agent; after a terminal update the task is history."""
    uuid, task_id = call.uuid, call.task_id.value
    if len(uuid) != UUID_BYTES:
        error = InvalidValue("uuid", uuid.hex(), "must be 16 bytes")
        c.refuse_call(framework, sched.Call.ACKNOWLEDGE, error, now)
        return
    agent = c.agents.get(call.agent_id.value)
    if agent is None or not agent.connected:
        # The agent will repeat the update, and be acknowledged then.
        c.drop("acknowledge-agent-away", agent=call.agent_id.value, task=task_id)
        return
    task = framework.tasks.get(task_id)
    if task is None:
        # It may be one that is forgotten here, but not just any text.
        try:
            check_id("task_id", task_id)
        except InvalidValue as error:
            c.refuse_call(framework, sched.Call.ACKNOWLEDGE, error, now)
            return
    elif task.update_state in TERMINAL and task.update_uuid == uuid:
        _note_end(c.agents[task.agent_id], framework.framework_id, task_id, uuid)
        c.complete(framework, task, now)
    _pass_on(c, agent, framework.framework_id, task_id, uuid)


def _note_end(agent: Agent, framework_id: str, task_id: str, uuid: bytes) -> None:
    ended = agent.ended
    ended.pop((framework_id, task_id), None)
    ended[framework_id, task_id] = uuid
    if len(ended) > MAX_ENDED:
        del ended[next(iter(ended))]


def _pass_on(c: Cluster, agent: Agent, framework_id: str, task_id: str, uuid: bytes) -> None:
    """Tell the agent that its update was acknowledged."""
    event = agent_pb2.Event(type=agent_pb2.Event.ACKNOWLEDGE)
    # Filled in place, which costs a third of making the parts and copying them in.
    order = event.acknowledge
    order.framework_id.value = framework_id
    order.task_id.value = task_id
    order.uuid = uuid
    c.to_agent(agent, event)


def kill(c: Cluster, framework: Framework, call: sched.Call.Kill, now: Now) -> None:
    """KILL: an unknown task is answered like a reconciliation of it."""
    task_id = call.task_id.value
    task = framework.tasks.get(task_id)
    policy = call.kill_policy if call.HasField("kill_policy") else None
    if policy is not None and policy.grace_period.nanoseconds < 0:
        error = InvalidValue(
            "kill_policy.grace_period", policy.grace_period.nanoseconds, "must not be negative"
        )
        c.refuse_call(framework, sched.Call.KILL, error, now)
        return
    if task is None:
        agent_id = call.agent_id.value
        if reconcile.may_come(c, framework, agent_id, now):
            _remember_kill(framework, task_id, policy)
        reconcile.answer(c, framework, task_id, agent_id, now)
        return
    if call.agent_id.value and call.agent_id.value != task.agent_id:
        error = InvalidValue("agent_id", call.agent_id.value, f"task {task_id!r} is elsewhere")
        c.refuse_call(framework, sched.Call.KILL, error, now)
        return
    if is_terminal(task.state):
        return
    order_kill(c, task, policy)


def _remember_kill(framework: Framework, task_id: str, policy: pb.KillPolicy | None) -> None:
    """The task may come back with its agent: it is killed then."""
    if len(framework.early_kills) < MAX_EARLY_KILLS:
        framework.early_kills[task_id] = copied(policy)
