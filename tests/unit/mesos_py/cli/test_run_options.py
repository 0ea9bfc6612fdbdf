"""What `run` makes of its command line, and how it prefixes lines."""

import pytest

from mesos_py.cli.run import command, default_name, settings_of, spec_of
from mesos_py.cli.running.job import Job
from mesos_py.cli.running.sink import MAX_LINE, Prefixed
from mesos_py.errors import InvalidValue
from mesos_py.resources import Resources


def parsed(*args: str) -> dict:
    with command.make_context("run", list(args)) as ctx:
        return ctx.params


def spec(*args: str):
    return spec_of(parsed(*args))


def settings(*args: str):
    options = parsed(*args)
    return settings_of("h:1", Job(spec_of(options)), options)


def test_a_single_word_is_for_a_shell():
    made = spec("echo a | wc -c").command
    assert (made.shell, made.value, list(made.arguments)) == (True, "echo a | wc -c", [])


def test_several_words_are_run_as_they_are():
    made = spec("--", "echo", "a  b", "$HOME").command
    assert (made.shell, made.value) == (False, "echo")
    assert list(made.arguments) == ["echo", "a  b", "$HOME"]


def test_options_of_the_command_are_the_commands():
    assert list(spec("ls", "-l", "--cpus", "9").command.arguments) == ["ls", "-l", "--cpus", "9"]


def test_the_shell_can_be_chosen():
    assert spec("--no-shell", "my program").command.arguments == ["my program"]
    assert spec("--shell", "echo", "$X").command.value == "echo $X"


@pytest.mark.parametrize(
    ("words", "shell", "name"),
    [
        (["/usr/bin/sleep", "1"], False, "sleep"),
        (["sleep 1"], True, "sleep"),
        (["A=1 B=2 /bin/env x"], True, "env"),
        (["echo 'unclosed"], True, "echo"),
        (["!!!"], True, "run"),
        (["/"], False, "run"),
    ],
)
def test_the_name_is_the_programs(words, shell, name):
    assert default_name(words, shell=shell) == name


def test_ids_begin_with_a_usable_form_of_the_name():
    made = spec("--name", "my job/7", "true")
    assert made.name == "my job/7"
    assert made.ids.startswith("my_job_7-")


def test_two_runs_have_different_ids():
    assert spec("true").ids != spec("true").ids


def test_amounts():
    made = spec("--cpus", "0.5", "--mem", "64", "--disk", "10", "--ports", "2", "true")
    assert made.each == Resources.parse("cpus:0.5;mem:64;disk:10")
    assert made.ports == 2


def test_an_amount_of_zero_is_none():
    assert spec("--cpus", "0", "true").each == Resources.parse("mem:128")


@pytest.mark.parametrize("value", ["-1", "nan", "inf", "0.0001", "1e300"])
def test_an_impossible_amount_names_its_option(value):
    with pytest.raises(InvalidValue, match=r"^--cpus: "):
        spec("--cpus", value, "true")


def test_nothing_at_all_is_too_little():
    with pytest.raises(InvalidValue, match="needs something"):
        spec("--cpus", "0", "--mem", "0", "true")


def test_variables(monkeypatch):
    monkeypatch.setenv("MINE", "from here")
    variables = spec("-e", "A=1=2", "--env", "B=", "-e", "MINE", "x").command.environment.variables
    assert [(v.name, v.value) for v in variables] == [
        ("A", "1=2"),
        ("B", ""),
        ("MINE", "from here"),
    ]


@pytest.mark.parametrize("item", ["", "=x", "1A=x", "A B=x", "NOT_SET_HERE"])
def test_a_variable_that_cannot_be_is_named(item):
    with pytest.raises(InvalidValue, match=r"^--env: "):
        spec("--env", item, "true")


def test_uris():
    first, second = spec(
        "--uri", "http://h/a.tgz", "--uri", "/t as=bin/t executable cache keep", "x"
    ).command.uris
    assert (first.value, first.extract, first.executable, first.cache) == (
        "http://h/a.tgz",
        True,
        False,
        False,
    )
    assert (second.value, second.extract, second.executable, second.cache, second.output_file) == (
        "/t",
        False,
        True,
        True,
        "bin/t",
    )


@pytest.mark.parametrize("text", ["", " ", "http://h/a unknown", "http://h/a as="])
def test_a_uri_that_cannot_be_is_named(text):
    with pytest.raises(InvalidValue, match=r"^--uri: "):
        spec("--uri", text, "true")


@pytest.mark.parametrize("args", [["--role", "a b"], ["--host", ""]])
def test_a_role_or_host_that_cannot_be_is_refused_here(args):
    with pytest.raises(InvalidValue, match=rf"^{args[0]}: "):
        settings(*args, "true")


