"""What the shell offers for an argument: names and ids, asked of the master.

Whoever presses Tab does not want to wait or to see errors: no master, no answer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

import click
from click.shell_completion import CompletionItem

from mesos_py.cli.options import MASTER_VARIABLE, open_master

if TYPE_CHECKING:
    from mesos_py.operator import OperatorClient

WAIT_S: Final = 0.5

Word = tuple[str, str]
Ask = Callable[["OperatorClient"], Iterable[Word]]


def _offered(ctx: click.Context, incomplete: str, ask: Ask) -> list[CompletionItem]:
    master = ctx.params.get("master") or os.environ.get(MASTER_VARIABLE)
    try:
        with open_master(master, WAIT_S) as client:
            words = sorted(set(ask(client)))
    except Exception:
        return []
    return [CompletionItem(word, help=text) for word, text in words if word.startswith(incomplete)]


def _frameworks(client: OperatorClient) -> Iterable[Word]:
    for each in client.frameworks().frameworks:
        info = each.framework_info
        yield info.id.value, info.name
        yield info.name, info.id.value


def _tasks(client: OperatorClient, *, ended: bool) -> Iterable[Word]:
    from mesos_py.states import is_terminal, short_name

    for each in client.tasks():
        if ended or not is_terminal(each.state):
            yield each.task_id.value, f"{each.name}, {short_name(each.state)}"


def _agents(client: OperatorClient) -> Iterable[Word]:
    for each in client.agents():
        if each.state == "gone":
            continue
        yield each.agent_info.id.value, each.agent_info.hostname


def _roles(client: OperatorClient) -> Iterable[Word]:
    for each in client.roles():
        yield each.name, f"{len(each.frameworks)} frameworks"


def frameworks(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return _offered(ctx, incomplete, _frameworks)


def tasks(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return _offered(ctx, incomplete, lambda client: _tasks(client, ended=True))


def live_tasks(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return _offered(ctx, incomplete, lambda client: _tasks(client, ended=False))


def agents(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return _offered(ctx, incomplete, _agents)


def roles(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return _offered(ctx, incomplete, _roles)


def either(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Frameworks and tasks, for `explain`."""

    def ask(client: OperatorClient) -> Iterable[Word]:
        yield from _frameworks(client)
        yield from _tasks(client, ended=False)

    return _offered(ctx, incomplete, ask)
