"""Operators who take machines out of service, while masters die under them.

    MASTER_OPERATORS_HISTORY=1234:500 pytest tests/property/test_master_operators.py

plays that one history again.  What must hold is in model_operators.py, on top of what must
hold for one master alone.
"""

from __future__ import annotations

from typing import Final

import pytest

from tests.property.model_campaign import ENOUGH, PARTS, Campaign
from tests.property.model_operators import OperatorRun

_CAMPAIGN: Final = Campaign(OperatorRun, "MASTER_OPERATORS_HISTORY")
# What they must meet, lest they prove nothing.
_MEANT: Final = (
    *("leaders", "words that counted", "tasks_launched", "agents_drained", "agents_marked_gone"),
    *("deactivate", "reactivate", "schedule", "start", "stop", "inverse_offers_sent"),
    *("roles", "refused: roles", "offers_rescinded", "tasks on room for short ones"),
    *("refused: drain", "refused: reactivate", "dropped/inverse-offer-unknown"),
)


@pytest.mark.parametrize("part", range(PARTS))
def test_whatever_operators_say_nothing_is_lost_and_everything_finds_its_end(part):
    _CAMPAIGN.play_part(part)


def test_the_histories_have_met_what_they_are_meant_to_meet(lacking):
    if _CAMPAIGN.met["histories"] < max(_CAMPAIGN.histories, ENOUGH):
        lacking("enough histories in one process")  # not so when workers share them
    assert [what for what in _MEANT if not _CAMPAIGN.met[what]] == []
