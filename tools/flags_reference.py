"""Prints docs/configuration.md: every flag of the daemons, from where it is declared."""

from __future__ import annotations

import sys

from agent import flags as agent_flags
from agent import mesos_flags as agent_mesos_flags
from frameworks.mapreduce.cli import flags as tracker_flags
from frameworks.rdd import properties
from master import flags as master_flags
from master import mesos_flags as master_mesos_flags
from mesos_py.config import reference_table

HEAD = """\
# Configuration of the daemons

Made by `make docs` from the declarations in `master/flags.py`, `agent/flags.py`,
`frameworks/mapreduce/cli/flags.py` and `frameworks/rdd/properties.py`; do not edit.

Each flag can be given on the command line, by its variable in the environment, or in a TOML file (`--config FILE`, or
the variable `MESOS_PY_MASTER_CONFIG` or `MESOS_PY_AGENT_CONFIG`), in this order of precedence. The file has a table for
each daemon, and names without dashes in front:

```toml
[master]
ip = "10.0.0.1"
offer-timeout = "1m"

[agent]
master = "10.0.0.1:5060"
work-dir = "/var/lib/mesos-py/agent"
resources = "cpus:4;mem:8192"
```

Durations are numbers with a unit (`250ms`, `10s`, `1m30s`), sizes too (`512MB`). A value that cannot be used, or a name
that is no flag, ends the daemon with exit code 2 and says which it was and where it came from.
"""


RDD = """\
## Properties of `mesos-py rdd` and SparkConf

Set by `SparkConf().set(name, value)`, `mesos-py rdd submit --conf NAME=VALUE`, or a line of its `--properties-file`, in
this order of precedence. `spark.executorEnv.NAME` is a variable for executors. Sizes are as in Spark: `512m`, `2g`.
"""


MESOS = """\
## Flags of Apache Mesos

`mesos-py master` and `mesos-py agent` also take those of mesos-master and mesos-agent (1.11) below, as `--work_dir=/x` on
the command line and as `MESOS_WORK_DIR` in the environment; where both are given, ours count. What has no use here is
logged and changes nothing; what asks for a protection that is not there ends the daemon. See [migration](migration.md).
"""


def mesos_tables() -> str:
    """What becomes of each flag of Mesos."""
    master, agent = master_mesos_flags.TABLE.markdown(), agent_mesos_flags.TABLE.markdown()
    return f"{MESOS}\n### mesos-master\n\n{master}\n### mesos-agent\n\n{agent}"


def rdd_table() -> str:
    """Every property that means something to `frameworks.rdd`."""
    rows = ["| name | value | default | |", "|---|---|---|---|"]
    for each in properties.ALL:
        shown = each.kind.show(each.default)
        default = f"`{shown}`" if shown else "empty"
        kind = each.kind.metavar.replace("|", "\\|")
        rows.append(f"| `{each.name}` | {kind} | {default} | {each.help} |")
    return "\n".join(rows)


def page() -> str:
    """The whole page."""
    master = reference_table(master_flags.MasterFlags, master_flags.ENV_PREFIX)
    agent = reference_table(agent_flags.AgentFlags, agent_flags.ENV_PREFIX)
    tracker = reference_table(tracker_flags.TrackerFlags, tracker_flags.ENV_PREFIX)
    return (
        f"{HEAD}\n## `mesos-py master`\n\n{master.rstrip()}\n\n"
        f"## `mesos-py agent`\n\n{agent.rstrip()}\n\n"
        f"## `mesos-py mapreduce tracker`\n\n{tracker.rstrip()}\n\n"
        f"{RDD}\n{rdd_table()}\n\n"
        f"{mesos_tables()}"
    )


if __name__ == "__main__":
    sys.stdout.write(page())
