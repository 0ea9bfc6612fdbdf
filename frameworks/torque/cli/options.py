"""Options that sub-commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from frameworks.torque.cli.flags import ENV_PREFIX

state_dir_option: Final = click.option(
    "--state-dir",
    type=click.Path(path_type=Path, file_okay=False, exists=True, resolve_path=True),
    envvar=f"{ENV_PREFIX}STATE_DIR",
    required=True,
    help=f"Of `mesos-py torque up`.  [environment: {ENV_PREFIX}STATE_DIR]",
)
