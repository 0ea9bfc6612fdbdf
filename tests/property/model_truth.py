"""What must hold between the master's account and what really is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mesos_py.resources import Resources
from mesos_py.states import TASK_UNREACHABLE, short_name
from tests.property.model_scheduler import Broken, SchedulerModel

if TYPE_CHECKING:
    from tests.property.model_agent import AgentModel
    from tests.property.model_run import Run


def check_truth(run: Run) -> None:
    """At any moment: nothing runs that nobody is charged for."""
    ledger = run.cluster.ledger
    for agent in run.agents:
        if agent.faulty or not agent.id or not ledger.has(agent.id):
            continue
        allocations = ledger.allocations(agent.id)
        charged = {(holder.framework_id, holder.kind, holder.name) for holder in allocations}
        for key, task in agent.tasks.items():
            if task.alive and (key[0], "task", key[1]) not in charged:
                raise Broken(f"{key} runs on {agent.id} and nobody is charged for it")
        for key, executor in agent.executors.items():
            if executor.info.resources and (key[0], "executor", key[1]) not in charged:
                raise Broken(f"executor {key} runs on {agent.id} and nobody is charged for it")


def check_rest(run: Run) -> None:
    """After the last fault: both sides agree, and no framework waits for an answer."""
    c = run.cluster
    if c.lingering:
        raise Broken(f"lingers for ever: {list(c.lingering)}")
    for agent in run.agents:
        _check_agent(run, agent)
    present = {agent.id for agent in run.agents}
    for agent_id in c.agents:
        if c.ledger.has(agent_id) and agent_id not in present:
            raise Broken(f"agent {agent_id} is in the account and is no more")
    for scheduler in run.schedulers:
        if not scheduler.ended:
            _check_framework(run, scheduler)


def _check_agent(run: Run, agent: AgentModel) -> None:
    c = run.cluster
    known = c.agents.get(agent.id)
    if known is None or not known.connected or not agent.registered:
        raise Broken(f"{agent.name} {agent.id} is not back")
    for framework_id, task_id in agent.updates:
        if not _recovered(run, framework_id):
            raise Broken(f"{agent.name} still repeats an update of {framework_id} {task_id}")
    real: dict[tuple[str, str, str], Resources] = {}
    for key, task in agent.tasks.items():
        if task.alive:
            real[key[0], "task", key[1]] = Resources.from_proto("r", task.info.resources)
    for key, executor in agent.executors.items():
        if executor.info.resources:
            real[key[0], "executor", key[1]] = Resources.from_proto("r", executor.info.resources)
    charged = {
        (holder.framework_id, holder.kind, holder.name): resources
        for holder, resources in c.ledger.allocations(agent.id).items()
    }
    if charged != real:
        raise Broken(f"{agent.id}: charged {charged}, there is {real}")


def _check_framework(run: Run, scheduler: SchedulerModel) -> None:
    framework = run.cluster.frameworks.get(scheduler.id)
    if framework is None or not framework.connected or not scheduler.subscribed:
        raise Broken(f"{scheduler.name} {scheduler.id} is not back")
    running = {
        key[1]: agent.id for agent in run.agents for key in agent.tasks if key[0] == scheduler.id
    }
    known = {task.task_id: task.agent_id for task in framework.tasks.values()}
    if known != running:
        raise Broken(f"{scheduler.id}: the master has {known}, there is {running}")
    present = {agent.id for agent in run.agents}
    for task in framework.unreachable_tasks.values():
        if task.agent_id in present:
            raise Broken(f"{task.task_id} counts as unreachable, {task.agent_id} is back")
    for launched in scheduler.tasks.values():
        if not launched.sure or launched.final:
            if launched.sure and launched.task_id in running:
                raise Broken(f"{launched} runs on {running[launched.task_id]}")
            continue
        if running.get(launched.task_id) == launched.agent_id:
            continue
        if launched.state == TASK_UNREACHABLE and launched.agent_id not in present:
            continue
        raise Broken(f"{launched.task_id} is {short_name(launched.state)} for ever: {launched}")


def _recovered(run: Run, framework_id: str) -> bool:
    """Known from agents alone: nobody can acknowledge its updates yet."""
    framework = run.cluster.frameworks.get(framework_id)
    return framework is not None and framework.recovered


def check_end(run: Run) -> None:
    """When every task has ended: all is free, or offered, and nothing is remembered."""
    c = run.cluster
    for agent in run.agents:
        kept = [key for key in agent.tasks if not _recovered(run, key[0])]
        if kept or agent.executors:
            raise Broken(f"{agent.name} still has {kept} {list(agent.executors)}")
        if c.ledger.free(agent.id) + c.ledger.offered(agent.id) != c.ledger.total(agent.id):
            raise Broken(f"{agent.id}: allocated {c.ledger.allocated(agent.id)}")
    for framework in c.frameworks.values():
        if not framework.recovered and (framework.tasks or framework.executors):
            raise Broken(f"{framework.framework_id} has {framework.tasks} {framework.executors}")
