import pytest

from frameworks.rdd import properties
from mesos_py.errors import InvalidValue


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1g", 1 << 30),
        ("512m", 512 << 20),
        ("65536kb", 64 << 20),
        ("300", 300 << 20),
        ("70 MB", 70 << 20),
    ],
)
def test_memory_is_given_as_for_spark(text, size):
    conf = {"spark.executor.memory": text}
    assert properties.EXECUTOR_MEMORY.of(conf) == size


@pytest.mark.parametrize("text", ["", "much", "-1g", "1.5g", "1x", "63m"])
def test_what_is_no_memory_is_refused_by_name_and_value(text):
    with pytest.raises(InvalidValue, match=r"spark\.executor\.memory") as caught:
        properties.EXECUTOR_MEMORY.of({"spark.executor.memory": text})
    assert caught.value.fields["value"] == text


@pytest.mark.parametrize("each", properties.ALL, ids=lambda each: each.name)
def test_defaults_are_values_that_may_be_given(each):
    text = each.kind.show(each.default)
    assert each.of({each.name: text}) == each.default
    assert each.of({}) == each.default
    assert each.help


def test_the_environment_of_executors_is_taken_by_its_prefix():
    conf = {"spark.executorEnv.A": "1", "spark.executorEnv.": "x", "spark.app.name": "n"}
    assert properties.executor_environment(conf) == {"A": "1"}
