"""Spark's allocation file."""

import pytest

from frameworks.rdd import pools
from frameworks.rdd.core.rules import Pool
from frameworks.rdd.ruling import rules_of
from mesos_py.errors import InvalidValue

FILE = """<?xml version="1.0"?>
<allocations>
  <pool name="production">
    <schedulingMode>FAIR</schedulingMode>
    <weight>2</weight>
    <minShare> 3 </minShare>
  </pool>
  <pool name="test"/>
</allocations>
"""


def test_pools_are_read(tmp_path):
    path = tmp_path / "pools.xml"
    path.write_text(FILE)
    made = {"production": Pool(weight=2, min_share=3, fair=True), "test": Pool()}
    assert pools.read(str(path)) == pools.read(f"file://{path}") == made
    conf = {"spark.scheduler.mode": "FAIR", "spark.scheduler.allocation.file": str(path)}
    assert rules_of(conf).pools == made
    assert pools.read("") == {}


def test_jobs_one_after_the_other_have_no_pools():
    assert rules_of({"spark.scheduler.allocation.file": "/no/such/file"}).pools == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<allocations>", "no XML"),
        ("", "no XML"),
        ("<allocations><pool/></allocations>", "has no name"),
        ("<a><pool name='x'/><pool name='x'/></a>", "'x'.*is there twice"),
        ("<a><pool name='x'><weight>0</weight></pool></a>", "'x': weight: .*from 1 on"),
        ("<a><pool name='x'><weight>1.5</weight></pool></a>", "'x': weight"),
        ("<a><pool name='x'><minShare>-1</minShare></pool></a>", "'x': minShare.*from 0 on"),
        ("<a><pool name='x'><minShare></minShare></pool></a>", "'x': minShare"),
        ("<a><pool name='x'><schedulingMode>BEST</schedulingMode></pool></a>", "BEST"),
        (" " * (1 << 20) + "<a/>", "has over"),
    ],
)
def test_a_file_that_is_wrong_says_where(text, words, tmp_path):
    path = tmp_path / "pools.xml"
    path.write_text(text)
    with pytest.raises(InvalidValue, match=words):
        pools.read(str(path))


def test_a_file_that_is_not_there_names_the_property():
    with pytest.raises(InvalidValue, match=r"spark\.scheduler\.allocation\.file.*/no/such"):
        pools.read("/no/such")
