"""Paths of Mesos' clients: which sandbox they mean, and that they lead nowhere else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.api.http_paths import Location
from agent.api.virtual_paths import located, virtual_of
from mesos_py.errors import InvalidValue, MesosPyError, NotFound

WORK_DIR = "/srv/agent"
RUN = "/srv/agent/agents/A1/frameworks/F/executors/e/runs/c1"


def place(path):
    return located(path, WORK_DIR, "A1")


@pytest.mark.parametrize(
    ("path", "location"),
    [
        (RUN, Location("F", "e", "c1", ())),
        (f"{RUN}/", Location("F", "e", "c1", ())),
        (f"{RUN}/stdout", Location("F", "e", "c1", ("stdout",))),
        (f"/{RUN}//sub/./a", Location("F", "e", "c1", ("sub", "a"))),
        (f"{RUN}/sub/../stdout", Location("F", "e", "c1", ("stdout",))),
        (f"{RUN[:-2]}latest/x", Location("F", "e", "latest", ("x",))),
        (f"{virtual_of('F', 'e')}/x", Location("F", "e", "latest", ("x",))),
        (f"{RUN}/.../..x/%2e%2e", Location("F", "e", "c1", ("...", "..x", "%2e%2e"))),
    ],
)
def test_a_path_means_a_place(path, location):
    assert place(path) == location


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/etc/passwd",
        "stdout",
        WORK_DIR,
        RUN[: -len("/c1")],
        RUN.replace("A1", "A2"),
        "/frameworks/F/executors/e/runs",
        "/frameworks/F/executors/e/runs/c1",
        "/frameworks/F/executors/e/runs/latestsub",
        "/frameworks/../executors/e/runs/latest",
        "/frameworks/F/executors/../runs/latest",
        f"{WORK_DIR}/agents/A1/frameworks/F/executors/e/runs/../runs/c1",
        f"{WORK_DIR}/agents/A1/../A1/frameworks/F/executors/e/runs/c1",
        "/frameworks/F\n/executors/e/runs/latest",
    ],
)
def test_what_is_in_no_sandbox_is_not_found(path):
    with pytest.raises(NotFound):
        place(path)


@pytest.mark.parametrize("path", [f"{RUN}/..", f"{RUN}/a/../../b", f"{RUN}/a\0b", "/" + "x" * 9000])
def test_what_leads_out_of_a_sandbox_is_refused(path):
    with pytest.raises(InvalidValue, match="path"):
        place(path)


@given(st.lists(st.sampled_from(["..", ".", "", "a", "latest", "c1", "\0", "é"])))
def test_no_path_leads_upwards(names):
    try:
        found = place("/".join([RUN, *names]))
    except MesosPyError:
        return
    assert not {"..", ".", ""} & set(found.parts)
    assert found[:3] == ("F", "e", "c1")
