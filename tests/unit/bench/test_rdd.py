"""`bench/rdd`: its points and records, its figures, and that a wrong result is no result."""

import hashlib
import json
import sys

import numpy as np
import pytest

from bench.processes import BenchFailed, Processes
from bench.rdd import contenders, logistic, points, shuffles, tasks
from bench.rdd.contenders import Contender, Runs, Stage
from bench.rdd.programs import gradient, records


def test_the_points_are_the_same_on_every_machine(tmp_path):
    text = points.write(tmp_path / "points", 100_000, 3)
    data = b"".join(path.read_bytes() for path in sorted(text.directory.iterdir()))
    assert (len(data), data.count(b"\n"), text.files) == (text.size, text.points, 3)
    assert data == points.lines(0, text.points)
    assert hashlib.sha256(data).hexdigest().startswith("6307dea391f78adc")


def test_few_bytes_are_a_point_for_each_file(tmp_path):
    text = points.write(tmp_path / "points", 1, 4)
    sizes = [path.stat().st_size for path in text.directory.iterdir()]
    assert sizes == [points.LINE] * 4


def test_a_block_has_a_row_for_each_point():
    block = gradient.block_of_text(points.lines(10, 15))
    assert block.shape == (5, gradient.FEATURES + 1)
    assert set(block[:, 0]) <= {-1.0, 1.0}
    assert np.all(np.abs(block[:, 1:]) < 1)
    (same,) = gradient.blocks(iter(points.lines(10, 15).decode().splitlines()))
    assert np.array_equal(same, block)


def test_the_gradient_is_that_of_the_loss():
    block = gradient.block_of_text(points.lines(0, 50))
    weights = np.linspace(-1, 1, gradient.FEATURES)

    def loss(weights):
        return np.sum(np.log1p(np.exp(-block[:, 0] * (block[:, 1:] @ weights))))

    *found, count = gradient.part(block, weights)
    assert count == 50
    for at, slope in enumerate(found):
        little = np.zeros(gradient.FEATURES)
        little[at] = 1e-6
        assert slope == pytest.approx((loss(weights + little) - loss(weights - little)) / 2e-6)


def test_the_parts_of_a_set_of_points_add_up():
    weights = np.ones(gradient.FEATURES)
    whole = gradient.part(gradient.block_of_text(points.lines(0, 70)), weights)
    first = gradient.part(gradient.block_of_text(points.lines(0, 30)), weights)
    second = gradient.part(gradient.block_of_text(points.lines(30, 70)), weights)
    assert first + second == pytest.approx(whole)
    assert gradient.step(weights, whole) == pytest.approx(weights - gradient.RATE * whole[:-1] / 70)


def test_records_are_all_there_whatever_the_parts():
    whole = records.summary([records.told(records.of_part(0, 1, 100))])
    parts = [records.told(records.of_part(part, 3, 100)) for part in range(3)]
    assert records.summary(parts) == whole
    keys = [key for part in range(3) for key, _ in records.of_part(part, 3, 100)]
    assert whole == {"count": 100, "keys": sum(keys) % 2**64, "ordered": False}
    assert len(set(keys)) == 100
    assert all(len(value) == records.VALUE for _, value in records.of_part(0, 1, 100))


def test_each_key_of_pairs_comes_as_often():
    keys = [key for part in range(3) for key, _ in records.pairs_of_part(part, 3, 100, 10)]
    assert sorted(set(keys)) == list(range(10))
    assert records.summary([records.told_of_sums([(1, 5), (2, 6)])])["count"] == 11


@pytest.mark.parametrize(
    ("parts", "ordered"),
    [
        ([[1, 2], [], [2, 3]], True),
        ([[1, 3], [2]], False),
        ([[2, 1]], False),
        ([[0, 0]], True),
        ([], True),
    ],
)
def test_order_is_within_parts_and_between_them(parts, ordered):
    told = [records.told((key, b"") for key in part) for part in parts]
    assert records.summary(told)["ordered"] is ordered


@pytest.mark.parametrize("weights", [[1.0, 2.0 + 2e-9], [float("nan"), 2.0]])
def test_other_weights_are_no_result(weights):
    one = Contender("one", [])
    logistic.check(one, [1.0, 2.0 + 5e-10], [1.0, 2.0])
    with pytest.raises(BenchFailed, match="one finds"):
        logistic.check(one, weights, [1.0, 2.0])