def test_lines_are_prefixed_if_there_are_several():
    assert not settings("true").prefix
    assert settings("-n", "2", "true").prefix
    assert not settings("-n", "2", "--no-prefix", "true").prefix
    assert settings("--prefix", "true").prefix


def test_gpus_bring_the_capability_without_which_none_are_offered():
    assert len(settings("--gpus", "1", "true").framework.capabilities) == 1
    assert len(settings("true").framework.capabilities) == 0


def test_an_image_makes_a_container():
    made = spec(
        "--image", "i:1", "--volume", "/a:/b:ro", "--network", "bridge", "--pull", "--", "ls", "-l"
    )
    container = made.container
    assert (container.docker.image, container.docker.network) == ("i:1", 2)
    assert container.docker.force_pull_image
    assert (container.volumes[0].host_path, container.volumes[0].container_path) == ("/a", "/b")
    # For docker the program is not among its own arguments.
    assert (made.command.value, list(made.command.arguments)) == ("ls", ["-l"])
    limited = spec("--image", "i", "--rlimit", "nofile=5", "true").container
    assert limited.rlimit_info.rlimits[0].soft == 5
    assert spec("true").container is None


@pytest.mark.parametrize(
    ("args", "option"),
    [
        (("--volume", "/a:/b"), "--volume"),
        (("--network", "host"), "--network"),
        (("--pull",), "--pull"),
        (("--image", ""), "--image"),
        (("--image", "i", "--own-network"), "--own-network"),
        (("--image", "i", "--volume", "/a"), "--volume"),
    ],
)
def test_options_of_containers_that_make_no_sense_are_named(args, option):
    with pytest.raises(InvalidValue) as caught:
        spec(*args, "true")
    assert caught.value.field == option


@pytest.mark.parametrize("count", ["0", "-1", "10001", "many"])
def test_an_impossible_number_of_instances_is_bad_input(count, cli):
    ended = cli("run", "-n", count, "true")
    assert ended.code == 2
    assert "--instances" in ended.err


def test_no_master_is_said_at_once(cli, monkeypatch):
    monkeypatch.setenv("MESOS_PY_MASTER", "127.0.0.1:1")
    ended = cli("run", "true")
    assert ended.code == 3
    assert ended.err == "mesos-py: error: cannot reach 127.0.0.1:1: Connection refused\n"


def test_a_health_check_in_its_options():
    times = ["--health-delay", "1s", "--health-interval", "500ms", "--health-timeout", "2s"]
    more = ["--health-grace", "1m", "--health-failures", "5"]
    health = spec("--health-cmd", "test -f up", *times, *more, "true").health
    assert health is not None
    assert health.command.value == "test -f up"
    assert (health.delay_seconds, health.interval_seconds) == (1, 0.5)
    assert (health.timeout_seconds, health.grace_period_seconds) == (2, 60)
    assert health.consecutive_failures == 5
    assert spec("true").health is None


@pytest.mark.parametrize(
    ("args", "option"),
    [
        (["--health-cmd", ""], "--health-cmd"),
        (["--health-delay", "1s"], "--health-delay"),
        (["--health-failures", "2"], "--health-failures"),
    ],
)
def test_a_health_check_that_cannot_be_names_its_option(args, option):
    with pytest.raises(InvalidValue, match=rf"^{option}: "):
        spec(*args, "true")


# --- prefixes -----------------------------------------------------------------


def test_each_line_gets_its_prefix_however_it_arrives():
    lines = Prefixed(b"a | ")
    assert lines.lines(b"on") == b""
    assert lines.lines(b"e\ntwo\nth") == b"a | one\na | two\n"
    assert lines.lines(b"ree\n") == b"a | three\n"
    assert lines.end() == b""


def test_a_last_line_without_an_end_gets_one():
    lines = Prefixed(b"a | ")
    lines.lines(b"x\ny")
    assert lines.end() == b"a | y\n"
    assert lines.end() == b""


def test_a_line_without_end_does_not_fill_the_memory():
    lines = Prefixed(b"a | ")
    assert lines.lines(b"x" * (MAX_LINE + 1)) == b"a | " + b"x" * (MAX_LINE + 1) + b"\n"


def test_without_limits_and_network_there_is_no_container():
    assert spec("true").container is None


def test_limits_and_a_network_make_a_container():
    container = spec("--rlimit", "nofile=1:2", "--rlimit", "core=unlimited", "true").container
    assert [(each.soft, each.hard) for each in container.rlimit_info.rlimits] == [(1, 2), (0, 0)]
    assert not container.network_infos
    assert spec("--own-network", "true").container.network_infos[0].name == "mesos-py"


@pytest.mark.parametrize("text", ["nofile", "files=1", "nofile=2:1", "nofile=x"])
def test_a_wrong_limit_is_refused_by_its_option(text):
    with pytest.raises(InvalidValue) as caught:
        spec("--rlimit", text, "true")
    assert caught.value.field == "--rlimit"
