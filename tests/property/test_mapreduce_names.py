"""Whatever the name of an input or output is, it means one thing or is refused."""

import posixpath

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from frameworks.mapreduce.data import files, inputs
from mesos_py.errors import InvalidValue

PARTS = st.sampled_from(
    ["", ".", "..", "...", "a", "%2e%2e", "~", "*", "::", "//", "\\", "é", ".. "]
)
PATHS = st.one_of(st.text(max_size=40), st.lists(PARTS, max_size=8).map("/".join))


@given(PATHS, st.sampled_from(["hdfs:///", "hdfs:/", "HDFS:////"]))
@example("/", "hdfs:/")  # hdfs://: a host, but none is named
def test_the_default_file_system_is_not_left(path, before):
    # hdfs:/ and /name: that is a host.
    assume(before != "hdfs:/" or not path.startswith("/") or path[1:2] in ("", "/"))
    try:
        found = files.absolute(before + path, {"fs.defaultFS": "/srv/root"})
    except InvalidValue:
        return
    local = files.local_path(found)
    assert local is not None
    assert posixpath.normpath(local).startswith("/srv/root")
    assert posixpath.normpath(local) in ("/srv/root", local)


@given(PATHS)
def test_an_absolute_name_stays_what_it_is(path):
    try:
        found = files.absolute("/" + path, {})
    except InvalidValue:
        return
    assert files.absolute(found, {}) == found


@given(st.lists(st.text("ab{},\\*[", max_size=12), max_size=4).map(",".join))
def test_lists_and_alternatives_end(text):
    try:
        parts = inputs.split_list(text)
    except InvalidValue:
        return
    for part in parts:
        for one in inputs.alternatives(part):
            # Nothing is left that could be expanded.
            assert inputs.alternatives(one) == [one]


def test_alternatives_do_not_explode():
    with pytest.raises(InvalidValue):
        inputs.alternatives("{a,b}" * 60)
