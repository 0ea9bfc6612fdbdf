"""Options that several sub-commands share, each declared once."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar

import click

from mesos_py.config_kinds import Kind, duration_s, size_bytes
from mesos_py.errors import InvalidValue, MasterUnreachable

if TYPE_CHECKING:
    from mesos_py.operator import OperatorClient

P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

MASTER_VARIABLE: Final = "MESOS_PY_MASTER"
DEFAULT_TIMEOUT: Final = "10s"


class KindType(click.ParamType[Any]):
    """A kind of value of the daemons' flags as a type of click."""

    def __init__(self, kind: Kind[Any]) -> None:
        self.name = kind.metavar
        self._kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return self._kind.read(value)
        except InvalidValue as error:
            self.fail(f"{value!r} {error.reason}", param, ctx)
        except ValueError as error:
            self.fail(f"{value!r} {error}; allowed: {self._kind.allowed}", param, ctx)


DURATION: Final = KindType(duration_s)
SIZE: Final = KindType(size_bytes)

master_option: Final = click.option(
    "--master",
    metavar="HOST:PORT[,...]|zk://...",
    envvar=MASTER_VARIABLE,
    help=f"Where the master is.  [environment: {MASTER_VARIABLE}; default: 127.0.0.1:5060]",
)
timeout_option: Final = click.option(
    "--timeout",
    "timeout_s",
    type=DURATION,
    default=DEFAULT_TIMEOUT,
    show_default=True,
    help="How long to wait for the master's answer.",
)
json_option: Final = click.option(
    "--json", "as_json", is_flag=True, help="Print an array of JSON objects."
)
label_option: Final = click.option(
    "--label", "labels", multiple=True, metavar="KEY=VALUE", help="Of the reservation; repeatable."
)


def environ_with_master(env_prefix: str) -> dict[str, str]:
    """The environment for commands whose flags are a class of `mesos_py.config`: their own
    variable for the master, or else the one where all commands look."""
    environ = dict(os.environ)
    if MASTER_VARIABLE in environ:
        environ.setdefault(f"{env_prefix}MASTER", environ[MASTER_VARIABLE])
    return environ


def open_master(master: str | None, timeout_s: float) -> OperatorClient:
    """The client for what --master and --timeout say."""
    from mesos_py.operator import DEFAULT_MASTER, OperatorClient

    return OperatorClient(master or DEFAULT_MASTER, timeout_s=timeout_s)


def with_master(function: Callable[Concatenate[OperatorClient, P], T]) -> Callable[..., T]:
    """Adds --master and --timeout, and hands the open client to the command."""

    @master_option
    @timeout_option
    @functools.wraps(function)
    def command(master: str | None, timeout_s: float, **options: Any) -> T:
        with open_master(master, timeout_s) as client, naming_the_default(master):
            return function(client, **options)  # type: ignore[call-arg]

    return command


@contextlib.contextmanager
def naming_the_default(master: str | None) -> Iterator[None]:
    """Says how to name the master to people who have not and for whom none answers."""
    try:
        yield
    except MasterUnreachable as error:
        if master:
            raise
        raise MasterUnreachable(
            f"{error.message} (the default address; give --master or set {MASTER_VARIABLE})",
            **error.fields,
        ) from error
