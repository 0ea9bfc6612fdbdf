"""The context's life, its settings, and the names of masters."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from frameworks.rdd import SparkConf, SparkContext, masters
from frameworks.rdd.masters import Local
from frameworks.rdd.sparkfiles import SparkFiles
from mesos_py.errors import Conflict, InvalidValue
from tests.kit.rdd.plain import PlainRunner


@pytest.mark.parametrize(
    ("name", "means"),
    [
        ("local", Local(1)),
        ("local[3]", Local(3)),
        ("local[3, 4]", Local(3, 4)),
        ("local[*]", Local(len(os.sched_getaffinity(0)))),
        ("127.0.0.1:5050", None),
        ("zk://h:1/x", None),
    ],
)
def test_names_of_masters(name, means):
    assert masters.local(name) == means


@pytest.mark.parametrize("name", ["local[]", "local[0]", "local[1,0]", "local[-1]", "locally"])
def test_bad_names_of_masters(name):
    with pytest.raises(InvalidValue, match="master"):
        SparkContext(name)
    assert SparkContext.active() is None


def test_a_context_ends_and_another_may_begin():
    runner = PlainRunner()
    with SparkContext("local", "first", runner=runner) as first:
        assert SparkContext.getOrCreate() is first
        with pytest.raises(ValueError, match=r"app=first, master=local\) created by .* at test_"):
            SparkContext("local", "second", runner=PlainRunner())
    assert runner.stopped
    first.stop()
    for use in (lambda: first.parallelize([1]), lambda: first.broadcast(1), first.cancelAllJobs):
        with pytest.raises(Conflict, match="stopped"):
            use()
    with SparkContext("local", runner=PlainRunner()) as second:
        assert second.parallelize([1]).count() == 1


class SlowRunner(PlainRunner):
    """Ends when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.stopping = threading.Event()
        self.may_end = threading.Event()

    def stop(self) -> None:
        self.stopping.set()
        assert self.may_end.wait(60)
        super().stop()


class PlainContext(SparkContext):
    def __init__(self, conf: SparkConf | None = None) -> None:
        super().__init__("local", conf=conf, runner=PlainRunner())


def test_who_wants_a_context_while_one_stops_gets_another():
    """It got that one, which is of no use."""
    runner = SlowRunner()
    first = SparkContext("local", "first", runner=runner)
    found: list[tuple[SparkContext, bool]] = []
    ends: list[bool] = []

    def stops_too() -> None:
        first.stop()
        ends.append(runner.stopped)

    def wants_one() -> None:
        found.append((PlainContext.getOrCreate(), runner.stopped))

    threads = [threading.Thread(target=work) for work in (first.stop, stops_too, wants_one)]
    threads[0].start()
    assert runner.stopping.wait(60)
    assert SparkContext.active() is None
    with pytest.raises(ValueError, match="app=first"):
        PlainContext()
    for thread in threads[1:]:
        thread.start()
    runner.may_end.set()
    for thread in threads:
        thread.join()
    assert ends == [True]
    ((second, after_the_end),) = found
    assert second is not first
    assert after_the_end
    with second:
        assert second.parallelize([1]).count() == 1


def test_a_context_that_is_stopped_within_its_stop_does_not_wait_for_itself():
    """By a handler of signals, which runs anywhere in the main thread."""

    class Interrupted(PlainRunner):
        def stop(self) -> None:
            context.stop()
            with pytest.raises(Conflict, match="this thread is just stopping"):
                PlainContext.getOrCreate()
            super().stop()

    runner = Interrupted()
    context = SparkContext("local", runner=runner)
    context.stop()
    assert runner.stopped


def test_settings_of_a_context(monkeypatch):
    conf = SparkConf(False).setMaster("local[7]").setAppName("given")
    with SparkContext(appName="named", environment={"A": 1}, conf=conf, runner=PlainRunner()) as sc:
        assert (sc.master, sc.appName, sc.sparkHome) == ("local[7]", "named", None)
        assert sc.getConf().get("spark.executorEnv.A") == "1"
        assert conf.get("spark.app.name") == "given"
        sc.getConf().set("spark.app.name", "changed")
        assert sc.getConf().get("spark.app.name") == "named"
        sc.conf.set("spark.default.parallelism", 5)
        assert sc.parallelize([]).getNumPartitions() == sc.defaultParallelism == 5
        assert sc.parallelize([(1, 1)], 2).groupByKey().getNumPartitions() == 5
        with pytest.raises(InvalidValue, match="there is no JVM"):
            sc.setSystemProperty("a", "b")


def test_what_a_context_is_to_add_and_cannot_leaves_no_context(tmp_path):
    runner = PlainRunner()
    with pytest.raises(InvalidValue, match="no such file"):
        SparkContext("local", pyFiles=[str(tmp_path / "no.py")], runner=runner)
    assert runner.stopped
    assert SparkContext.active() is None


def test_conf():
    conf = SparkConf(loadDefaults=False)
    assert conf.set("a", 1).setIfMissing("a", 2).setIfMissing("b", True) is conf
    assert conf.setAll([("c", "x")]).setSparkHome("/path").contains("c")
    conf.setExecutorEnv("V1", "1").setExecutorEnv(pairs=[("V2", "2"), ("V3", "3")])
    assert (conf.get("a"), conf.get("b"), conf.get("z"), conf.get("z", "d")) == (
        "1", "True", None, "d",
    )  # fmt: skip
    assert conf.toDebugString().splitlines() == [
        "a=1", "b=True", "c=x", "spark.executorEnv.V1=1", "spark.executorEnv.V2=2",
        "spark.executorEnv.V3=3", "spark.home=/path",
    ]  # fmt: skip
    assert ("c", "x") in conf.getAll()
    with pytest.raises(ValueError, match="Either pass one"):
        conf.setExecutorEnv("a", "b", pairs=[])
    with pytest.raises(ValueError, match="Either pass one"):
        conf.setExecutorEnv()
    with pytest.raises(InvalidValue, match="must be a whole number"):
        conf.number("c", 1)
    with pytest.raises(InvalidValue, match="must be 2 or more"):
        conf.number("a", 1, 2)


def test_a_conf_starts_with_what_the_program_was_submitted_with(monkeypatch):
    monkeypatch.setenv("MESOS_PY_RDD_CONF", '{"spark.master": "local[9]"}')
    assert SparkConf().get("spark.master") == "local[9]"
    assert SparkConf(False).get("spark.master") is None
    with SparkContext(runner=PlainRunner()) as sc:
        assert sc.master == "local[9]"


PROGRAM = """
import os, sys
from frameworks.rdd import SparkContext
from tests.kit.rdd.plain import PlainRunner
sc = SparkContext("local", runner=PlainRunner())
sc.addFile(sys.argv[1])
if (pid := os.fork()) == 0:
    sys.exit()
os.waitpid(pid, 0)
assert sc._files.exists()
print(sc._files)
"""


def test_a_program_that_ends_without_stop_leaves_no_files(tmp_path):
    (tmp_path / "x").touch()
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, tmp_path / "x"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=60,
    )
    assert not Path(ran.stdout.strip()).exists()


def test_a_file_that_takes_anothers_name_does_not_change_that_one(tmp_path):
    """Which may be on its way to executors."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    with SparkContext("local", runner=PlainRunner()) as sc:
        sc.addFile(str(tmp_path / "one" / "file"))
        with Path(SparkFiles.get("file")).open() as first:
            sc.addFile(str(tmp_path / "two" / "file"))
            assert Path(SparkFiles.get("file")).read_text() == "two"
            assert first.read() == "one"
