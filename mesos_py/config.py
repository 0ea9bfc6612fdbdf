"""Flags, each declared once: type and unit, default, help and check.

::

    @dataclass(frozen=True)
    class MasterFlags:
        port: int = flag(5050, kind=port_number, help="Where to listen; 0 picks a port")
        offer_timeout_s: float = flag(30.0, kind=duration_s, check=at_least(0), help="...")

From such a class come the options of the command line (`click_options`), the
names in the environment (MESOS_PY_MASTER_OFFER_TIMEOUT) and in the TOML file
(`offer-timeout` in the table [master]), and the reference (`reference_table`).  The
precedence is: command line, environment, file, default.
"""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import os
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, TypeVar, cast, overload

import click

from mesos_py.config_kinds import (
    Kind,
    Rate,
    at_least,
    at_most,
    between,
    boolean,
    choice,
    duration_s,
    host_port,
    integer,
    not_empty,
    number,
    path,
    percent,
    port_number,
    rate,
    size_bytes,
    text,
    text_list,
)
from mesos_py.errors import InvalidValue

T = TypeVar("T")
C = TypeVar("C")
F = TypeVar("F", bound=Callable[..., Any])
Check = Callable[[Any], None]

_METADATA: Final = "mesos_py.flag"
# Units that a field's name ends with and a flag's text holds.
_UNITS: Final = {"duration_s": "_s", "size_bytes": "_bytes"}
# Never the name of a flag: the option that names the file.
CONFIG: Final = "config"


@dataclass(frozen=True)
class Flag(Generic[T]):
    """One declared flag.  `name` is its text form, such as "offer-timeout"."""

    name: str
    field: str
    kind: Kind[T]
    default: T | None
    required: bool
    help: str
    check: Check | None
    secret: bool

    @property
    def default_text(self) -> str:
        if self.required:
            return "(required)"
        if self.default is None:
            return "(none)"
        return "***" if self.secret and self.default else self.kind.show(self.default)


@dataclass(frozen=True)
class _Declared:
    """What `flag` was told, until the field's name is known."""

    name: str | None
    kind: Kind[Any]
    help: str
    check: Check | None
    secret: bool


class _Required:
    """The default of a flag that must be given."""


REQUIRED: Final = _Required()


