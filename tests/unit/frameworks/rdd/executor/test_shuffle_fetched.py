"""Outputs of maps on other hosts: from the file servers of their agents."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from frameworks.rdd.errors import FetchFailed
from frameworks.rdd.executor import shuffle_in
from tests.kit.map_server import MapServer
from tests.kit.rdd_drivers import dependency, slices
from tests.kit.rdd_tasks import Place

PARTS = [[(number, f"{part} {number}") for number in range(500)] for part in range(2)]


class Remote:
    def __init__(self, place: Place, server: MapServer) -> None:
        self.place = place
        self.server = server
        self.needs = dependency(slices(PARTS))
        # In three chunks each, so that there is something to go on from.
        self.outputs = []
        for output in place.write(self.needs, PARTS, "40k"):
            name = f"/{output.map_index}"
            server.files[name] = Path(output.path).read_bytes()
            Path(output.path).unlink()
            self.outputs.append(replace(output, path="/nowhere", url=server.url(name)))

    def read(self, split: int = 0) -> list:
        env = self.place.task(split, "512m", self.outputs)
        try:
            return list(env.read_shuffle(self.needs, split))
        finally:
            self.place.state.fetcher.end()


@pytest.fixture
def remote(tmp_path, monkeypatch):
    monkeypatch.setattr(shuffle_in, "_WAITS_S", (0.0, 0.0))
    with MapServer() as server:
        yield Remote(Place(tmp_path), server)


EXPECTED = [pair for part in PARTS for pair in part if pair[0] % 3 == 0]


def test_it_is_fetched_by_ranges(remote):
    assert remote.read() == EXPECTED
    assert remote.server.connections == 1
    assert len(remote.server.ranges) == 2


@pytest.mark.parametrize("faults", [["half", "drop"], ["half", "half"], [503], ["whole"]])
def test_what_breaks_off_goes_on_where_it_was(remote, faults):
    remote.server.faults["/1"] = faults
    assert remote.read() == EXPECTED


@pytest.mark.parametrize(
    ("fault", "map_index"), [(404, 1), ("corrupt", 1), ("other", 1), ("drop", -1), (500, -1)]
)
def test_what_cannot_be_had_is_lost(remote, fault, map_index):
    # One that was closed after the last answer is tried at once on another connection.
    remote.server.faults["/1"] = [fault] * 6
    with pytest.raises(FetchFailed) as caught:
        remote.read()
    assert caught.value.fields["map_index"] == map_index


def test_a_server_that_is_gone_loses_all_of_its_host(remote):
    remote.outputs = [replace(each, url="http://127.0.0.1:1/0") for each in remote.outputs]
    with pytest.raises(FetchFailed) as caught:
        remote.read()
    assert caught.value.fields["map_index"] == -1
