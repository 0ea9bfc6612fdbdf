"""What must always hold among the master's records.  For tests; slow."""

from __future__ import annotations

from master.core.cluster import Cluster
from mesos_py.errors import InternalError
from mesos_py.states import is_terminal


def check(c: Cluster) -> None:
    """Raise InternalError unless the ledger adds up and all records agree with it."""
    c.ledger.check()
    _check_offers(c)
    _check_tasks(c)
    _check_holders(c)
    for link, framework_id in c.framework_of_link.items():
        _require(c.frameworks[framework_id].link == link, "framework link", framework_id)
    counted = sum(framework.connected for framework in c.frameworks.values())
    _require(counted == len(c.framework_of_link), "connected frameworks", str(counted))
    _check_standbys(c)
    _check_takings(c)
    for link, agent_id in c.agent_of_link.items():
        _require(c.agents[agent_id].link == link, "agent link", agent_id)
    counted = sum(agent.connected for agent in c.agents.values())
    _require(counted == len(c.agent_of_link), "connected agents", str(counted))
    for agent in c.agents.values():
        present = c.ledger.has(agent.agent_id)
        _require(present == (agent.unreachable is None), "agent row", agent.agent_id)
        _require(not (agent.deactivated and agent.offers), "offers deactivated", agent.agent_id)


def _require(true: bool, what: str, name: str) -> None:
    if not true:
        raise InternalError(f"records disagree: {what}", name=name)


def _check_standbys(c: Cluster) -> None:
    """Whoever waits, waits for somebody active, or until a moment that is set."""
    timers = {(kind, name) for kind, name, _ in c.timers.all()}
    for framework_id, queue in c.standbys.items():
        _require(0 < len(queue) <= c.options.max_standbys, "standbys", framework_id)
        framework = c.frameworks.get(framework_id)
        active = framework is not None and framework.connected
        held = ("standby-hold", framework_id) in timers
        _require(active != held, "standbys hold for nobody", framework_id)
        _require(("standby-heartbeat", framework_id) in timers, "heartbeat", framework_id)
        for ahead, standby in enumerate(queue):
            _require(standby.told_ahead == ahead, "standby's place", framework_id)
            _require(c.standby_of_link[standby.link] == framework_id, "link", framework_id)
            _require(standby.link not in c.framework_of_link, "standby is active", framework_id)
    counted = sum(len(queue) for queue in c.standbys.values())
    _require(counted == len(c.standby_of_link), "standbys", str(counted))
    for kind, name in timers:
        _require(not kind.startswith("standby-") or name in c.standbys, kind, name)


def _check_takings(c: Cluster) -> None:
    """Whatever is being taken back has a deadline or has passed it, and its account is right."""
    book = c.revoking
    for place, account in book.accounts.items():
        _require(bool(account.takings), "account of nothing", str(place))
        _require(place in book.agents.get(place.agent_id, ()), "taking's agent", str(place))
        for taking in account.takings:
            waits = c.timers.has("revoke", taking.name)
            _require(waits != taking.over, "taking's deadline", taking.name)
            _require(book.by_name.get(taking.name) is taking, "taking", taking.name)
    counted = sum(len(account.takings) for account in book.accounts.values())
    _require(counted == len(book.by_name), "takings", str(counted))
    for offer_id, taking in book.by_offer.items():
        _require(taking.offer_id == offer_id, "taking's question", offer_id)
        _require(book.by_name.get(taking.name) is taking, "question of nothing", offer_id)
    for framework in c.frameworks.values():
        waits = c.timers.has("silent", framework.framework_id)
        _require(waits == framework.silent, "silent framework", framework.framework_id)


def _check_offers(c: Cluster) -> None:
    for offer_id, offer in c.offers.items():
        framework, agent = c.frameworks[offer.framework_id], c.agents[offer.agent_id]
        _require(framework.connected and agent.connected, "offer of somebody away", offer_id)
        _require(offer_id in framework.offers and offer_id in agent.offers, "offer", offer_id)
    counted = sum(len(framework.offers) for framework in c.frameworks.values())
    _require(counted == len(c.offers), "framework offers", str(counted))
    counted = sum(len(agent.offers) for agent in c.agents.values())
    _require(counted == len(c.offers), "agent offers", str(counted))


def _check_tasks(c: Cluster) -> None:
    for framework in c.frameworks.values():
        for task in framework.tasks.values():
            agent = c.agents.get(task.agent_id)
            _require(agent is not None, "task without agent", task.task_id)
            held = c.ledger.allocation(task.agent_id, task.holder)
            _require((held is None) == is_terminal(task.state), "task charge", task.task_id)
            _require(held is None or held == task.resources, "task amount", task.task_id)
            known = agent is not None and (task.framework_id, task.task_id) in agent.tasks
            _require(known, "agent does not know its task", task.task_id)
        for task in framework.unreachable_tasks.values():
            _require(task.task_id not in framework.tasks, "task twice", task.task_id)
            there = c.unreachable_on.get(task.agent_id, ())
            indexed = (framework.framework_id, task.task_id) in there
            _require(indexed, "unreachable task of no agent", task.task_id)
    counted = sum(len(framework.unreachable_tasks) for framework in c.frameworks.values())
    indexed_tasks = sum(map(len, c.unreachable_on.values()))
    _require(counted == indexed_tasks, "unreachable tasks", str(indexed_tasks))
    _require(all(c.unreachable_on.values()), "agents without unreachable tasks", "")
    for agent in c.agents.values():
        for framework_id, task_id in agent.tasks:
            _require(task_id in c.frameworks[framework_id].tasks, "agent's task", task_id)
        for framework_id, executor_id in agent.executors:
            known = (agent.agent_id, executor_id) in c.frameworks[framework_id].executors
            _require(known, "agent's executor", executor_id)


def _check_holders(c: Cluster) -> None:
    """Whatever is charged has a task, an executor, or lingers, and tasks that linger are
    charged."""
    for key, holder in c.lingering.items():
        _require(key == (key[0], holder.framework_id, holder.kind, holder.name), "key", str(key))
        charged = c.ledger.allocation(key[0], holder) is not None
        # An executor may have been given nothing.
        _require(charged or holder.kind == "executor", "lingers uncharged", str(key))
    for agent_id in c.agents:
        for holder in c.ledger.allocations(agent_id):
            key = (agent_id, holder.framework_id, holder.kind, holder.name)
            framework = c.frameworks.get(holder.framework_id)
            if key in c.lingering:
                continue
            if framework is None:
                raise InternalError("charged to a framework that is gone", holder=holder)
            if holder.kind == "task":
                _require(holder.name in framework.tasks, "charge without task", holder.name)
            else:
                known = (agent_id, holder.name) in framework.executors
                _require(known, "charge without executor", holder.name)
