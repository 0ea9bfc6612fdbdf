"""The shuffle, from a real file server that does what such servers do."""

import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from frameworks.mapreduce.data import codecs, runs
from frameworks.mapreduce.data.keys import Keys
from frameworks.mapreduce.data.mapout import MapOutput as MapFile
from frameworks.mapreduce.data.partitions import Partitioner
from frameworks.mapreduce.data.shuffle import Shuffle
from frameworks.mapreduce.job import JobSpec, Program
from frameworks.mapreduce.messages import MapOutput, Maps
from mesos_py.errors import InvalidValue, Unavailable
from tests.kit.map_server import MapServer

PARTITION = 1
LARGE = 10**8
SMALL = 3000


def in_order(line: Any) -> tuple[bytes, bytes]:
    return Keys().key(line), line


class Job:
    """Maps that have run, and a tracker that knows of them."""

    def __init__(self, directory: Path, server: MapServer, codec: str = "") -> None:
        self.server = server
        self.directory = directory
        self.codec = codecs.named("codec", codec) if codec else None
        conf = {"mapreduce.map.output.compress": "true" if codec else "false"}
        conf["mapreduce.map.output.compress.codec"] = codec or "zstd"
        self.spec = JobSpec(
            job_id="job_20261128141500_0001",
            name="",
            user="",
            inputs=(),
            output="",
            mapper=Program(command="cat"),
            reduces=3,
            conf=conf,
        )
        self.outputs: list[MapOutput] = []
        self.due: list[bytes] = []
        self.lost: list[tuple[str, ...]] = []
        self.asked: list[int] = []
        self.at_once = 1000
        self.shuffle: Any = None

    def map(self, number: int, lines: int = 200, attempt: int = 0) -> MapOutput:
        """Run it, put it onto the server, tell the tracker."""
        dice = random.Random(number)
        given = [b"%d\t%d\n" % (dice.randrange(1000), number) for _ in range(lines)]
        name = f"m{number}_{attempt}"
        path = self.directory / name
        file = MapFile(path, self.spec, LARGE, self.directory)
        file.add(b"".join(given))
        segments = file.finish()
        self.server.files[f"/{name}"] = path.read_bytes()
        path.unlink()
        if not attempt:
            divided = Partitioner.of(self.spec).divide(b"".join(given))
            self.due += divided[PARTITION].splitlines(keepends=True)
        output = MapOutput(
            map=number,
            attempt=name,
            agent_id="a",
            url=self.server.url(f"/{name}"),
            path=str(path),
            segment=segments[PARTITION],
        )
        self.outputs.append(output)
        return output

    def ask(self, since: int) -> None:
        self.asked.append(since)
        outputs = tuple(self.outputs[since : since + self.at_once])
        self.shuffle.offer(Maps("r", since, outputs))

    def report(self, attempts: tuple[str, ...], why: str) -> None:
        assert why
        self.lost.append(attempts)

    def made(self, spills: Path, memory: int, maps: int, **given: Any) -> Shuffle:
        quick: dict[str, Any] = {"dice": random.Random(1), "retry_s": 0.01, "ask_s": 0.01}
        found = Shuffle(Keys(), memory, spills, 3, maps, self.ask, **(quick | given))
        self.shuffle = found
        return found

    def run(self, maps: int, memory: int = LARGE, **given) -> bytes:
        spills = self.directory / "spills"
        spills.mkdir(exist_ok=True)
        options = {"lost": self.report, "codec": self.codec, **given}
        self.shuffle = self.made(spills, memory, maps, **options)
        found = b"".join(self.shuffle.run())
        assert not list(spills.iterdir())
        assert self.shuffle.progress == 1.0
        return found

    @property
    def expected(self) -> bytes:
        return b"".join(sorted(self.due, key=in_order))


@pytest.fixture
def server() -> Iterator[MapServer]:
    with MapServer() as found:
        yield found


