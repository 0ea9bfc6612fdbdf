"""`mesos-py mpi run`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

import click

from mesos_py.cli.options import DURATION, master_option, naming_the_default
from mesos_py.cli.summaries import SUMMARIES
from mesos_py.errors import InvalidValue

if TYPE_CHECKING:
    from frameworks.mpi.settings import Settings

_ENV_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
MAX_RANKS: Final = 10_000


@click.group(short_help=SUMMARIES["mpi"])
def command() -> None:
    """Run MPI programs on the cluster, with the MPICH or Open MPI of this machine."""


@command.command("run", context_settings={"allow_interspersed_args": False})
@master_option
@click.option(
    "-n",
    "ranks",
    type=click.IntRange(1, MAX_RANKS),
    required=True,
    metavar="N",
    help="How many ranks.",
)
@click.option(
    "--ppn", type=click.IntRange(1), metavar="N", help="At most so many ranks on one agent."
)
@click.option("--cpus", type=float, default=1, show_default=True, help="Cores for each rank.")
@click.option("--mem", type=float, default=128, show_default=True, help="MB for each rank.")
@click.option(
    "--placement",
    type=click.Choice(["pack", "spread", "one-per-agent"]),
    default="pack",
    show_default=True,
    help="On as few agents as possible, as many as possible, or one rank on each.",
)
@click.option(
    "--backend",
    type=click.Choice(["mpich", "openmpi"]),
    default="mpich",
    show_default=True,
    help="What the program was built with.",
)
@click.option("--image", help="Run ranks in docker containers of this image, with its MPI.")
@click.option("--role", default="*", show_default=True, help="The role to run it under.")
@click.option("--user", help="Who it runs as on the agents.  [default: you]")
@click.option(
    "--beyond-guarantee",
    "beyond",
    is_flag=True,
    help="Run also with more than is guaranteed: what is above that may be taken back, and "
    "the job ends then.",
)
@click.option(
    "--start-timeout",
    "start_timeout_s",
    type=DURATION,
    default="30s",
    show_default=True,
    help="All ranks have to start within this time; one that leaves before MPI_Init ends "
    "the job after it.",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=DURATION,
    help="End everything when it is not done by then, with exit code 124.",
)
@click.option(
    "-l/--no-prefix",
    "--prefix/",
    "prefix",
    default=True,
    show_default=True,
    help="Begin each line of output with its rank: [3] ...",
)
@click.option(
    "-e",
    "--env",
    "env",
    multiple=True,
    metavar="NAME[=VALUE]",
    help="A variable for ranks; without a value, that of this environment.  Repeatable.",
)
@click.option(
    "--uri",
    "uris",
    multiple=True,
    metavar="'URI [WORD ...]'",
    help="Have each agent fetch it into the sandbox first, where ranks run.  "
    "Words after it: executable, cache, keep (do not unpack), as=NAME.  Repeatable.",
)
@click.option(
    "--file",
    "files",
    multiple=True,
    metavar="PATH",
    help="A file of this machine, sent along to where ranks run, under its name.  Repeatable.",
)
@click.option("--wdir", "directory", default="", help="Where ranks run.  [default: the sandbox]")
@click.option(
    "--address",
    default="",
    help="An IPv4 address of this machine that all agents can reach.  [default: the one "
    "from which this machine reaches them]",
)
@click.option("--name", help="What to call the job.  [default: the program's name]")
@click.option("-q", "--quiet", is_flag=True, help="Nothing on stderr but the ranks' own.")
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
def run(master: str | None, **options: Any) -> None:
    """Run PROGRAM as an MPI job of N ranks, show its output, and end as it ends.

    \b
    mesos-py mpi run -n 8 /shared/bin/ring
    mesos-py mpi run -n 8 --file ring ./ring
    mesos-py mpi run -n 8 --ppn 2 --cpus 2 --mem 1024 --uri 'http://host/ring executable' ./ring
    mesos-py mpi run -n 4 --backend openmpi --placement one-per-agent --file hpccinf.txt hpcc
    mesos-py mpi run -n 2 sh -c 'echo "$PMI_RANK on $(hostname)"'

    PROGRAM is on all agents (a package, a shared file system), or sent along with --file, or
    fetched with --uri; the last two are in the ranks' directory then, so it is ./PROGRAM.  Stdin
    goes to rank 0.  It takes the MPI that a program was built with (--backend).

    Nothing is started before there is room for all ranks; until then nothing is kept from
    others.  The end of any rank by a signal or with another code than 0, or of any other
    part, ends the whole job.

    The exit code is that of the first rank that failed (128 and the signal for one that a
    signal ended); 4 when another part was lost, 5 for a job that this cluster, role or
    guarantee has no room for, 124 after --timeout, 130 after Ctrl-C.
    """
    import asyncio

    from frameworks.mpi.runner import Runner
    from mesos_py import logs
    from mesos_py.operator import DEFAULT_MASTER

    settings = settings_of(master or DEFAULT_MASTER, options)

    async def go() -> int:
        return await Runner(settings).run()

    logs.setup("error")
    with naming_the_default(master):
        code = asyncio.run(go())
    click.get_current_context().exit(code)


def settings_of(master: str, options: dict[str, Any]) -> Settings:
    """What to run, checked.  Raises InvalidValue naming the option."""
    import ipaddress

    from frameworks.common.gang import Ask, Placement
    from frameworks.mpi.backends.named import BACKENDS
    from frameworks.mpi.files import checked
    from frameworks.mpi.settings import Settings
    from mesos_py import Resources, docker_container
    from mesos_py.cli.run import uri_of
    from mesos_py.ids import check_role

    program = options["program"]
    if not program[0]:
        raise InvalidValue("PROGRAM", program[0], "must not be empty")
    amounts = {key: options[key] for key in ("cpus", "mem")}
    try:
        each = Resources.of(None, **{key: value for key, value in amounts.items() if value != 0})
    except InvalidValue as error:
        raise InvalidValue(f"--{error.field}", error.value, error.reason) from None
    if not each:
        raise InvalidValue("--cpus", 0, "a rank needs something of a machine: cpus or mem")
    files = checked(options["files"])
    here = "/" in program[0] and not program[0].startswith("/")
    if here and not (files or options["uris"] or options["directory"] or options["image"]):
        why = "is not where ranks run: send it along (--file), or give a path from the root on"
        raise InvalidValue("PROGRAM", program[0], why)
    if options["address"]:
        try:
            ipaddress.IPv4Address(options["address"])
        except ValueError:
            raise InvalidValue("--address", options["address"], "must be an IPv4 address") from None
    image = options["image"]
    return Settings(
        master=master,
        name=options["name"] or PurePath(program[0]).name or "mpi",
        backend=BACKENDS[options["backend"]](),
        ask=Ask(options["ranks"], each, options["ppn"], Placement(options["placement"])),
        program=program,
        role=check_role("--role", options["role"]),
        user=options["user"] or "",
        env=env_of(options["env"]),
        uris=[uri_of(text) for text in options["uris"]],
        files=files,
        container=docker_container(image, network="host") if image else None,
        directory=options["directory"],
        address=options["address"],
        beyond=options["beyond"],
        timeout_s=options["timeout_s"],
        start_timeout_s=options["start_timeout_s"],
        prefix=options["prefix"],
        quiet=options["quiet"],
    )


def env_of(items: Sequence[str]) -> dict[str, str]:
    """The variables that --env names.  Raises InvalidValue."""
    import os

    env = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not _ENV_NAME.fullmatch(name):
            raise InvalidValue("--env", item, "must be NAME=VALUE")
        if not equals and name not in os.environ:
            raise InvalidValue("--env", item, "is not in this environment; give NAME=VALUE")
        env[name] = value if equals else os.environ[name]
    return env
