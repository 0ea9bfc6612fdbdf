from __future__ import annotations

import copy
import pickle

import pytest

from frameworks.rdd import messages
from frameworks.rdd.executor import orders


@pytest.mark.parametrize(
    "record",
    [
        messages.CancelTask(7, "a reason"),
        messages.Killed("of one field"),
        messages.TaskEnded(1, messages.Succeeded(result=b"x", accumulators=b"y")),
        messages.Forget(stages=("a",)),
        orders.Ready(7),
        orders.Answer(None, ValueError("x")),
    ],
)
def test_records_come_back_as_they_were(record):
    found = pickle.loads(pickle.dumps(record, protocol=5))
    assert repr(found) == repr(record)
    assert type(found) is type(record)
    assert repr(copy.copy(record)) == repr(record)