@pytest.fixture
def job(tmp_path: Path, server: MapServer) -> Job:
    return Job(tmp_path, server)


@pytest.mark.parametrize("memory", [SMALL, LARGE])
@pytest.mark.parametrize("codec", ["", "gzip", "bzip2", "zstd"])
def test_all_lines_come_in_order(tmp_path, server, memory, codec):
    job = Job(tmp_path, server, codec)
    for number in range(20):
        job.map(number)
    assert job.run(20, memory) == job.expected
    assert not job.lost
    assert job.shuffle.fetched_bytes == sum(output.segment.length for output in job.outputs)


def test_many_small_ones_are_gathered_in_memory(job):
    for number in range(60):
        job.map(number, lines=10)
    assert job.run(60, 20_000) == job.expected
    assert job.shuffle.spilled_records > 0


def test_connections_are_kept(job, server):
    for number in range(50):
        job.map(number, lines=5)
    assert job.run(50) == job.expected
    assert server.connections <= 3


def test_no_maps_no_lines(job):
    assert job.run(0) == b""


def test_empty_segments_are_not_fetched(job, server):
    job.map(0, lines=0)
    job.map(1, lines=0)
    assert job.run(2) == b""
    assert not server.requests


@pytest.mark.parametrize("memory", [SMALL, LARGE])
@pytest.mark.parametrize(
    "fault", ["drop", "half", "corrupt", "short", "whole", "other", "stall", 500, 503]
)
def test_a_fault_now_and_then_is_got_over(job, server, memory, fault):
    for number in range(5):
        job.map(number)
    server.faults["/m3_0"] = [fault, fault]
    assert job.run(5, memory, timeout_s=0.2) == job.expected
    assert not job.lost


def test_what_broke_off_is_gone_on_with(job, server):
    output = job.map(0)
    server.faults["/m0_0"] = ["half"]
    assert job.run(1, SMALL) == job.expected
    segment = output.segment
    end = segment.offset + segment.length - 1
    middle = segment.offset + segment.length // 2
    assert server.ranges == [f"bytes={segment.offset}-{end}", f"bytes={middle}-{end}"]


@pytest.mark.parametrize("memory", [SMALL, LARGE])
@pytest.mark.parametrize("status", [404, 410])
def test_what_is_gone_is_reported_and_replaced(job, server, memory, status):
    job.map(0)
    job.map(1)
    server.faults["/m1_0"] = [status] * 1000
    replaced: list[MapOutput] = []

    def report(attempts, why):
        assert str(status) in why
        job.report(attempts, why)
        if not replaced:
            replaced.append(job.map(1, attempt=1))

    assert job.run(2, memory, lost=report) == job.expected
    assert set(job.lost) == {("m1_0",)}


def test_what_stays_damaged_is_reported_and_replaced(job, server):
    job.map(0)
    server.faults["/m0_0"] = ["corrupt"] * 1000

    def report(attempts, why):
        assert "checksum" in why
        job.report(attempts, why)
        if len(job.outputs) == 1:
            job.map(0, attempt=1)

    assert job.run(1, lost=report) == job.expected
    assert server.requests["/m0_0"] >= 4


def test_a_report_is_repeated_and_an_output_that_comes_back_is_taken(job, server):
    job.map(0)
    server.faults["/m0_0"] = [404, 404, 404]
    assert job.run(1) == job.expected
    assert job.lost == [("m0_0",)] * 3


def test_all_outputs_of_a_host_that_is_down_are_reported(job, server):
    for number in range(6):
        job.map(number)
    with MapServer() as gone:
        dead = gone.url("")
    job.outputs[:4] = [
        replace(output, url=f"{dead}/{output.attempt}") for output in job.outputs[:4]
    ]

    def report(attempts, why):
        job.report(attempts, why)
        if len(job.outputs) == 6:
            for number in range(4):
                job.map(number, attempt=1)

    assert job.run(6, lost=report) == job.expected
    assert job.lost[0] == ("m0_0", "m1_0", "m2_0", "m3_0")


