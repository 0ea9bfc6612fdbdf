"""Bars on a terminal, the status page, and the rules that properties make."""

from __future__ import annotations

import dataclasses
import io
import json
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from rich.console import Console

from frameworks.rdd.bars import Bars
from frameworks.rdd.core.views import StageView, View
from frameworks.rdd.masters import _bars
from frameworks.rdd.page import Page
from frameworks.rdd.pages import html
from frameworks.rdd.ruling import rules_of
from mesos_py.errors import Conflict, InvalidValue
from tests.kit.rdd_world import World, raised


def busy() -> World:
    """A job with one task done, one failed, and one that runs; another that was cancelled."""
    world = World()
    world.join("a", "<h1>", 2)
    kept = world.mapped(world.source(3))
    kept.place = "map at <script>:1"
    world.persist(kept)
    world.submit(world.shuffled(kept, 2), group="<group>")
    world.finish(*world.running()[0])
    world.finish(*world.running()[0], raised())
    world.cancel(world.submit(world.source(1)))
    return world


def stages(world: World) -> tuple[StageView, ...]:
    return world.core.active_stages()


# ---- Bars ----------------------------------------------------------------------------------


@pytest.fixture
def terminal() -> io.StringIO:
    return io.StringIO()


def bars_on(terminal: io.StringIO) -> Bars:
    return Bars(Console(file=terminal, force_terminal=True, width=120, color_system=None))


def test_each_stage_that_runs_has_a_line_until_it_ends(terminal):
    bars = bars_on(terminal)
    bars.show(())
    assert terminal.getvalue() == ""
    (stage,) = stages(busy())
    bars.show((stage,))
    bars.show((stage, dataclasses.replace(stage, id=9, name="[bold]x", total=0, failed=0)))
    bars.show((stage,))
    bars.show(())
    shown = terminal.getvalue()
    assert "stage 2 map at <script>:1" in shown
    assert "1/3 (+2)" in shown
    assert "1 failed" in shown
    assert "stage 9 [bold]x" in shown


def test_a_program_may_have_closed_its_streams(terminal, monkeypatch):
    monkeypatch.setattr("sys.stdout", None)
    bars = bars_on(terminal)
    bars.show(stages(busy()))
    bars.show(())
    assert "1/3 (+2)" in terminal.getvalue()
    monkeypatch.setattr("sys.stderr", None)
    assert _bars({}) is None


def test_bars_end_with_the_engine_and_when_they_are_stopped(terminal):
    (stage,) = stages(busy())
    asked = threading.Event()

    def give() -> tuple[StageView, ...]:
        if asked.is_set():
            raise Conflict("stopped")
        asked.set()
        return (stage,)

    bars = bars_on(terminal)
    bars.start(give)
    assert asked.wait(30)
    assert bars._thread is not None
    bars._thread.join(30)
    assert not bars._thread.is_alive()
    assert "1/3 (+2)" in terminal.getvalue()
    bars.stop()
    bars.stop()
    never = bars_on(terminal)
    never.stop()


def test_what_was_asked_before_a_job_ended_is_not_shown_after_it(terminal):
    (stage,) = stages(busy())
    asked, go_on, again = threading.Event(), threading.Event(), threading.Event()

    def give() -> tuple[StageView, ...]:
        if asked.is_set():
            again.set()
            return ()
        asked.set()
        go_on.wait(30)
        return (stage,)

    bars = bars_on(terminal)
    bars.start(give)
    assert asked.wait(30)
    bars.job_ended()
    go_on.set()
    assert again.wait(30)
    bars.stop()
    assert terminal.getvalue() == ""


# ---- The page --------------------------------------------------------------------------------


def test_everything_is_on_the_page_and_nothing_of_it_is_markup():
    world = busy()
    shown = html("<title>", world.core.view(2.0))
    for text in (
        "&lt;title&gt;",
        "map at &lt;script&gt;:1",
        "a on &lt;h1&gt;",
        "&lt;group&gt;",
        "RDD 1: map at &lt;script&gt;:1 (kept)",
        "1/3 (+2)",
        "1 failed",
        "was cancelled: test",
        "shuffle 1",
        "8 B",
    ):
        assert text in shown
    for markup in ("<title>title", "<script>", "<h1>:", "<group>"):
        assert markup not in shown


@pytest.fixture
def page() -> Iterator[Page]:
    page = Page("test", "127.0.0.1", 0)
    yield page
    page.stop()


def get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_the_page_is_served_and_its_parts_as_json(page):
    world = busy()
    views = [world.core.view(1.0)]

    def view() -> View:
        if not views:
            raise Conflict("the context was stopped")
        return views[0]

    page.start(view)
    assert page.url is not None
    status, text = get(page.url)
    assert (status, "<h2>Jobs</h2>" in text) == (200, True)
    status, text = get(page.url + "/api")
    assert [each["partition"] for each in json.loads(text)["tasks"]] == [2, 1]
    status, text = get(page.url + "/api/executors")
    assert [each["host"] for each in json.loads(text)] == ["<h1>"]
    status, text = get(page.url + "/api/nothing")
    assert (status, "nothing: there is none such" in text) == (404, True)
    views.clear()
    status, text = get(page.url)
    assert (status, text) == (503, "the context was stopped")
    stops = [threading.Thread(target=page.stop) for _ in range(2)]
    for stop in stops:
        stop.start()
    for stop in stops:
        stop.join()


def test_a_page_that_nobody_calls_ends_too(page):
    page.start(lambda: busy().core.view(0.0))
    page.stop()
    page.stop()
    Page("test", "127.0.0.1", 0).stop()


def test_the_next_port_is_taken_and_without_any_there_is_no_page(page, caplog):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        page._port = port
        page.start(lambda: busy().core.view(0.0))
        assert page.url is None or page.url != f"http://127.0.0.1:{port}"
    nowhere = Page("test", "192.0.2.1", 4040)
    nowhere.start(lambda: busy().core.view(0.0))
    assert nowhere.url is None
    assert "no status page" in caplog.text
    nowhere.stop()


# ---- Rules -----------------------------------------------------------------------------------


def test_properties_make_rules():
    rules = rules_of(
        {
            "spark.task.maxFailures": "7",
            "spark.locality.wait": "0s",
            "spark.scheduler.mode": "FAIR",
            "spark.speculation": "true",
            "spark.excludeOnFailure.enabled": "false",
            "spark.driver.maxResultSize": "2m",
        }
    )
    assert (rules.max_failures, rules.wait_executor_s, rules.wait_host_s) == (7, 0.0, 0.0)
    assert (rules.fair, rules.twins, rules.exclude_failures) == (True, True, 0)
    assert rules.max_result_bytes == 2 << 20
    assert rules_of({}, max_failures=1).max_failures == 1
    with pytest.raises(InvalidValue, match=r"spark\.task\.maxFailures"):
        rules_of({"spark.task.maxFailures": "no"})
