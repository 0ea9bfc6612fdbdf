"""What a farm keeps: as it was written, or an error that names the file."""

import json

import pytest

from frameworks.webfarm.core.farm import Instance
from frameworks.webfarm.core.rollout import Rollout
from frameworks.webfarm.state import Record, StateDirectory, Wish
from mesos_py.errors import InvalidValue


def test_a_record_comes_back_as_it_was_written(tmp_path):
    state = StateDirectory(tmp_path)
    assert state.record() is None
    rollout = Rollout.first("/srv/one/")
    rollout.begin("/srv/two/")
    record = Record(
        "127.0.0.1:5050",
        "framework-1",
        wanted=3,
        handled=2,
        asked="/srv/one/",
        rollout=rollout,
        instances=[Instance("t1", "agent-1", "host", "10.0.0.1", 31000, 2)],
    )
    state.keep(record)
    assert state.record() == record


def test_wishes_have_rising_numbers_also_after_one_was_lost(tmp_path):
    state = StateDirectory(tmp_path)
    assert state.wish() is None
    assert state.make_wish(site="/srv/one/") == state.wish() == Wish(1, "/srv/one/")
    assert state.make_wish(down=True) == Wish(2, "", True)
    state.keep(Record(handled=7))
    assert state.make_wish(site="x").number == 8


def test_a_status_says_whether_who_wrote_it_still_runs(tmp_path):
    state = StateDirectory(tmp_path)
    assert state.status() is None
    state.show({"wanted": 2})

    def running():
        return (state.status() or {})["running"]

    assert running()
    told = json.loads((tmp_path / "status.json").read_text())
    (tmp_path / "status.json").write_text(json.dumps({**told, "at_s": told["at_s"] - 60}))
    assert not running()
    # No process has this number.
    (tmp_path / "status.json").write_text(json.dumps({**told, "pid": 2**22 + 1}))
    assert not running()


def test_a_farm_that_has_ended_leaves_nothing(tmp_path):
    state = StateDirectory(tmp_path)
    state.keep(Record())
    state.show({})
    state.make_wish(down=True)
    state.clear()
    state.clear()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"format": 2}',
        '{"format": 1, "instances": [], "rollout": {"sit": 1}}',
        '{"format": 1, "instances": [{"task_id": 1}], "rollout": {}}',
        '{"format": 1, "instances": 1, "rollout": {}}',
        '{"format": 1, "instances": [], "rollout": {}, "later": 1}',
    ],
)
def test_a_file_that_is_none_of_ours_is_named(tmp_path, text):
    (tmp_path / "farm.json").write_text(text)
    with pytest.raises(InvalidValue) as caught:
        StateDirectory(tmp_path).record()
    assert caught.value.field == "state-dir"
    assert caught.value.value == str(tmp_path / "farm.json")


def test_a_wish_that_is_none_is_named(tmp_path):
    (tmp_path / "wish.json").write_text('{"wishes": 3}')
    with pytest.raises(InvalidValue, match="wish"):
        StateDirectory(tmp_path).wish()
