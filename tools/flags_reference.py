"""Prints docs/configuration.md: every flag of the daemons, from where it is declared."""

from __future__ import annotations

import sys

from agent import flags as agent_flags
from master import flags as master_flags
from mesos_py.config import reference_table

HEAD = """\
# Configuration of the daemons

Made by `make docs` from the declarations in `master/flags.py` and `agent/flags.py`; do not edit.

Each flag can be given on the command line, by its variable in the environment, or in a TOML file (`--config FILE`, or
the variable `MESOS_PY_MASTER_CONFIG` or `MESOS_PY_AGENT_CONFIG`), in this order of precedence. The file has a table for
each daemon, and names without dashes in front:

```toml
[master]
ip = "10.0.0.1"
offer-timeout = "1m"

[agent]
master = "10.0.0.1:5050"
work-dir = "/var/lib/mesos-py/agent"
resources = "cpus:4;mem:8192"
```

Durations are numbers with a unit (`250ms`, `10s`, `1m30s`), sizes too (`512MB`). A value that cannot be used, or a name
that is no flag, ends the daemon with exit code 2 and says which it was and where it came from.
"""


def page() -> str:
    """The whole page."""
    master = reference_table(master_flags.MasterFlags, master_flags.ENV_PREFIX)
    agent = reference_table(agent_flags.AgentFlags, agent_flags.ENV_PREFIX)
    return (
        f"{HEAD}\n## `mesos-py master`\n\n{master.rstrip()}\n\n"
        f"## `mesos-py agent`\n\n{agent.rstrip()}\n"
    )


if __name__ == "__main__":
    sys.stdout.write(page())
