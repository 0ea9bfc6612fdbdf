"""Apache's command: what agents fetch, and a shell that is no surprise to a shell."""

import subprocess

import pytest

from frameworks.webfarm.core.server import (
    LINGER_S,
    PORT_IN_USE,
    Apache,
    listen_at,
    run_until_told,
    site_uris,
)
from mesos_py.errors import InvalidValue
from tests.kit.waiting import until


@pytest.mark.parametrize(
    ("site", "name"),
    [
        ("https://host/site.tar.gz", ".served.tar.gz"),
        ("https://host/site.tgz?version=2", ".served.tgz"),
        ("file:///srv/site.zip", ".served.zip"),
        ("/srv/my site.tar", ".served.tar"),
        ("https://host/site.tar.xz#sha256=" + "0" * 64, ".served.tar.xz"),
    ],
)
def test_an_archive_is_fetched_and_out_of_the_way(site, name):
    (fetched,) = site_uris(site)
    assert fetched.value == site
    assert fetched.output_file == name
    assert fetched.extract is not False
    assert not fetched.cache


@pytest.mark.parametrize("site", ["", "/srv/site/", "file:///srv/site/"])
def test_a_directory_is_used_where_it_is(site):
    assert site_uris(site) == []


@pytest.mark.parametrize("site", ["https://host/page.html", "/srv/site", "https://host/.tar.gz/x"])
def test_what_is_neither_is_refused_by_its_text(site):
    with pytest.raises(InvalidValue) as caught:
        Apache().command("127.0.0.1", 80, site)
    assert caught.value.value == site


def test_it_listens_where_the_agent_and_the_balancer_ask():
    assert listen_at("127.0.0.1", 8000) == "127.0.0.1:8000"
    assert listen_at("10.0.0.7", 8000) == "8000"
    assert listen_at("fe80::1", 8000) == "8000"


@pytest.mark.parametrize("site", ["", "/srv/it's here/", "https://host/site.tar.gz"])
def test_the_command_is_one_that_a_shell_reads(site):
    command, _ = Apache(finish_s=7).command("10.0.0.7", 31000, site)
    subprocess.run(["sh", "-n"], input=command, text=True, check=True)
    assert "Listen 31000\n" in command
    assert "GracefulShutdownTimeout 7\n" in command
    # One request for each connection, as the balancer wants it.
    assert "KeepAlive Off\n" in command


def unpacked(tmp_path, command):
    """Run what prepares the site; where it then is."""
    prepared = command.partition("types=$PWD")[2].partition("}\n")[2].partition("cat >")[0]
    script = f'{prepared}\nprintf %s "$site"'
    ended = subprocess.run(["sh", "-ec", script], cwd=tmp_path, text=True, capture_output=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_what_an_archive_held_is_served_and_the_task_s_own_files_are_not(tmp_path):
    for name in ("stdout", "stderr", "index.html", ".served.tar.gz"):
        (tmp_path / name).touch()
    (tmp_path / "images").mkdir()
    command, _ = Apache().command("10.0.0.7", 80, "https://host/site.tar.gz")
    assert unpacked(tmp_path, command) == f"{tmp_path}/.served"
    assert {each.name for each in (tmp_path / ".served").iterdir()} == {"index.html", "images"}


def test_an_archive_of_one_directory_is_that_directory(tmp_path):
    (tmp_path / "stderr").touch()
    (tmp_path / "site-2").mkdir()
    (tmp_path / "site-2/index.html").touch()
    command, _ = Apache().command("10.0.0.7", 80, "https://host/site.tar.gz")
    assert unpacked(tmp_path, command) == f"{tmp_path}/.served/site-2"


def test_without_a_site_it_brings_a_page(tmp_path):
    command, uris = Apache().command("10.0.0.7", 80, "")
    assert uris == []
    site = unpacked(tmp_path, command)
    assert "no site yet" in (tmp_path / ".served/index.html").read_text()
    assert site == f"{tmp_path}/.served"


def test_a_directory_is_named_as_it_is(tmp_path):
    for site in ("/srv/it's here/", "file:///srv/it's here/"):
        command, _ = Apache().command("10.0.0.7", 80, site)
        assert unpacked(tmp_path, command) == "/srv/it's here"


def test_the_agent_asks_often_and_is_patient_at_the_start():
    check = Apache(check_path="/ok", check_s=2).health(31000)
    assert check.http.port == 31000
    assert check.http.path == "/ok"
    assert check.interval_seconds == 2
    assert check.grace_period_seconds == 30


def run(tmp_path, start):
    """As an agent does: what it says goes into a file of its directory."""
    with (tmp_path / "stderr").open("w") as errors:
        script = ["sh", "-c", run_until_told(start)]
        return subprocess.run(script, cwd=tmp_path, stderr=errors, check=False).returncode


def test_a_port_that_is_in_use_has_a_code_of_its_own(tmp_path):
    said = "sh -c 'echo bind: Address already in use >&2; exit {}'"
    assert run(tmp_path, said.format(1)) == PORT_IN_USE
    assert run(tmp_path, said.format(0)) == 0
    assert run(tmp_path, "sh -c 'exit 7'") == 7


def test_it_serves_on_for_a_while_when_it_is_told_to_end(tmp_path):
    script = run_until_told(
        "sh -c 'trap \"exit 5\" USR1; touch up; while :; do sleep 0.01; done'", "USR1"
    )
    # As if the while were over at once; what was slept is written down.
    (tmp_path / "sleep").write_text('#!/bin/sh\n[ "$1" = 0.01 ] || echo "$1" >> slept\n')
    (tmp_path / "sleep").chmod(0o755)
    path = f"{tmp_path}:/usr/bin:/bin"
    process = subprocess.Popen(["sh", "-c", script], cwd=tmp_path, env={"PATH": path})
    until((tmp_path / "up").exists)
    process.terminate()
    assert process.wait(30) == 5
    assert (tmp_path / "slept").read_text() == f"{LINGER_S:g}\n"
