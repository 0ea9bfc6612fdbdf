"""docs/configuration.md lists exactly the flags that there are."""

from pathlib import Path
from typing import Any

import pytest

from agent import app as agent_app
from master import app as master_app
from mesos_py.config import reference_table

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"


@pytest.mark.parametrize(
    ("flags", "prefix"),
    [
        (master_app.MasterFlags, master_app.ENV_PREFIX),
        (agent_app.AgentFlags, agent_app.ENV_PREFIX),
    ],
)
def test_the_table_on_the_page_is_that_of_the_flags(flags: type[Any], prefix: str) -> None:
    table = reference_table(flags, prefix)
    assert table in PAGE.read_text(), f"put this into {PAGE.name}:\n{table}"
