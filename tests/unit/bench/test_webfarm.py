"""What the bench of the web farm makes of its samples."""

from typing import Any

import pytest

from bench.webfarm import LOOK_S, longest, servers_for
from bench.webfarm.pictures import changes, write_table
from bench.webfarm.watch import Sample


def sample(at_s, serving, offered=100.0):
    return Sample(at_s, offered, rate=None, wanted=2, serving=serving, rates=[])


def test_a_stretch_lasts_until_the_sample_after_it():
    few = [sample(at, serving) for at, serving in enumerate([1, 2, 1, 1, 2, 1])]
    assert longest(few, lambda s: s.serving < 2) == pytest.approx(1 + LOOK_S)
    assert longest(few, lambda s: s.serving < 1) == 0
    assert longest([], lambda s: True) == 0


@pytest.mark.parametrize(("load", "servers"), [(0, 1), (40, 1), (40.1, 2), (80, 2), (260, 7)])
def test_servers_for_a_load_get_no_more_than_the_target(load, servers):
    assert servers_for(load) == servers


def test_pictures_show_what_is_new_the_first_and_the_last():
    rows: list[dict[str, Any]] = [
        {"at_s": at, "offered": at, "rate": rate, "wanted": 1, "serving": 1, "rates": []}
        for at, rate in enumerate([None, None, 7.0, 7.0, 8.0, 8.0])
    ]
    assert [each["at_s"] for each in changes(rows)] == [0, 2, 4, 5]
    assert changes([]) == []


def test_the_table_has_a_column_for_each_server(tmp_path):
    rows: list[dict[str, Any]] = [
        {"at_s": 0.0, "offered": 5.0, "rate": None, "wanted": 1, "serving": 0, "rates": []},
        {"at_s": 0.5, "offered": 7.5, "rate": 7, "wanted": 2, "serving": 2, "rates": [3.5, 4]},
    ]
    write_table(tmp_path / "t.csv", rows)
    assert (tmp_path / "t.csv").read_text().splitlines() == [
        "at_s,offered,rate,wanted,serving,server_1,server_2",
        "0,5,,1,0",
        "0.5,7.5,7,2,2,3.5,4",
    ]
