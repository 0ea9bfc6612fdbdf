"""The numbers of a master that may or may not lead."""

from types import SimpleNamespace

from prometheus_client.parser import text_string_to_metric_families

from master.api.numbers import Numbers
from mesos_py.metrics import rendered
from tests.kit.core import World


def samples(numbers):
    text = rendered(numbers.families()).decode()
    families = text_string_to_metric_families(text)
    return {sample.name: sample.value for family in families for sample in family.samples}


def test_a_master_that_does_not_lead_tells_of_itself():
    led = SimpleNamespace(elections=2, doubts=3, registrar=None, shell=None, epoch=0)
    assert samples(Numbers(led)) == {
        "mesos_py_master_leading": 0,
        "mesos_py_master_epoch": 0,
        "mesos_py_master_elections_total": 2,
        "mesos_py_master_doubts_total": 3,
    }
    told = {metric.name: metric.value for metric in Numbers(led).local()}
    assert told["master/elections"] == 2


def test_a_leader_tells_of_its_leadership_and_of_the_registry_as_well():
    certainty = SimpleNamespace(held=5)
    shell = SimpleNamespace(core=World().core, failures=1, certainty=certainty)
    figures = SimpleNamespace(batches=4, operations=9, bytes=100, seconds=0.5, last_seconds=0.125)
    registrar = SimpleNamespace(figures=figures, waiting=2)
    led = SimpleNamespace(elections=1, doubts=0, registrar=registrar, shell=shell, epoch=7)
    found = samples(Numbers(led))
    assert found["mesos_py_master_leading"] == 1
    assert found["mesos_py_master_epoch"] == 7
    assert found["mesos_py_master_step_failures"] == 1
    assert found["mesos_py_master_held_total"] == 5
    assert found["mesos_py_master_registry_waiting"] == 2
    assert found["mesos_py_master_registry_operations_total"] == 9
