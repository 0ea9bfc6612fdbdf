"""Masters that die, each followed by one that has the registry and nothing else.

    MASTER_LEADERS_HISTORY=1234:500 pytest tests/property/test_master_leaders.py

plays that one history again.  What must hold is in model_leaders.py, on top of what must
hold for one master alone.
"""

from __future__ import annotations

from typing import Final

import pytest

from tests.property.model_campaign import ENOUGH, PARTS, Campaign
from tests.property.model_leaders import LeaderRun

_CAMPAIGN: Final = Campaign(LeaderRun, "MASTER_LEADERS_HISTORY")
# What they must meet, lest they prove nothing.
_MEANT: Final = (
    *("leaders", "writes arrived unconfirmed", "writes lost"),
    *("agents_registered", "agents_reregistered", "agents_unreachable", "agents_removed"),
    *("dropped/reconcile-too-early", "dropped/admission-without-agent"),
)


@pytest.mark.parametrize("part", range(PARTS))
def test_whoever_leads_nothing_that_was_told_is_lost_and_everything_finds_its_end(part):
    _CAMPAIGN.play_part(part)


def test_the_histories_have_met_what_they_are_meant_to_meet(lacking):
    if _CAMPAIGN.met["histories"] < max(_CAMPAIGN.histories, ENOUGH):
        lacking("enough histories in one process")  # not so when workers share them
    assert [what for what in _MEANT if not _CAMPAIGN.met[what]] == []
