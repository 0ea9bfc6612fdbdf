"""`make chaos MINUTES=30 SEED=7`: rounds of random faults until the time is over.

Each round has a seed of its own, the first one's plus its number.  It stops at the first
round after which something is wrong, and says how to do the same again.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click

from tests.kit.chaos.run import Size, round_of_faults


@click.command()
@click.option("--minutes", type=float, default=30.0, show_default=True)
@click.option("--seed", type=int, help="of the first round; one is drawn if none is given")
@click.option("--length-s", type=float, default=60.0, show_default=True, help="length of a round")
@click.option("--masters", type=int, default=3, show_default=True)
@click.option("--zookeepers", type=int, default=3, show_default=True, help="0: one master alone")
@click.option("--agents", type=int, default=2, show_default=True)
def main(minutes: float, seed: int | None, **size: Any) -> None:
    """Rounds of random faults for so many minutes; at least one."""
    first = random.SystemRandom().randrange(1_000_000) if seed is None else seed
    end = time.monotonic() + minutes * 60
    number = 0
    while number == 0 or time.monotonic() < end:
        one_round(first + number, Size(**size))
        number += 1
    click.echo(f"{number} rounds, seeds {first} to {first + number - 1}: nothing is wrong")


def one_round(seed: int, size: Size) -> None:
    """Ends the program if something is wrong; what was written is kept then."""
    directory = Path(tempfile.mkdtemp(prefix=f"chaos-{seed}-"))
    click.echo(f"seed {seed}")
    found = round_of_faults(directory, seed, size, click.echo)
    if found:
        click.echo("\n".join(["wrong:", *found]), err=True)
        click.echo(f"logs, ledger and marks are in {directory}", err=True)
        click.echo(f"once more: make chaos MINUTES=0 SEED={seed}", err=True)
        sys.exit(1)
    shutil.rmtree(directory)


if __name__ == "__main__":
    main()
