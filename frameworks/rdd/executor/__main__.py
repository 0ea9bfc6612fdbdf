"""`python -m frameworks.rdd.executor`, started by a backend: see settings.py."""

from __future__ import annotations

import resource
import sys
from functools import partial

from frameworks.rdd.executor import forks, settings, worker


def main() -> int:
    given, secret = settings.from_environment()
    settings.remove_secret()
    # Each block is an open file.
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    # Before anything here starts a thread.
    server = forks.ForkServer.start(partial(worker.run, given), partial(worker.load, given))
    from frameworks.rdd.executor import parent

    return parent.run(given, secret, server)


if __name__ == "__main__":
    sys.exit(main())
