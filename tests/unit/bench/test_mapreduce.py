"""`bench/mapreduce`: its text, its figures, and that a wrong result is no result."""

import os
import subprocess
import sys

import pytest

from bench.mapreduce import contenders, corpus, locality, pipelines, throughput
from bench.mapreduce.contenders import Contender, Stage
from bench.mapreduce.corpus import Corpus
from bench.mapreduce.meter import adopting, metered
from bench.processes import BenchFailed, Processes


@pytest.fixture
def sources(tmp_path, monkeypatch):
    """Two texts, the first without a newline at its end."""
    paths = [tmp_path / "one", tmp_path / "two"]
    paths[0].write_bytes(b"a line\nand another")
    paths[1].write_bytes(b"\xff\n\nx\n")
    monkeypatch.setattr(corpus, "_sources", lambda: iter(paths))
    return b"a line\nand another\n\xff\n\nx\n"


@pytest.fixture
def stage(tmp_path):
    (tmp_path / "scratch").mkdir()
    return Stage(Processes(tmp_path), Corpus((), 0, 0, ""), 2, 10.0)


@pytest.mark.parametrize("files", [1, 3])
def test_the_text_is_its_sources_over_and_over_cut_between_lines(tmp_path, sources, files):
    found = corpus.write(tmp_path / "text", 1000, files)
    texts = [path.read_bytes() for path in found.files]
    assert b"".join(texts) == (sources * 1000)[: found.size]
    assert 1000 - files * len(b"and another\n") < found.size <= 1000
    assert all(text.endswith(b"\n") for text in texts)


def test_a_machine_without_text_is_told_so(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus, "_sources", lambda: iter(()))
    with pytest.raises(BenchFailed, match="no text"):
        corpus.write(tmp_path / "text", 1000, 1)


def result(stage, **parts):
    out = stage.running.directory / "out"
    out.mkdir()
    for name, text in parts.items():
        (out / name.replace("_", "-")).write_bytes(text)
    wanted = stage.running.directory / "wanted"
    wanted.write_bytes(b"a\t1\nb\t2\nc\t3\n")
    return out, wanted


ORDERED = Contender("one", lambda out: {})
UNORDERED = Contender("one", lambda out: {}, in_order=False)


def test_parts_that_together_are_the_result_are_right(stage):
    out, wanted = result(stage, part_0=b"a\t1\nc\t3\n", part_1=b"b\t2\n")
    contenders.check(ORDERED, out, wanted, stage)


def test_who_promises_no_order_needs_none(stage):
    out, wanted = result(stage, part_0=b"c\t3\na\t1\n", part_1=b"b\t2\n")
    contenders.check(UNORDERED, out, wanted, stage)
    with pytest.raises(BenchFailed, match="differ"):
        contenders.check(ORDERED, out, wanted, stage)


@pytest.mark.parametrize(
    "part", [b"a\t1\nb\t2\n", b"a\t1\nb\t2\nc\t4\n", b"a\t1\nb\t2\nc\t3\nc\t3\n"]
)
def test_a_line_too_few_too_many_or_other_fails(stage, part):
    out, wanted = result(stage, part_0=part)
    with pytest.raises(BenchFailed, match="cmp"):
        contenders.check(ORDERED, out, wanted, stage)


def test_a_pipeline_says_what_each_program_has_used(tmp_path):
    busy = [sys.executable, "-S", "-c", "import time\nwhile time.process_time() < 0.2: pass"]
    used = pipelines.run([["echo", "a"], busy, ["cat"]], tmp_path / "out", tmp_path / "log")
    assert used[1] >= 0.2 > max(used[0], used[2])


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_pipeline_fails_with_any_of_its_programs(tmp_path, at):
    stages = [["echo", "a"], ["cat"], ["cat"]]
    stages[at] = ["sh", "-c", "cat; echo because >&2; exit 3"]
    with pytest.raises(BenchFailed, match="ended with 3:\nbecause"):
        pipelines.run(stages, tmp_path / "out", tmp_path / "log")


def test_the_time_of_a_process_whose_parent_has_ended_counts():
    burn = "import time\nwhile time.process_time() < 0.3: pass"
    script = f'"{sys.executable}" -S -c "$0" >/dev/null & echo $!'
    with adopting():
        with metered() as took:
            shell = subprocess.run(["sh", "-c", script, burn], stdout=subprocess.PIPE, check=True)
            os.waitid(os.P_PID, int(shell.stdout), os.WEXITED | os.WNOWAIT)
        assert took.cpu_s >= 0.2  # the kernel counts in ticks
        assert took.wall_s > 0


def test_what_the_cluster_costs_is_compared_round_by_round():
    def job(text):
        return Contender(text, lambda out: {})

    compete = {
        "sort": [job("floor"), job("ours, no cluster"), job("ours, cluster")],
        "count": [
            job("floor"),
            job("ours, no cluster"),
            job("ours, cluster"),
            job("ours, no cluster, with combiner"),
            job("ours, cluster, with combiner"),
            job("peer"),
        ],
    }
    pairs = throughput.pairs(compete)
    assert [pair[0] for pair in pairs] == ["sort", "count", "count"]
    found = {
        "sort": {
            "ours, no cluster": throughput.Runs(wall_s=[10.0, 20.0, 10.0]),
            "ours, cluster": throughput.Runs(wall_s=[11.0, 20.0, 12.0]),
        }
    }
    (spread,) = throughput.overheads(found, pairs[:1]).values()
    assert (spread.low, spread.median, spread.high) == pytest.approx((0, 10, 20))


def test_what_the_cluster_costs_can_be_had_without_peers(stage):
    everybody = throughput.workloads(stage, "127.0.0.1:5050", slow_once=True)
    kept = throughput.without_peers(everybody)
    assert throughput.pairs(kept) == throughput.pairs(everybody)
    names = {workload: [one.name for one in each] for workload, each in kept.items()}
    assert {each[0] for each in names.values()} == {
        "LC_ALL=C sort",
        "cat | mapper | sort | reducer",
    }
    assert all(name.startswith("ours, ") for each in names.values() for name in each[1:])


def test_locality_is_that_of_the_round_in_the_middle():
    rounds = [locality.Round(here=here, elsewhere=10 - here) for here in (9, 2, 7)]
    assert locality.percent({locality.setting(1.0): rounds}, 1.0) == 70.0
