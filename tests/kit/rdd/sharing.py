"""What is documented of broadcasts, accumulators, task contexts, files for tasks and jobs."""

import functools
import tarfile
import threading
import zipfile
from pathlib import Path

import pytest

from frameworks.rdd import AccumulatorParam, InheritableThread, SparkFiles, TaskContext
from frameworks.rdd.errors import JobFailed, NotPicklable
from mesos_py.errors import InvalidValue


class Vectors(AccumulatorParam[list[float]]):
    def zero(self, value):
        return [0.0] * len(value)

    def addInPlace(self, value1, value2):
        for i, each in enumerate(value2):
            value1[i] += each
        return value1


class Sets(AccumulatorParam[set[int]]):
    def zero(self, value):
        return set()

    def addInPlace(self, value1, value2):
        return value1 | value2


class SharingContract:
    # ---- Broadcasts ------------------------------------------------------------------------

    def test_broadcasts(self, sc):
        shared = sc.broadcast([1, 2, 3])
        assert shared.value == [1, 2, 3]
        assert sc.parallelize([0, 0]).flatMap(lambda x: shared.value).collect() == [1, 2, 3] * 2
        shared.unpersist()
        assert sc.parallelize([5]).map(lambda x: sum(shared.value)).collect() == [6]
        assert repr(shared).startswith("Broadcast<")
        shared.destroy()
        shared.destroy()
        with pytest.raises(RuntimeError, match="destroyed"):
            _ = shared.value
        with pytest.raises(NotPicklable, match="destroyed"):
            sc.parallelize([0]).map(lambda x: shared.value).collect()

    # ---- Accumulators ----------------------------------------------------------------------

    def test_accumulators(self, sc):
        count, total = sc.accumulator(1), sc.accumulator(0.5)

        def add(x):
            nonlocal count
            count += 1
            total.add(x)

        sc.parallelize([1, 2, 3], 2).foreach(add)
        assert (count.value, total.value) == (4, 6.5)
        count += 2
        assert count.value == 6
        count.value = 10
        assert count.value == 10
        assert sc.accumulator(1j).value == 1j
        with pytest.raises(TypeError, match="No default accumulator param"):
            sc.accumulator([])

    def test_accumulators_of_other_types(self, sc):
        vector = sc.accumulator([1.0, 2.0], Vectors())
        found = sc.accumulator(set(), Sets())
        sc.parallelize([1, 2, 3], 3).foreach(lambda x: (vector.add([x, 0]), found.add({x})))
        assert (vector.value, found.value) == ([7.0, 2.0], {1, 2, 3})

    def test_accumulators_of_classes_that_only_the_program_has(self, sc):
        class Amount:
            def __init__(self, number):
                self.number = number

        class Amounts(AccumulatorParam[Amount]):
            def zero(self, value):
                return Amount(0)

            def addInPlace(self, value1, value2):
                return Amount(value1.number + value2.number)

        total = sc.accumulator(Amount(1), Amounts())
        sc.parallelize([1, 2, 3], 3).foreach(lambda x: total.add(Amount(x)))
        assert total.value.number == 7

    def test_tasks_do_not_read_accumulators(self, sc):
        total = sc.accumulator(0)
        with pytest.raises(JobFailed, match="cannot be accessed inside tasks"):
            sc.parallelize([1]).map(lambda x: total.value).collect()

    # ---- What does not go into tasks ---------------------------------------------------------

    def test_a_data_set_or_the_context_in_a_task_is_refused_with_a_lesson(self, sc):
        other = sc.parallelize([1])
        for function in (lambda x: other.count(), lambda x: other.filter(lambda y: y == x)):
            with pytest.raises(NotPicklable, match=r"only the driver|driver only"):
                sc.parallelize([1]).map(function).collect()
        with pytest.raises(NotPicklable, match=r"only the driver|driver only"):
            sc.parallelize([1]).map(lambda x: sc.appName).collect()
        with pytest.raises(NotPicklable):
            sc.broadcast(other)

    def test_what_cannot_be_pickled_is_named(self, sc):
        lock = threading.Lock()
        with pytest.raises(NotPicklable, match="lock"):
            sc.parallelize([1]).map(lambda x: lock.locked()).collect()
        with pytest.raises(NotPicklable, match=r"element .*lock"):
            sc.parallelize([1, lock])

    # ---- Tasks -----------------------------------------------------------------------------

    def test_the_task_context(self, sc):
        assert TaskContext.get() is None
        sc.setLocalProperty("color", "blue")
        sc.setLocalProperty("gone", "x")
        sc.setLocalProperty("gone", None)

        def seen(_):
            context = TaskContext.get()
            assert context is not None
            yield (
                context.partitionId(),
                context.attemptNumber(),
                context.getLocalProperty("color"),
                context.getLocalProperty("gone"),
                context.taskAttemptId(),
                context.stageId() >= 0,
                context.cpus(),
                context.resources(),
            )

        rows = sc.parallelize(range(3), 3).mapPartitions(seen).collect()
        assert [row[:4] for row in rows] == [(i, 0, "blue", None) for i in range(3)]
        assert len({row[4] for row in rows}) == 3
        assert all(row[5:] == (True, 1, {}) for row in rows)
        assert sc.getLocalProperty("color") == "blue"
        sc.setLocalProperty("color", None)
        assert sc.getLocalProperty("color") is None

    def test_files(self, sc, tmp_path):
        (tmp_path / "factor.txt").write_text("100")
        (tmp_path / "a_module_of_the_users.py").write_text("def twice(x):\n    return 2 * x\n")
        sc.addFile(str(tmp_path / "factor.txt"))
        sc.addFile(str(tmp_path / "factor.txt"))
        sc.addPyFile(str(tmp_path / "a_module_of_the_users.py"))

        def scaled(x):
            import a_module_of_the_users  # type: ignore[import-not-found]

            with open(SparkFiles.get("factor.txt")) as file:  # noqa: PTH123
                return a_module_of_the_users.twice(x) * int(file.read())

        assert sc.parallelize([1, 2]).map(scaled).collect() == [200, 400]
        assert sc.listFiles[-2:] == [
            f"file:{tmp_path}/factor.txt", f"file:{tmp_path}/a_module_of_the_users.py",
        ]  # fmt: skip
        (tmp_path / "deep").mkdir()
        (tmp_path / "deep" / "factor.txt").write_text("7")
        sc.addFile(str(tmp_path / "deep" / "factor.txt"))
        assert Path(SparkFiles.get("factor.txt")).read_text() == "7"
        assert sc.parallelize([1]).map(scaled).collect() == [14]
        for bad in ("no-such-file", str(tmp_path)):
            with pytest.raises(InvalidValue, match="path"):
                sc.addFile(bad)

    def test_archives(self, sc, tmp_path):
        (tmp_path / "value.txt").write_text("100")
        with zipfile.ZipFile(tmp_path / "one.zip", "w") as archive:
            archive.write(tmp_path / "value.txt", "value.txt")
        with tarfile.open(tmp_path / "two.tar.gz", "w:gz") as tar:
            tar.add(tmp_path / "value.txt", "deep/value.txt")
        sc.addArchive(str(tmp_path / "one.zip"))
        sc.addArchive(str(tmp_path / "one.zip"))
        sc.addArchive(f"{tmp_path}/two.tar.gz#other")
        assert sc.listArchives[-2:] == [
            f"file:{tmp_path}/one.zip", f"file:{tmp_path}/two.tar.gz#other",
        ]  # fmt: skip

        def scaled(x):
            one = Path(SparkFiles.get("one.zip")) / "value.txt"
            two = Path(SparkFiles.get("other")) / "deep" / "value.txt"
            return x * int(one.read_text()) * int(two.read_text())

        assert sc.parallelize(range(4), 4).map(scaled).sum() == 60_000
        assert Path(SparkFiles.get("one.zip")).is_dir()
        for bad in (str(tmp_path / "value.txt"), str(tmp_path), "no.zip"):
            with pytest.raises(InvalidValue, match="path"):
                sc.addArchive(bad)

    # ---- Jobs ------------------------------------------------------------------------------

    def test_groups_and_their_state(self, sc, tmp_path):
        group = str(tmp_path)
        sc.setJobGroup(group, "why")
        assert sc.parallelize([1, 2], 2).count() == 2
        tracker = sc.statusTracker()
        (number,) = tracker.getJobIdsForGroup(group)
        info = tracker.getJobInfo(number)
        assert (info.jobId, info.status) == (number, "SUCCEEDED")
        assert tracker.getActiveJobsIds() == tracker.getActiveStageIds() == []
        assert tracker.getJobInfo(10**9) is tracker.getStageInfo(10**9) is None
        sc.cancelJobGroup(group)
        sc.cancelAllJobs()
        sc.setJobDescription(None)
        sc.setLocalProperty("spark.jobGroup.id", None)
        assert sc.parallelize([1, 2], 2).reduce(functools.partial(max)) == 2
        assert len(tracker.getJobIdsForGroup(group)) == 1

    def test_tags(self, sc):
        sc.addJobTag("one")
        sc.addJobTag("two")
        sc.removeJobTag("one")
        sc.removeJobTag("none")
        assert sc.getJobTags() == {"two"}
        sc.cancelJobsWithTag("two")
        sc.clearJobTags()
        assert sc.getJobTags() == set()
        for bad in ("", "a,b"):
            with pytest.raises(ValueError, match="tag"):
                sc.addJobTag(bad)

    def test_threads_can_inherit_what_was_set(self, sc):
        seen = {}

        def look(name):
            seen[name] = sc.getLocalProperty("color")

        sc.setLocalProperty("color", "blue")
        threads = [
            InheritableThread(target=look, args=("heir",)),
            threading.Thread(target=look, args=("other",)),
        ]
        for each in threads:
            each.start()
            each.join()
        sc.setLocalProperty("color", None)
        assert seen == {"heir": "blue", "other": None}

    def test_what_is_known_of_a_context(self, sc):
        assert sc.version
        assert sc.applicationId
        assert sc.getConf().get("spark.app.name") == sc.appName == "tests"
        assert sc.sparkUser()
        assert "tests" in repr(sc)
        sc.setLogLevel("WARN")
        with pytest.raises(InvalidValue, match="logLevel"):
            sc.setLogLevel("LOUD")