@pytest.mark.parametrize(
    ("what", "bad"),
    [
        (shuffles.PARTITION, {"count": 2}),
        (shuffles.REDUCE, {"keys": 4}),
        (shuffles.SORT, {"ordered": False}),
    ],
)
def test_other_records_are_no_result(what, bad):
    wanted = {"count": 3, "keys": 5, "ordered": True}
    shuffles.check(what, Contender("one", []), wanted, wanted)
    with pytest.raises(BenchFailed, match="one has"):
        shuffles.check(what, Contender("one", []), {**wanted, **bad}, wanted)


def test_order_matters_where_it_was_asked_for_only():
    wanted = {"count": 3, "keys": 5, "ordered": False}
    shuffles.check(shuffles.REDUCE, Contender("one", []), {**wanted, "ordered": True}, wanted)


@pytest.fixture
def stage(tmp_path):
    return Stage(Processes(tmp_path), 2, None, quick=False, within_s=20.0)


def test_a_program_is_measured_from_its_start_and_from_when_its_engine_was_there(stage):
    script = "import json, sys; json.dump({'laps_s': [1.5], 'x': 1}, open(sys.argv[2], 'w'))"
    runs = Runs()
    found = contenders.run(stage, Contender("one", [sys.executable, "-c", script]), runs)
    assert found == {"laps_s": [1.5], "x": 1}
    assert runs.after(1).median == 1.5
    assert len(runs.whole_s) == len(runs.cpu_s) == 1


def test_a_program_that_measures_nothing_fails(stage):
    script = "import sys; open(sys.argv[2], 'w').write('{\"laps_s\": []}')"
    with pytest.raises(BenchFailed, match="nothing"):
        contenders.run(stage, Contender("one", [sys.executable, "-c", script]), Runs())


def test_who_is_not_there_takes_no_part(stage, tmp_path):
    assert [one.name for one in tasks.contenders(stage, tasks.Load(5, 1))] == [
        "plain Python, a pool",
        "ours",
        "Dask, processes",
    ]
    python = tmp_path / "python"
    beside = Stage(stage.running, 2, python, quick=False, within_s=1.0)
    compete = tasks.contenders(beside, tasks.Load(5, 1))
    assert [one.argv[0] for one in compete if one.name == "PySpark"] == [str(python)]
    alone = Stage(stage.running, 2, python, quick=True, within_s=1.0)
    assert len(tasks.contenders(alone, tasks.Load(5, 1))) == 2


def test_ours_and_pyspark_run_the_same_program(stage, tmp_path):
    beside = Stage(stage.running, 2, tmp_path / "python", quick=False, within_s=1.0)
    each = shuffles.contenders(beside, shuffles.Load(10, 2))[shuffles.SORT]
    ours, theirs = (list(one.argv[1:]) for one in each[1:3])
    engines = [argv.pop(argv.index("--engine") + 1) for argv in (ours, theirs)]
    assert engines == ["frameworks.rdd", "pyspark"]
    assert ours == theirs


def test_a_task_costs_what_a_lap_took():
    runs = Runs(laps_s=[[2.0, 3.0, 6.0]])
    spread = tasks.each_ms(runs, 1000)
    assert (spread.low, spread.median, spread.high) == (1.0, 2.0, 3.0)


def test_the_gain_is_that_on_a_cluster_if_both_were_measured_there():
    load = logistic.Load(1, 2, 1)
    assert load.marks == [1, 2]
    found = {logistic.CACHED: Runs(laps_s=[[1.0, 2.0]])}
    assert logistic.gain(found, load) is None
    found[logistic.MAPREDUCE] = Runs(laps_s=[[9.0, 18.0]])
    assert logistic.gain(found, load) == 9.0
    found[logistic.MAPREDUCE_CLUSTER] = Runs(laps_s=[[12.0, 24.0]])
    assert logistic.gain(found, load) == 9.0
    found[logistic.CACHED_CLUSTER] = Runs(laps_s=[[2.0, 4.0]])
    assert logistic.gain(found, load) == 6.0
    assert json.dumps(logistic.details(found))
