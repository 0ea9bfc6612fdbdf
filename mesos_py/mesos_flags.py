"""Flags as mesos-master and mesos-agent have them, for who moves a cluster here.

A daemon declares one table of them, by what becomes of each: it is ours under a name of ours,
it has no use here (which is told, and no more), or it asks for something that is not there, and
to go on without it would be worse than to stop.  The table is also the page in the documentation.

Mesos takes `--name=value`, `--name`, `--no-name`, and MESOS_NAME in the environment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import click

from mesos_py import config, logs
from mesos_py.config_kinds import boolean
from mesos_py.errors import InvalidValue

log = logs.get("flags")

ENV_PREFIX: Final = "MESOS_"
_META: Final = "mesos_py.mesos_flags.notes"
_FALSE: Final = frozenset({"false", "0", "no", "off"})

Convert = Callable[[str], str]
C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class MesosFlag:
    """One flag of Apache Mesos.

    `ours`: the flag here that it is; None: it has no use, and `note` says why.  `refused`: a
    daemon that was told this does not start; `note` says why.  `convert` makes our value of
    theirs.  `env_only`: on the command line the name is one of ours already, with a meaning of
    its own, so only the variable is taken.
    """

    name: str
    ours: str | None = None
    note: str = ""
    refused: bool = False
    convert: Convert | None = None
    env_only: bool = False


def path_of(value: str) -> str:
    """A path, which Mesos also takes as file:///path."""
    return value.removeprefix("file://")


def as_texts(flags: object) -> dict[str, str]:
    """The values of all our flags as texts, under names as Mesos writes them (work_dir)."""
    return {name.replace("-", "_"): text for name, text in config.as_texts(flags).items()}


class Table:
    """What becomes of the flags of one of Mesos' daemons in ours."""

    def __init__(self, flags_class: type[Any], env_prefix: str, flags: Sequence[MesosFlag]) -> None:
        self.flags = tuple(flags)
        self._class = flags_class
        self._env_prefix = env_prefix
        self._by_name = {each.name: each for each in flags}
        kinds = {each.name: each.kind for each in config.flags_of(flags_class)}
        unknown = [each.ours for each in flags if each.ours and each.ours not in kinds]
        hidden = [each.name for each in flags if not each.ours and each.name in kinds]
        if unknown or hidden or len(self._by_name) != len(self.flags):
            raise TypeError(f"not ours: {unknown}; ours: {hidden}; or one of them is there twice")
        self._booleans = {name for name, kind in kinds.items() if kind.name == boolean.name}

    def arguments(self, given: Sequence[str]) -> tuple[list[str], list[MesosFlag]]:
        """`given` with our flags for those of Mesos, and what had no use.

        Only names that are no flags of ours are looked at.  Raises InvalidValue for what is
        refused.
        """
        made: list[str] = []
        useless: list[MesosFlag] = []
        rest = list(given)
        while rest:
            word = rest.pop(0)
            if word == "--":
                return [*made, word, *rest], useless
            name, equals, value = word.removeprefix("--").partition("=")
            found = self._find(word, name)
            if found is None:
                made.append(word)
                continue
            negated = name != found.name
            if found.ours is not None:
                if not equals and rest and found.ours not in self._booleans:
                    equals, value = "=", rest.pop(0)
                made += self._ours(found, equals, value, negated)
                continue
            if found.refused and not (negated or value in _FALSE):
                raise InvalidValue(found.name, value, found.note)
            useless.append(found)
            if not equals and rest and not rest[0].startswith("-"):
                rest.pop(0)  # its value
        return made, useless

    def environment(self, environ: Mapping[str, str]) -> tuple[dict[str, str], list[MesosFlag]]:
        """`environ` with our variables for those of Mesos, unless there are ours already, and
        what had no use.  Raises InvalidValue for what is refused."""
        made, useless = dict(environ), []
        for each in self.flags:
            value = environ.get(ENV_PREFIX + each.name.upper())
            if value is None:
                continue
            if each.ours is not None:
                given = each.convert(value) if each.convert is not None else value
                made.setdefault(config.variable_of(self._env_prefix, each.ours), given)
            elif each.refused and value not in _FALSE:
                raise InvalidValue(ENV_PREFIX + each.name.upper(), value, each.note)
            else:
                useless.append(each)
        return made, useless

    def markdown(self) -> str:
        """The table for the documentation."""
        rows = ["| Mesos | here | |", "|---|---|---|"]
        for each in sorted(self.flags, key=lambda each: each.name):
            if each.ours is not None:
                here = f"`--{each.ours}`"
            else:
                here = "refused" if each.refused else "no use"
            name = f"`{ENV_PREFIX}{each.name.upper()}`" if each.env_only else f"`--{each.name}`"
            rows.append(f"| {name} | {here} | {each.note} |")
        return "\n".join(rows) + "\n"

    def _find(self, word: str, name: str) -> MesosFlag | None:
        if not word.startswith("--"):
            return None
        found = self._by_name.get(name) or self._by_name.get(name.removeprefix("no-"))
        if found is None or found.env_only:
            return None
        # The same word in both: it is ours already, but for a value in their form.
        return None if found.ours == name and found.convert is None else found

    def _ours(self, found: MesosFlag, equals: str, value: str, negated: bool) -> list[str]:
        ours = f"--{found.ours}"
        if found.ours in self._booleans:
            off = negated or (equals and value in _FALSE)
            return [f"--no-{found.ours}" if off else ours]
        if not equals:
            return [ours]
        return [f"{ours}={found.convert(value) if found.convert is not None else value}"]


class MesosCommand(click.Command):
    """A daemon's command that knows Mesos' flags: give it a `table` after it was made."""

    table: Table | None = None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if self.table is not None:
            args, ctx.meta[_META] = self.table.arguments(args)
        return super().parse_args(ctx, args)


def from_command(
    table: Table,
    flags_class: type[C],
    env_prefix: str,
    options: Mapping[str, object],
    environ: Mapping[str, str],
) -> tuple[C, list[MesosFlag]]:
    """As config.from_command, with the variables of Mesos; and what had no use."""
    made, useless = table.environment(environ)
    context = click.get_current_context(silent=True)
    on_line = context.meta.get(_META, []) if context is not None else []
    return config.from_command(flags_class, env_prefix, options, made), [*on_line, *useless]


def tell(useless: Sequence[MesosFlag]) -> None:
    """Log what was given and has no use.  To be called once there is a log."""
    for each in useless:
        log.warning("a flag of Apache Mesos has no use here", flag=each.name, why=each.note)


__all__ = ["MesosCommand", "MesosFlag", "Table", "as_texts", "from_command", "path_of", "tell"]
