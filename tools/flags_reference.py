"""Prints docs/flags.md: every flag of the daemons, from where it is declared."""

from __future__ import annotations

import sys

from agent import app as agent_app
from master import app as master_app
from mesos_py.config import reference_table

HEAD = """\
# Flags

Made by `make docs` from the declarations in `master/app.py` and `agent/app.py`; do not edit.

A flag is taken from the command line, else from the environment, else from the file that `--config` (or the variable
ending in `_CONFIG`) names, else its default. The file is TOML, with the flags of the master in a table `[master]`, those
of the agent in `[agent]`:

```toml
[master]
ip = "10.0.0.1"
offer-timeout = "1m"
```

Durations are numbers with a unit (`250ms`, `10s`, `1m30s`), sizes too (`512MB`). A value that cannot be used, or a name
that is no flag, ends the daemon with exit code 2 and says which it was and where it came from.
"""


def page() -> str:
    """The whole page."""
    master = reference_table(master_app.MasterFlags, master_app.ENV_PREFIX)
    agent = reference_table(agent_app.AgentFlags, agent_app.ENV_PREFIX)
    return (
        f"{HEAD}\n## mesos-py master\n\n{master.rstrip()}\n\n"
        f"## mesos-py agent\n\n{agent.rstrip()}\n"
    )


if __name__ == "__main__":
    sys.stdout.write(page())
