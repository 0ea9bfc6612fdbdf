"""`mesos-py run`: a command on the cluster, as if it were here."""

from __future__ import annotations

import re
import secrets
import shlex
import sys
from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

import click

from mesos_py.cli.options import DURATION, master_option, naming_the_default, open_master
from mesos_py.cli.summaries import SUMMARIES
from mesos_py.cli.variables import HELP as VARIABLES_HELP
from mesos_py.cli.variables import require_text, variables_of
from mesos_py.errors import InvalidValue

if TYPE_CHECKING:
    from mesos_py.cli.running.job import Job, Spec
    from mesos_py.cli.running.runner import Settings
    from mesos_py.v1.types_pb2 import CommandInfo, ContainerInfo, HealthCheck

_NOT_IN_IDS: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
MAX_NAME: Final = 100
MAX_INSTANCES: Final = 10_000


@click.command(
    short_help=SUMMARIES["run"],
    context_settings={"allow_interspersed_args": False},
)
@master_option
@click.option(
    "-n",
    "--instances",
    type=click.IntRange(1, MAX_INSTANCES),
    default=1,
    show_default=True,
    metavar="N",
    help="How many times to run it, side by side.",
)
@click.option("--cpus", type=float, default=1, show_default=True, help="Cores for each.")
@click.option("--mem", type=float, default=128, show_default=True, help="MB of memory for each.")
@click.option("--disk", type=float, default=0, help="MB of disk for each.")
@click.option("--gpus", type=int, default=0, help="GPUs for each.")
@click.option(
    "--ports",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="How many ports for each; they are told by PORT, PORT0, PORT1 ... and PORTS.",
)
@click.option(
    "-e",
    "--env",
    multiple=True,
    metavar="NAME[=VALUE]",
    help=VARIABLES_HELP,
)
@click.option(
    "--uri",
    "uris",
    multiple=True,
    metavar="'URI [WORD ...]'",
    help="Have the agent fetch it into the sandbox first, unpacked if it is an archive.  "
    "Words after it: executable, cache, keep (do not unpack), as=NAME.  Repeatable.",
)
@click.option(
    "--own-network",
    is_flag=True,
    help="In a network of its own, reached at the agent's address by its ports (see --ports).",
)
@click.option(
    "--rlimit",
    "rlimits",
    multiple=True,
    metavar="NAME=SOFT[:HARD]",
    help="A limit of its processes, as nofile=4096 or core=unlimited.  Repeatable.",
)
@click.option("--name", help="What to call it.  [default: the command's first word]")
@click.option("--role", default="*", show_default=True, help="The role to run it under.")
@click.option("--image", help="Run it in a docker container of this image.")
@click.option(
    "--volume",
    "volumes",
    multiple=True,
    metavar="SOURCE:TARGET[:ro]",
    help="With --image: a path of the agent in the container.  Repeatable.",
)
@click.option(
    "--network",
    metavar="NETWORK",
    help="With --image: host, bridge, none, or a network of docker's.  [default: host]",
)
@click.option("--pull", is_flag=True, help="With --image: pull it even if the agent has it.")
@click.option("--user", help="Who it runs as on the agents.  [default: you]")
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="HOST",
    help="Only on agents with this host name.  Repeatable: one of them.",
)
@click.option(
    "--retry",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="Run an instance that fails or is lost again, up to N times.",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=DURATION,
    help="End everything when it is not done by then, with exit code 124.",
)
@click.option(
    "--health-cmd",
    metavar="COMMAND",
    help="It is healthy while this command exits with 0 beside it; else it is killed.",
)
@click.option("--health-delay", type=DURATION, help="Pause before the first.  [default: 15s]")
@click.option("--health-interval", type=DURATION, help="Pause between two.  [default: 10s]")
@click.option("--health-timeout", type=DURATION, help="Time for each.  [default: 20s]")
@click.option(
    "--health-grace",
    type=DURATION,
    help="Failures before the first success do not count so long.  [default: 10s]",
)
@click.option(
    "--health-failures",
    type=click.IntRange(1),
    metavar="N",
    help="Kill it after so many failures in a row.  [default: 3]",
)
@click.option(
    "--shell/--no-shell",
    "shell",
    default=None,
    help="Give the command to a shell.  [default: if it is a single word]",
)
@click.option(
    "--prefix/--no-prefix",
    "prefix",
    default=None,
    help="Begin each line of output with its task's name.  [default: if there are several]",
)
@click.option("-q", "--quiet", is_flag=True, help="Nothing on stderr but the tasks' own.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def command(master: str | None, **options: Any) -> int:
    """Run COMMAND on the cluster, show its output as it comes, and end as it ends.

    A single word is a shell's command line ('sleep 1 && date'); several words are a
    program and its arguments, run as they are (-- date +%s).

    The exit code is the command's own (128 and the signal for one that a signal ended);
    of several instances the first that is not 0, in their order; 4 for a task that never
    ran or was lost.  Ctrl-C ends the tasks and waits for that; a second one does not.

    The command finds MESOS_PY_INSTANCE (0, 1 ...) and MESOS_PY_INSTANCES in its
    environment.
    """
    import asyncio

    from mesos_py import logs
    from mesos_py.cli.running.job import Job
    from mesos_py.cli.running.runner import CONNECT_S, Runner
    from mesos_py.operator import DEFAULT_MASTER
    from mesos_py.v1.operator_pb2 import Call

    job = Job(spec_of(options))
    settings = settings_of(master or DEFAULT_MASTER, job, options)

    async def go() -> int:
        return await Runner(job, settings).run()

    logs.setup("error")
    with naming_the_default(master):
        # A subscription waits for a master; who types a command does not want to.
        with open_master(master, CONNECT_S) as client:
            client.execute(Call(type=Call.GET_HEALTH))
        return asyncio.run(go())


def spec_of(options: dict[str, Any]) -> Spec:
    """What to run, checked.  Raises InvalidValue naming the option."""
    from mesos_py.cli.running.job import Spec
    from mesos_py.containers import fit
    from mesos_py.resources import Resources

    words: Sequence[str] = options["command"]
    shell = options["shell"] if options["shell"] is not None else len(words) == 1
    name = options["name"] or default_name(words, shell=shell)
    if not name.strip() or len(name) > MAX_NAME:
        raise InvalidValue("--name", name, f"must have 1 to {MAX_NAME} characters")
    amounts = {key: options[key] for key in ("cpus", "mem", "disk", "gpus")}
    try:
        each = Resources.of(**{key: value for key, value in amounts.items() if value != 0})
    except InvalidValue as error:
        raise InvalidValue(f"--{error.field}", error.value, error.reason) from None
    if not each:
        raise InvalidValue("--cpus", 0, "it needs something of a machine: cpus, mem or others")
    to_run = command_of(words, shell=shell, env=options["env"], uris=options["uris"])
    container = container_of(options)
    if container is not None:
        fit(to_run, container)
    return Spec(
        name=name,
        ids=f"{_NOT_IN_IDS.sub('_', name)}-{secrets.token_hex(3)}",
        command=to_run,
        container=container,
        each=each,
        instances=options["instances"],
        ports=options["ports"],
        retries=options["retry"],
        health=health_of(options),
    )


def container_of(options: dict[str, Any]) -> ContainerInfo | None:
    """What to run it in; None: nothing special.  Raises InvalidValue naming the option."""
    from mesos_py.containers import docker_container
    from mesos_py.plain_containers import parse_rlimit, plain_container, rlimit_info

    image = options["image"]
    if image is None:
        for name in ("volumes", "network", "pull"):
            if options[name]:
                flag = f"--{name.removesuffix('s')}"
                raise InvalidValue(flag, options[name], "is for a container: give --image")
    elif options["own_network"]:
        raise InvalidValue("--own-network", True, "is not for images: give --network bridge")
    try:
        limits = dict(parse_rlimit(text) for text in options["rlimits"])
        rlimits = rlimit_info(limits)
    except InvalidValue as error:
        raise InvalidValue("--rlimit", error.value, error.reason) from None
    if image is None:
        network = "mesos-py" if options["own_network"] else None
        return plain_container(network=network, rlimits=limits) if network or limits else None
    network = options["network"] or "host"
    try:
        container = docker_container(
            image, volumes=options["volumes"], network=network, force_pull=options["pull"]
        )
    except InvalidValue as error:
        flag = f"--{error.field.removesuffix('s')}"
        raise InvalidValue(flag, error.value, error.reason) from None
    if limits:
        container.rlimit_info.CopyFrom(rlimits)
    return container


def health_of(options: dict[str, Any]) -> HealthCheck | None:
    """The health check that the options describe.  Raises InvalidValue naming the option."""
    from mesos_py.tasks import health_command

    times = {
        f"{name}_s": options[f"health_{name}"] for name in ("delay", "interval", "timeout", "grace")
    }
    failures = options["health_failures"]
    if options["health_cmd"] is None:
        for name, value in {**times, "failures": failures}.items():
            if value is not None:
                option = f"--health-{name.removesuffix('_s')}"
                raise InvalidValue(option, value, "means something with --health-cmd only")
        return None
    if not options["health_cmd"]:
        raise InvalidValue("--health-cmd", "", "must not be empty")
    return health_command(options["health_cmd"], failures=failures, **times)


def settings_of(master: str, job: Job, options: dict[str, Any]) -> Settings:
    """How to run it, checked.  Raises InvalidValue naming the option."""
    from mesos_py.cli.running.runner import FAILOVER_S, Settings
    from mesos_py.ids import check_role
    from mesos_py.v1.types_pb2 import FrameworkInfo

    framework = FrameworkInfo(
        name=job.spec.name,
        user=options["user"] or "",
        role=check_role("--role", options["role"]),
        failover_timeout=FAILOVER_S,
    )
    if options["gpus"]:
        framework.capabilities.add(type=FrameworkInfo.Capability.GPU_RESOURCES)
    for host in options["hosts"]:
        if not host:
            raise InvalidValue("--host", host, "must not be empty")
    several = job.spec.instances > 1
    return Settings(
        master=master,
        framework=framework,
        hosts=options["hosts"],
        timeout_s=options["timeout_s"],
        prefix=options["prefix"] if options["prefix"] is not None else several,
        quiet=options["quiet"],
        bar=several and not options["quiet"] and sys.stderr.isatty(),
    )


def command_of(
    words: Sequence[str], *, shell: bool, env: Sequence[str], uris: Sequence[str] = ()
) -> CommandInfo:
    """The words in the form of the wire."""
    from mesos_py.v1.types_pb2 import CommandInfo

    if not words[0]:
        raise InvalidValue("COMMAND", words[0], "must not be empty")
    for word in words:
        require_text("COMMAND", word)
    if shell:
        command = CommandInfo(shell=True, value=" ".join(words))
    else:
        command = CommandInfo(shell=False, value=words[0], arguments=words)
    command.environment.variables.extend(variables_of(env))
    command.uris.extend(uri_of(text) for text in uris)
    return command


def uri_of(text: str) -> CommandInfo.URI:
    """A URI and the words that say what to do with it."""
    from mesos_py.tasks import uri

    value, *words = text.split() or [""]
    output_file = None
    flags: set[str] = set()
    for word in words:
        if word.startswith("as=") and len(word) > len("as="):
            output_file = word.removeprefix("as=")
        elif word in ("executable", "cache", "keep"):
            flags.add(word)
        else:
            why = f"{word!r} is not one of: executable, cache, keep, as=NAME"
            raise InvalidValue("--uri", text, why)
    if not value:
        raise InvalidValue("--uri", text, "must not be empty")
    return uri(
        value,
        executable="executable" in flags,
        cache="cache" in flags,
        extract="keep" not in flags,
        output_file=output_file,
    )


def default_name(words: Sequence[str], *, shell: bool) -> str:
    """The program's name, as far as it can be told."""
    first = words[0]
    if shell:
        try:
            parts = shlex.split(" ".join(words))
        except ValueError:
            parts = words[0].split()
        first = next((part for part in parts if not _ASSIGNMENT.match(part)), "")
    name = PurePath(first).name if _NOT_IN_IDS.sub("", first) else ""
    return (name or "run")[:MAX_NAME]
