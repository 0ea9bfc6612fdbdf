"""docs/configuration.md says what the daemons really take."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_is_what_the_declarations_give() -> None:
    page = runpy.run_path(str(ROOT / "tools" / "flags_reference.py"))["page"]()
    assert (ROOT / "docs" / "configuration.md").read_text() == page, "run `make docs`"
