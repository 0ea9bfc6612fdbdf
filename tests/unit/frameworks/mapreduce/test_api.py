"""Jobs as Python code asks for them: what is checked before anything runs."""

import threading
from pathlib import Path

import pytest

from frameworks.mapreduce import api, functions
from frameworks.mapreduce.client import Target, from_environment
from mesos_py.errors import InvalidValue

LOCK = threading.Lock()


def words(line):
    for word in line.split():
        yield word, 1


def total(word, counts):
    yield word, sum(counts)


def uses_lock(line):
    with LOCK:
        yield line, 1


def asked(**more):
    return {"mapper": words, "reducer": total, "inputs": "in", "output": "out", **more}


def made(**more):
    request = asked(**more)
    options = api.options_of(request)
    return options, api.programs_of(request, options)


def refused(**more):
    with pytest.raises(InvalidValue) as caught:
        made(**more)
    return caught.value


def test_functions_are_packed_and_come_back():
    options, programs = made(combiner=total)
    assert options.reduces == 1
    assert list(functions.unpacked(programs.mapper.function)("a b")) == [("a", 1), ("b", 1)]
    assert programs.combiner.function
    assert not programs.mapper.command


def test_commands_and_functions_go_together():
    _, programs = made(mapper="cat", reducer=total)
    assert programs.mapper.command == "cat"
    assert programs.reducer.function


def test_without_a_reducer_there_are_no_reduces():
    options, programs = made(reducer=None, combiner=total)
    assert options.reduces == 0
    assert (programs.combiner, programs.reducer) == (None, None)
    assert options.conf["mapreduce.job.reduces"] == "0"


def test_reduces_without_a_reducer_are_refused():
    assert refused(reducer=None, reduces=3).field == "reduces"


def test_values_of_properties_may_be_numbers_and_booleans():
    options, _ = made(conf={"mapreduce.map.speculative": False, "mapred.reduce.tasks": 4}, name="n")
    assert options.conf["mapreduce.map.speculative"] == "false"
    assert options.reduces == 4
    assert options.conf["mapreduce.job.name"] == "n"


def test_inputs_are_one_or_several_texts_or_paths():
    assert made(inputs="a,b/*")[0].inputs == ["a", "b/*"]
    assert made(inputs=[Path("a"), "b"])[0].inputs == ["a", "b"]
    assert made(inputs=Path("a"))[0].inputs == ["a"]


@pytest.mark.parametrize("name", ["mapper", "inputs", "output"])
def test_what_must_be_given_is_named(name):
    assert refused(**{name: ""}).field == name


def test_an_argument_that_there_is_not_is_refused():
    assert refused(mappper=words).field == "mappper"


@pytest.mark.parametrize("work", [3, ["cat"]])
def test_what_is_neither_function_nor_command_is_refused(work):
    assert refused(mapper=work).field == "mapper"
    assert refused(reducer=work).field == "reducer"


def test_what_cannot_be_sent_is_named_by_its_name_in_the_function():
    lock = threading.Lock()

    def bad(line):
        with lock:
            yield line, 1

    error = refused(mapper=bad)
    assert error.field == "mapper"
    assert "it uses lock" in error.reason


def test_files_have_names_as_in_hadoops_options():
    options, _ = made(files=["a/b.py", "c#d"], archives=["x.zip#x"])
    assert [(each.name, each.archive) for each in options.shipped] == [
        ("b.py", False),
        ("d", False),
        ("x", True),
    ]
    assert refused(files=["a/f", "b/f"]).field == "files"


def test_a_bad_partitioner_is_refused():
    assert refused(partitioner="range").field == "partitioner"


# ---- Where -----------------------------------------------------------------------------------


def test_one_place_at_a_time():
    with pytest.raises(InvalidValue) as caught:
        Target(local=2, master="m:1")
    assert caught.value.field == "local"
    with pytest.raises(InvalidValue):
        Target(local=0)
    with pytest.raises(InvalidValue):
        Target(local=1, state="s")


def test_the_environment_counts_where_nothing_is_given(monkeypatch):
    for name in ("MESOS_PY_MAPREDUCE_LOCAL", "MESOS_PY_MAPREDUCE_TRACKER", "MESOS_PY_MASTER"):
        monkeypatch.delenv(name, raising=False)
    assert from_environment(Target()).master == "127.0.0.1:5050"
    monkeypatch.setenv("MESOS_PY_MASTER", "m:1")
    assert from_environment(Target(state="s")) == Target(master="m:1", state="s")
    monkeypatch.setenv("MESOS_PY_MAPREDUCE_TRACKER", "http://t:1")
    assert from_environment(Target()) == Target(tracker="http://t:1")
    monkeypatch.setenv("MESOS_PY_MAPREDUCE_LOCAL", "3")
    assert from_environment(Target()) == Target(local=3)
    assert from_environment(Target(master="x:1")) == Target(master="x:1")
    monkeypatch.setenv("MESOS_PY_MAPREDUCE_LOCAL", "many")
    with pytest.raises(InvalidValue):
        from_environment(Target())