@overload
def flag(
    default: _Required,
    *,
    kind: Kind[T],
    help: str,
    name: str | None = ...,
    check: Check | None = ...,
    secret: bool = ...,
) -> T: ...
@overload
def flag(
    default: None,
    *,
    kind: Kind[T],
    help: str,
    name: str | None = ...,
    check: Check | None = ...,
    secret: bool = ...,
) -> T | None: ...
@overload
def flag(
    default: T,
    *,
    kind: Kind[T],
    help: str,
    name: str | None = ...,
    check: Check | None = ...,
    secret: bool = ...,
) -> T: ...
def flag(
    default: Any,
    *,
    kind: Kind[Any],
    help: str,
    name: str | None = None,
    check: Check | None = None,
    secret: bool = False,
) -> Any:
    """Declare a flag as the default of a dataclass field.

    `name` is derived from the field's when absent: `offer_timeout_s` of kind
    `duration_s` is "offer-timeout".  `check` raises ValueError or InvalidValue, saying
    what must hold.  Default None: the flag may be left out, and an empty text
    means that it is.  Default REQUIRED: it may not.  A `secret` is never shown.
    """
    metadata = {_METADATA: _Declared(name, kind, help, check, secret)}
    if isinstance(default, _Required):
        # Keyword-only: it may then follow fields that have defaults.
        return dataclasses.field(kw_only=True, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def flags_of(cls: type[Any]) -> list[Flag[Any]]:
    """The flags that `cls` declares, in order; those that it inherits come last."""
    found: list[Flag[Any]] = []
    homes = [set(inspect.get_annotations(each)) for each in cls.__mro__]
    fields = sorted(
        dataclasses.fields(cls),
        key=lambda field: next(n for n, names in enumerate(homes) if field.name in names),
    )
    for field in fields:
        declared = field.metadata.get(_METADATA)
        if not isinstance(declared, _Declared):
            raise TypeError(f"{cls.__name__}.{field.name} is not declared by flag()")
        stem = field.name.removesuffix(_UNITS.get(declared.kind.name, ""))
        name = declared.name or stem.replace("_", "-")
        required = field.default is dataclasses.MISSING
        if name == CONFIG or any(name == other.name for other in found):
            raise TypeError(f"{cls.__name__}: the flag name {name!r} is taken")
        found.append(
            Flag(
                name=name,
                field=field.name,
                kind=declared.kind,
                default=None if required else field.default,
                required=required,
                help=declared.help,
                check=declared.check,
                secret=declared.secret,
            )
        )
    return found


def load(
    cls: type[C],
    env_prefix: str,
    *,
    command_line: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    config_text: str | None = None,
    config_name: str = "the configuration file",
) -> C:
    """Make a `cls` from what was given, the first of these that has a flag winning:
    `command_line` (flag names, with - or _; None is "not given"), `environ`
    (`env_prefix` and the name in upper case), `config_text` (TOML), the default.

    The table of the file is named by the prefix: MESOS_PY_MASTER_ -> [master].
    Raises InvalidValue naming the flag, the value, where it was given and what is
    allowed.  All of the file is checked: a bad value in it does not wait for the
    day that an option is left out.  Of the environment only what counts is: programs
    set variables that nobody asked for, and an option must be able to help.
    """
    flags = flags_of(cls)
    in_file = _from_file(flags, table_of(env_prefix), config_text, config_name)
    on_line = _from_command_line(flags, command_line or {})
    open_flags = [each for each in flags if each.name not in on_line]
    layers = [in_file, _from_environment(open_flags, env_prefix, environ or {}), on_line]
    values: dict[str, Any] = {}
    for each in flags:
        for layer in layers:
            if each.name in layer:
                values[each.field] = layer[each.name]
        if each.required and values.get(each.field) is None:
            variable = variable_of(env_prefix, each.name)
            raise InvalidValue(
                each.name,
                "",
                f"must be given: --{each.name} on the command line, {variable} in the environment, "
                f"or {each.name} in [{table_of(env_prefix)}] of a configuration file",
            )
    return cls(**values)


def click_options(cls: type[Any], env_prefix: str = "") -> Callable[[F], F]:
    """A decorator that adds an option for each flag of `cls`, and --config FILE.

    The options arrive as texts (booleans as bool), None when not given; hand the
    command's keyword arguments to `from_command`.
    """

    def decorate(function: F) -> F:
        # Click shows options in the reverse order of decoration.
        for each in reversed(flags_of(cls)):
            function = _option(each, env_prefix)(function)
        return click.option(
            f"--{CONFIG}", metavar="FILE", help="Read flags from this TOML file first."
        )(function)

    return decorate


def from_command(
    cls: type[C],
    env_prefix: str,
    options: Mapping[str, object],
    environ: Mapping[str, str] = os.environ,
) -> C:
    """`load` for a command with `click_options`: reads the file that --config (or the
    variable `<env_prefix>CONFIG`) names.  Other options among `options` are left alone.
    """
    given = options.get(CONFIG) or environ.get(f"{env_prefix}CONFIG") or None
    config_text = None
    if given is not None:
        try:
            config_text = Path(str(given)).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InvalidValue(CONFIG, str(given), f"cannot be read: {reason}") from error
    fields = {each.name for each in flags_of(cls)}
    command_line = {key: value for key, value in options.items() if key.replace("_", "-") in fields}
    return load(
        cls,
        env_prefix,
        command_line=command_line,
        environ=environ,
        config_text=config_text,
        config_name=str(given or ""),
    )


def as_texts(flags: object) -> dict[str, str]:
    """The values of `flags` by flag name, as texts that could be given again.

    Secrets are hidden; a flag that has no value is left out.
    """
    texts: dict[str, str] = {}
    for each in flags_of(type(flags)):
        value = getattr(flags, each.field)
        if value is not None:
            texts[each.name] = "***" if each.secret and value else each.kind.show(value)
    return texts


def unknown_variables(cls: type[Any], env_prefix: str, environ: Mapping[str, str]) -> list[str]:
    """Variables with our prefix that name no flag: worth a warning, probably misspelt.

    Not an error: Kubernetes sets `<SERVICE>_PORT_5050_TCP` and the like by itself.
    """
    known = {variable_of(env_prefix, each.name) for each in flags_of(cls)}
    known.add(f"{env_prefix}CONFIG")
    return sorted(name for name in environ if name.startswith(env_prefix) and name not in known)


def reference_table(cls: type[Any], env_prefix: str = "") -> str:
    """The flags as a Markdown table, for the documentation."""
    heads = ["flag", *(["environment"] if env_prefix else []), "value", "default", "what it does"]
    rows = [heads, ["---"] * len(heads)]
    for each in flags_of(cls):
        row = [f"`--{each.name}`"]
        if env_prefix:
            row.append(f"`{variable_of(env_prefix, each.name)}`")
        default = each.default_text
        row += [each.kind.allowed, default if default.startswith("(") else f"`{default}`"]
        row.append(each.help)
        rows.append(row)
    cells = ([cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows)
    return "".join(f"| {' | '.join(row)} |\n" for row in cells)


def variable_of(env_prefix: str, name: str) -> str:
    """MESOS_PY_MASTER_ and offer-timeout -> MESOS_PY_MASTER_OFFER_TIMEOUT."""
    return env_prefix + name.upper().replace("-", "_")


def table_of(env_prefix: str) -> str:
    """MESOS_PY_MASTER_ -> master."""
    return env_prefix.removeprefix("MESOS_PY_").strip("_").lower().replace("_", "-")


def _option(each: Flag[Any], env_prefix: str) -> Callable[[F], F]:
    notes = [f"default: {each.default_text}"]
    if env_prefix:
        notes.append(f"environment: {variable_of(env_prefix, each.name)}")
    described = f"{each.help}  [{'; '.join(notes)}]"
    if each.kind.name == boolean.name:
        return click.option(f"--{each.name}/--no-{each.name}", default=None, help=described)
    # Texts, parsed by us: so a bad value reads the same wherever it was given.
    return click.option(f"--{each.name}", metavar=each.kind.metavar, help=described)


def _from_command_line(flags: list[Flag[Any]], given: Mapping[str, object]) -> dict[str, Any]:
    known = {each.name: each for each in flags}
    values: dict[str, Any] = {}
    for key, value in given.items():
        name = key.replace("_", "-")
        if name not in known:
            raise _unknown(name, known, "on the command line")
        if value is not None:
            values[name] = _value(known[name], value, f"--{name} on the command line")
    return values


def _from_environment(
    flags: list[Flag[Any]], env_prefix: str, environ: Mapping[str, str]
) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for each in flags:
        variable = variable_of(env_prefix, each.name)
        if variable in environ:
            values[each.name] = _value(each, environ[variable], f"{variable} in the environment")
    return values


def _from_file(
    flags: list[Flag[Any]], table: str, config_text: str | None, config_name: str
) -> dict[str, Any]:
    if config_text is None:
        return {}
    try:
        content = tomllib.loads(config_text)
    # RecursionError: brackets nested without end.
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidValue(CONFIG, config_name, f"is not valid TOML: {error}") from error
    for key, value in content.items():
        if not isinstance(value, dict):
            raise InvalidValue(
                key, config_name, f"stands outside of a table; put it under [{table}]"
            )
        # Tables of other daemons may share the file; a misspelt one of ours may not.
        if key != table and difflib.get_close_matches(key, [table], cutoff=0.75):
            raise InvalidValue(
                CONFIG, config_name, f"unknown table [{key}]; did you mean [{table}]?"
            )
    known = {each.name: each for each in flags}
    values: dict[str, Any] = {}
    for key, value in cast("dict[str, object]", content.get(table, {})).items():
        source = f"[{table}] of {config_name}"
        if key not in known:
            raise _unknown(key, known, f"in {source}")
        values[key] = _value(known[key], value, f"{key} in {source}")
    return values


def _value(each: Flag[Any], given: object, source: str) -> Any:
    if given == "" and each.default is None and not each.required:
        return None
    try:
        value = each.kind.read(given)
        if each.check is not None:
            each.check(value)
    except InvalidValue as error:
        reason = error.reason
    except ValueError as error:
        reason = str(error)
    else:
        return value
    raise InvalidValue(
        each.name,
        "***" if each.secret else given,
        f"{reason} (given by {source}; allowed: {each.kind.allowed})",
    )


def _unknown(name: str, known: Iterable[str], where: str) -> InvalidValue:
    near = difflib.get_close_matches(name.replace("_", "-").lower(), list(known), n=1, cutoff=0.0)
    return InvalidValue(
        name,
        name,
        f"is not a flag, {where}; the nearest is {near[0]!r}"
        if near
        else f"is not a flag, {where}",
    )


__all__ = [
    "REQUIRED",
    "Flag",
    "Kind",
    "Rate",
    "as_texts",
    "at_least",
    "at_most",
    "between",
    "boolean",
    "choice",
    "click_options",
    "duration_s",
    "flag",
    "flags_of",
    "from_command",
    "host_port",
    "integer",
    "load",
    "not_empty",
    "number",
    "path",
    "percent",
    "port_number",
    "rate",
    "reference_table",
    "size_bytes",
    "text",
    "text_list",
    "unknown_variables",
    "variable_of",
]