def test_a_file_in_its_place_is_read_there(job, server):
    for number in range(4):
        output = job.map(number)
        Path(output.path).write_bytes(server.files.pop(f"/m{number}_0"))
    assert job.run(4, SMALL) == job.expected
    assert not server.requests
    assert job.shuffle.local_bytes == sum(output.segment.length for output in job.outputs)


@pytest.mark.parametrize("memory", [SMALL, LARGE])
def test_another_file_in_its_place_is_not_taken_for_it(job, server, memory):
    output = job.map(0)
    Path(output.path).write_bytes(bytes(len(server.files["/m0_0"])))
    assert job.run(1, memory) == job.expected
    assert server.requests["/m0_0"] == 1
    assert not job.lost


def test_entries_come_in_portions_late_and_twice(job):
    for number in range(9):
        job.map(number)
    answer = job.ask

    def ask(since):
        job.shuffle.offer(Maps("r", 0, tuple(job.outputs[:3])))
        job.shuffle.offer(Maps("r", since + 5, tuple(job.outputs[since + 5 :])))
        answer(since)

    job.at_once = 2
    job.ask = ask
    assert job.run(9) == job.expected
    assert job.asked == sorted(set(job.asked))


def test_a_map_that_ran_twice_counts_once(job):
    for number in range(5):
        job.map(number)
        job.map(number, attempt=1)
    assert job.run(5) == job.expected


def test_an_entry_of_an_unknown_map_is_refused(job):
    job.map(0)
    job.map(7)
    with pytest.raises(InvalidValue, match="1 maps"):
        job.run(1)


def test_no_space_is_no_fault_of_a_map(job, tmp_path):
    job.map(0)
    missing = tmp_path / "missing"
    shuffle = job.made(missing, SMALL, 1, lost=job.report)
    with pytest.raises(FileNotFoundError):
        list(shuffle.run())
    assert not job.lost


def test_closing_breaks_off_what_stalls(job, server, tmp_path):
    job.map(0)
    server.faults["/m0_0"] = ["stall"]
    shuffle = job.made(tmp_path, SMALL, 1, lost=job.report)
    raised = []

    def run():
        try:
            list(shuffle.run())
        except Unavailable as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    assert server.stalled.wait(30)
    shuffle.close()
    thread.join(30)
    assert not thread.is_alive()
    assert raised
    assert not list(tmp_path.iterdir())


def test_who_closes_second_waits_for_who_closes_first(job, server, tmp_path, monkeypatch):
    """Else the second removes what the threads of the first are still at."""
    job.map(0)
    server.faults["/m0_0"] = ["stall"]
    shuffle = job.made(tmp_path, SMALL, 1, lost=job.report)
    removing, go_on = threading.Event(), threading.Event()
    remove = runs.remove

    def slowly(paths):
        removing.set()
        assert go_on.wait(30)
        remove(paths)

    monkeypatch.setattr(runs, "remove", slowly)
    raised = []

    def run():
        try:
            list(shuffle.run())
        except Unavailable as error:
            raised.append(error)

    running = threading.Thread(target=run)
    running.start()
    assert server.stalled.wait(30)
    closing = threading.Thread(target=shuffle.close)
    closing.start()
    assert removing.wait(30)
    # One of the two is removing; the other may not be, and neither may have ended.
    monkeypatch.setattr(runs, "remove", remove)
    running.join(0.05)
    closing.join(0.05)
    assert running.is_alive()
    assert closing.is_alive()
    go_on.set()
    running.join(30)
    closing.join(30)
    assert raised
    assert not list(tmp_path.iterdir())


def test_a_reader_may_stop_early(job, tmp_path):
    for number in range(3):
        job.map(number)
    shuffle = job.made(tmp_path, SMALL, 3, lost=job.report)
    blocks = shuffle.run()
    assert next(blocks)
    blocks.close()
    assert not list(tmp_path.iterdir())
