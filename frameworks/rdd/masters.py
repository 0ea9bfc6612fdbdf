"""The name of a master, as users write it: what carries out the jobs of a SparkContext."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from frameworks.rdd import properties
from frameworks.rdd.backend import Backend
from frameworks.rdd.backends.local import LocalBackend
from frameworks.rdd.conf import SparkConf
from frameworks.rdd.engine import Engine
from frameworks.rdd.page import Page
from frameworks.rdd.ruling import rules_of
from frameworks.rdd.runner import Runner
from mesos_py.errors import InvalidValue

if TYPE_CHECKING:
    from frameworks.rdd.bars import Bars

_LOCAL = re.compile(r"local(?:\[\s*(\*|[0-9]+)\s*(?:,\s*([0-9]+)\s*)?\])?")


@dataclass(frozen=True, slots=True)
class Local:
    """slots: tasks at once on this machine.  failures: of a task until its job has failed."""

    slots: int
    failures: int = 1


def local(master: str) -> Local | None:
    """What `local`, `local[4]`, `local[*]`, `local[4, 2]` mean; None for other masters.

    Raises InvalidValue for one that begins so and is none of these.
    """
    if not master.startswith("local"):
        return None
    found = _LOCAL.fullmatch(master)
    if found is None:
        raise InvalidValue("master", master, "is not local, local[N], local[*] or local[N, F]")
    slots = len(os.sched_getaffinity(0)) if found[1] == "*" else int(found[1] or 1)
    failures = int(found[2] or 1)
    if slots < 1 or failures < 1:
        raise InvalidValue("master", master, "slots and failures are to be 1 or more")
    return Local(slots, failures)


def _page(values: Mapping[str, str]) -> Page | None:
    if not properties.UI.of(values):
        return None
    title = properties.APP_NAME.of(values) or "RDD"
    return Page(title, properties.UI_HOST.of(values), properties.UI_PORT.of(values))


def _bars(values: Mapping[str, str]) -> Bars | None:
    if not properties.PROGRESS.of(values) or sys.stderr is None or not sys.stderr.isatty():
        return None
    # It brings what draws on terminals, which others do without.
    from frameworks.rdd.bars import Bars

    return Bars()


def start(conf: SparkConf) -> Runner:
    """For what `spark.master` says.

    Raises InvalidValue that names a property, PortInUse, and MesosPyError if what is needed on
    this machine cannot be started.  That a master does not answer fails jobs, not this.
    """
    values = dict(conf.getAll())
    master = properties.MASTER.of(values)
    here = local(master)
    backend: Backend
    if here is not None:
        backend = LocalBackend(here.slots, values)
        rules = rules_of(values, max_failures=here.failures)
    else:
        # It brings gRPC and the SDK, which local[N] does without.
        from frameworks.rdd.backends.mesos import MesosBackend

        backend = MesosBackend(master.removeprefix("mesos://"), values)
        rules = rules_of(values)
    engine = Engine(backend, rules, page=_page(values), bars=_bars(values))
    engine.start()
    return engine
