"""Of several attempts at a partition one counts; on file systems of any kind."""

import uuid

import fsspec
import pytest

from frameworks.rdd import SparkContext
from frameworks.rdd.errors import JobFailed
from mesos_py.errors import AlreadyExists
from tests.kit.rdd.plain import PlainRunner


class Twins(PlainRunner):
    """Runs each task twice; the first attempt's result counts, or the second's."""

    def __init__(self, counts: int) -> None:
        super().__init__()
        self.counts = counts

    def _task(self, blob, job, split, stage):
        return [super(Twins, self)._task(blob, job, split, stage) for _ in range(2)][self.counts]


@pytest.mark.parametrize("counts", [0, 1])
def test_of_twins_one_is_put_in_place(tmp_path, counts):
    out = tmp_path / "out"
    with SparkContext("local", runner=Twins(counts)) as sc:
        sc.parallelize(range(4), 2).saveAsTextFile(str(out))
    assert sorted(each.name for each in out.iterdir()) == ["_SUCCESS", "part-00000", "part-00001"]
    assert [(out / f"part-0000{i}").read_text() for i in range(2)] == ["0\n1\n", "2\n3\n"]


def test_an_attempt_that_is_late_finds_no_place(tmp_path):
    class Late(PlainRunner):
        blobs: list = []  # noqa: RUF012

        def _task(self, blob, job, split, stage):
            self.blobs.append((blob, job, split, stage))
            return super()._task(blob, job, split, stage)

    out = tmp_path / "out"
    runner = Late()
    with SparkContext("local", runner=runner) as sc:
        sc.parallelize(["x"], 1).saveAsTextFile(str(out))
        with pytest.raises(JobFailed, match="FileNotFoundError"):
            PlainRunner._task(runner, *runner.blobs[0])
    assert sorted(each.name for each in out.iterdir()) == ["_SUCCESS", "part-00000"]


def test_a_file_system_without_directories():
    out = f"memory://{uuid.uuid4().hex}/out"
    fs = fsspec.filesystem("memory")
    with SparkContext("local", runner=PlainRunner()) as sc:
        sc.parallelize(range(10), 3).saveAsTextFile(out)
        assert sc.textFile(out).map(int).collect() == list(range(10))
        assert sc.wholeTextFiles(f"{out}/part-0000[12]").keys().map(len).count() == 2
        assert not fs.exists(f"{out}/_temporary")
        with pytest.raises(AlreadyExists):
            sc.parallelize([1]).saveAsPickleFile(out)
        sc.setCheckpointDir(f"{out}-checkpoints")
        numbers = sc.parallelize(range(10), 3).map(str)
        numbers.checkpoint()
        numbers.count()
        assert str(numbers.getCheckpointFile()).startswith("memory://")
        assert numbers.collect() == list("0123456789")
    fs.rm(out.rsplit("/", 1)[0], recursive=True)
