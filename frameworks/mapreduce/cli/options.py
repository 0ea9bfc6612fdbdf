"""Options that sub-commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from frameworks.mapreduce.client import (
    LOCAL_VARIABLE,
    MASTER_VARIABLE,
    TRACKER_VARIABLE,
    Target,
    from_environment,
)
from mesos_py.errors import InvalidValue

F = TypeVar("F", bound=Callable[..., Any])

tracker_option: Final = click.option(
    "--tracker",
    metavar="URL",
    help=f"Of a tracker that runs elsewhere.  [environment: {TRACKER_VARIABLE}]",
)
state_option: Final = click.option(
    "--state",
    metavar="URL",
    default="",
    help="With --master: a directory that agents reach, for what is shipped and what `resume` "
    "needs.  [default: one beside the output]",
)
json_option: Final = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def where_options(function: F) -> F:
    """Adds --local, --master, --tracker, --state and --role."""
    decorators = (
        click.option(
            "--local",
            type=click.IntRange(1, 1000),
            metavar="N",
            help=f"Here, in N processes, without a cluster.  [environment: {LOCAL_VARIABLE}]",
        ),
        click.option(
            "--master",
            metavar="HOST:PORT[,...]|zk://...",
            help="On the cluster of this master, by a tracker of its own.  "
            f"[environment: {MASTER_VARIABLE}; default: 127.0.0.1:5050]",
        ),
        tracker_option,
        state_option,
        click.option(
            "--role", default="*", show_default=True, help="With --master: the role to run under."
        ),
    )
    for decorate in reversed(decorators):
        function = decorate(function)
    return function


def target_of(options: dict[str, Any]) -> Target:
    """Takes what `where_options` has added.  Raises InvalidValue naming the option."""
    try:
        return from_environment(
            Target(
                local=options.pop("local"),
                master=options.pop("master"),
                tracker=options.pop("tracker"),
                state=options.pop("state"),
                role=options.pop("role"),
            )
        )
    except InvalidValue as error:
        raise InvalidValue(f"--{error.field}", error.value, error.reason) from None


def tracker_of(given: str | None) -> Target:
    """For commands that only a tracker elsewhere can answer.  Raises InvalidValue."""
    target = Target(tracker=given) if given else from_environment(Target())
    if target.tracker is None:
        raise InvalidValue(
            "--tracker", "", f"must be given, or {TRACKER_VARIABLE} set: the URL of a tracker"
        )
    return target
