"""Properties of jobs: types, defaults, older names, and what is refused."""

import pytest

from frameworks.mapreduce import conf
from mesos_py.errors import InvalidValue


def test_every_property_has_a_default_that_it_takes_itself():
    for each in conf.ALL.values():
        assert each.of({}) == each.default
        assert each.help.endswith(".")
        text = str(each.default)
        if text:
            given = text.lower() if isinstance(each.default, bool) else text
            assert each.of({each.name: given}) == each.default


def test_older_names_lead_to_the_present_ones_and_to_one_each():
    assert conf.OLD["mapred.reduce.tasks"] == "mapreduce.job.reduces"
    assert not set(conf.OLD) & set(conf.ALL)
    assert set(conf.OLD.values()) <= set(conf.ALL)
    assert sum(len(each.old) for each in conf.ALL.values()) == len(conf.OLD)


def test_what_is_given_is_kept_by_its_present_name():
    given = {"mapred.reduce.tasks": "3", "my.own": "x", "mapreduce.job.name": "n"}
    found = conf.normalised(given)
    assert found == {"mapreduce.job.reduces": "3", "my.own": "x", "mapreduce.job.name": "n"}
    assert conf.REDUCES.of(found) == 3


def test_both_names_may_be_given_if_they_agree():
    both = {"mapred.reduce.tasks": "3", "mapreduce.job.reduces": "3"}
    assert conf.normalised(both) == {"mapreduce.job.reduces": "3"}
    with pytest.raises(InvalidValue, match=r"contradicts mapred|contradicts mapreduce"):
        conf.normalised({"mapred.reduce.tasks": "3", "mapreduce.job.reduces": "4"})


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("mapreduce.job.reduces", "-1", "a whole number from 0 to 30000"),
        ("mapreduce.job.reduces", "30001", "a whole number from 0 to 30000"),
        ("mapreduce.job.reduces", "1.5", "a whole number"),
        ("mapreduce.job.reduces", "²", "a whole number"),
        ("mapreduce.job.reduces", "", "a whole number"),
        ("mapreduce.map.cpu.vcores", "nan", "a number from 0.01"),
        ("mapreduce.map.cpu.vcores", "inf", "a number from 0.01"),
        ("mapreduce.map.cpu.vcores", "one", "a number from 0.01"),
        ("mapreduce.map.speculative", "yes", "true or false"),
        ("mapreduce.job.priority", "hihg", "did you mean high?"),
        ("mapred.reduce.tasks", "many", "a whole number"),
    ],
)
def test_a_wrong_value_is_named_with_its_property(name, text, why):
    with pytest.raises(InvalidValue, match=conf.OLD.get(name, name)) as caught:
        conf.normalised({name: text})
    assert caught.value.value == text
    assert why in caught.value.message


def test_words_and_flags_are_taken_in_any_case():
    assert conf.PRIORITY.of({"mapreduce.job.priority": "HIGH"}) == "high"
    assert conf.MAP_SPECULATIVE.of({"mapreduce.map.speculative": "False"}) is False
