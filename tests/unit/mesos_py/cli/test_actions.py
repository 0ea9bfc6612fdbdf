"""logs, kill, teardown, explain, version and completion."""

import pytest

from mesos_py.cli.logs import last_lines_begin
from mesos_py.resources import Resources
from mesos_py.v1 import operator_pb2 as pb
from mesos_py.v1.types_pb2 import TASK_FINISHED, TASK_KILLED, FrameworkID
from tests.unit.mesos_py.cli import fake_master as fake

F0 = f"{fake.CLUSTER}-0000"
F1 = f"{fake.CLUSTER}-0001"


# --- logs ---------------------------------------------------------------------


@pytest.fixture
def written(master):
    """Give a task, which has ended, this stdout."""

    def write(data: bytes, chunk: int = 1 << 16) -> None:
        master.tasks[:] = [fake.task("job-1", state=TASK_FINISHED, name="job")]
        master.files["job-1", "stdout"] = data
        master.files["job-1", "stderr"] = b"to stderr\n"
        master.files["job-1", "notes.txt"] = b"noted\n"
        master.chunk = chunk

    return write


def test_logs_passes_every_byte_on(written, cli):
    data = bytes(range(256)) * 3
    written(data, chunk=100)
    ended = cli("logs", "job")
    assert (ended.code, ended.bytes) == (0, data)


@pytest.mark.parametrize(
    ("args", "out"),
    [
        (["--stderr"], "to stderr\n"),
        (["--file", "notes.txt"], "noted\n"),
        (["--tail", "0"], ""),
        (["--tail", "1"], "four"),
        (["--tail", "2"], "three\nfour"),
        (["--tail", "99"], "one\ntwo\nthree\nfour"),
        (["--bytes", "4"], "four"),
        (["--bytes", "0"], ""),
        (["--bytes", "1KB"], "one\ntwo\nthree\nfour"),
        (["-f"], "one\ntwo\nthree\nfour"),
        (["-f", "--tail", "1"], "four"),
        (["--framework", "f"], "one\ntwo\nthree\nfour"),
    ],
)
def test_logs_shows_the_part_that_is_wanted(master, written, cli, args, out):
    master.frameworks.append(fake.framework(0, "f"))
    written(b"one\ntwo\nthree\nfour", chunk=3)
    ended = cli("logs", "job-1", *args)
    assert (ended.code, ended.out, ended.err) == (0, out, "")


def test_following_is_asked_of_the_agent(master, written, cli):
    written(b"x")
    cli("logs", "job", "-f")
    assert master.reads[-1].follow
    assert not any(read.follow for read in master.reads[:-1])


def test_the_last_lines_of_a_long_log_are_found_without_reading_all_of_it(master, written, cli):
    lines = b"".join(b"line %06d\n" % n for n in range(100_000))
    written(lines)
    ended = cli("logs", "job", "--tail", "3")
    assert ended.out == "line 099997\nline 099998\nline 099999\n"
    assert sum(read.length for read in master.reads) < 200_000


def test_lines_longer_than_the_first_look_are_found(written, cli):
    long = b"x" * 300_000
    written(b"first\n" + long + b"\nlast\n")
    assert cli("logs", "job", "--tail", "2").bytes == long + b"\nlast\n"


@pytest.mark.parametrize(
    ("data", "lines", "at"),
    [
        (b"", 1, None),
        (b"a", 1, None),
        (b"a\n", 1, None),
        (b"a\nb", 1, 2),
        (b"a\nb\n", 1, 2),
        (b"a\n\n", 1, 2),
        (b"a\nb\nc\n", 2, 2),
        (b"a\nb\n", 3, None),
        (b"a\nb", 0, 3),
    ],
)
def test_where_the_last_lines_begin(data, lines, at):
    assert last_lines_begin(data, lines) == at


def test_two_ways_to_say_how_much_are_refused(cli):
    ended = cli("logs", "job", "--tail", "1", "--bytes", "1")
    assert ended.code == 2
    assert ended.err == ("mesos-py: error: --tail: 1: cannot be given together with --bytes\n")


def test_a_task_that_is_not_there_is_a_negative_answer(master, cli):
    ended = cli("logs", "nope")
    assert ended.code == 1
    assert ended.err.startswith("mesos-py: error: task 'nope': ")


def test_an_ambiguous_task_lists_what_it_could_mean(master, cli):
    master.tasks += [fake.task("a-1", name="a"), fake.task("a-2", name="a", state=TASK_KILLED)]
    ended = cli("logs", "a")
    assert ended.code == 1
    assert f"a-1 (RUNNING, framework {F0})" in ended.err
    assert f"a-2 (KILLED, framework {F0})" in ended.err


# --- kill ---------------------------------------------------------------------


def test_kill_names_task_and_framework_in_full(master, cli):
    master.tasks += [fake.task("web-1", framework=1)]
    ended = cli("kill", "web", "--grace", "2s")
    assert (ended.code, ended.out) == (0, "killing task web-1\n")
    order = master.calls[-1]
    assert order.type == pb.Call.KILL_TASK
    assert (order.kill_task.framework_id.value, order.kill_task.task_id.value) == (F1, "web-1")
    assert order.kill_task.kill_policy.grace_period.nanoseconds == 2_000_000_000


def test_kill_means_the_live_task_of_a_name(master, cli):
    master.tasks += [
        fake.task("web-1", name="web", state=TASK_KILLED),
        fake.task("web-2", name="web"),
    ]
    assert cli("kill", "web").out == "killing task web-2\n"


def test_kill_of_a_task_that_has_ended_is_refused(master, cli):
    master.tasks += [fake.task("web-1", state=TASK_KILLED)]
    ended = cli("kill", "web-1")
    assert ended.code == 1
    assert ended.err == "mesos-py: error: task 'web-1' has ended already: KILLED\n"
    assert pb.Call.KILL_TASK not in [call.type for call in master.calls]


# --- teardown -----------------------------------------------------------------


@pytest.mark.parametrize("text", ["one", F0, "0000", F0[:-1]])
def test_teardown_takes_a_name_an_id_and_a_beginning(master, cli, text):
    master.frameworks.append(fake.framework(0, "one"))
    ended = cli("teardown", text)
    assert (ended.code, ended.out) == (0, f"tore down framework {F0} (one)\n")
    assert master.calls[-1].teardown.framework_id.value == F0


def test_teardown_of_one_that_is_gone_is_refused(master, cli):
    master.completed.append(fake.framework(0, "one"))
    ended = cli("teardown", "one")
    assert ended.code == 1
    assert "framework 'one': no framework has this id" in ended.err


def test_teardown_of_an_ambiguous_name_changes_nothing(master, cli):
    master.frameworks += [fake.framework(0, "one"), fake.framework(1, "one")]
    ended = cli("teardown", "one")
    assert ended.code == 1
    assert f"framework 'one' means 2: {F0} (one), {F1} (one)" in ended.err
    assert pb.Call.TEARDOWN not in [call.type for call in master.calls]


def test_a_name_means_the_framework_that_is_there(master, cli):
    master.frameworks.append(fake.framework(1, "one"))
    master.completed.append(fake.framework(0, "one"))
    master.tasks.append(fake.task("t", framework=1))
    assert len(cli("tasks", "--framework", "one", "--json").json) == 1


# --- explain ------------------------------------------------------------------


@pytest.fixture
def explained(master):
    master.frameworks += [fake.framework(0, "one"), fake.framework(1, "two")]
    for number, name in enumerate(("one", "two")):
        each = pb.Response.Explain.Framework(
            framework_id=FrameworkID(value=f"{fake.CLUSTER}-{number:04d}"),
            name=name,
            findings=["needs 100 cpus, largest agent has 2", "second"],
            offers_sent=3,
            last_offer_time=5.0,
        )
        each.refusals.add(
            code="too-small", message="2 cpus", count=7, last_time=6.0, agent_id="M-S0"
        )
        each.requests.add(
            name=f"big-{name}", count=2, resources=Resources.parse("cpus:100").to_proto()
        )
        master.explanations.append(each)
    return master


@pytest.mark.parametrize(
    ("args", "names"),
    [([], ["one", "two"]), (["two"], ["two"]), (["0000"], ["one"]), (["big-two"], ["two"])],
)
def test_explain_answers_for_those_asked_about(explained, cli, args, names):
    assert [row["name"] for row in cli("explain", "--json", *args).json] == names


def test_an_explanation_as_json(explained, cli):
    assert cli("explain", "one", "--json").json == [
        {
            "framework_id": F0,
            "name": "one",
            "findings": ["needs 100 cpus, largest agent has 2", "second"],
            "offers_sent": 3,
            "last_offer": 5.0,
            "refusals": [
                {
                    "code": "too-small",
                    "message": "2 cpus",
                    "count": 7,
                    "last": 6.0,
                    "agent_id": "M-S0",
                }
            ],
            "requests": [
                {"name": "big-one", "count": 2, "agent_id": None, "resources": {"cpus": 100.0}}
            ],
            "standings": [],
        }
    ]


def test_findings_come_first(explained, cli):
    lines = cli("explain", "one").out.splitlines()
    assert lines[0] == f"one ({F0})"
    assert lines[1] == "  * needs 100 cpus, largest agent has 2"
    assert lines[2] == "  * second"
    assert lines[3:5] == ["", "  asked for:"]


def test_a_task_is_explained_by_framework_and_id(explained, cli):
    explained.tasks.append(fake.task("t-1", framework=1))
    cli("explain", "t-1")
    asked = explained.calls[-1].explain
    assert (asked.framework_id.value, asked.task_id.value) == (F1, "t-1")


def test_a_role_is_explained_with_the_order_beside_and_below_it(explained, cli):
    role = pb.Response.Explain.Role(name="web", findings=["role 'web' holds a share of 0.5"])
    role.standings.add(role="web", share=0.5, weight=2, position=1, contenders=3)
    own = role.standings.add(role="web", share=0.25, weight=1)
    own.framework_id.value = F0
    own.held.extend(Resources.parse("cpus:2").to_proto())
    own.lacking.extend(Resources.parse("mem:100").to_proto())
    explained.explained_roles.append(role)
    lines = cli("explain", "--role", "web").out.splitlines()
    assert lines[:2] == ["role web", "  * role 'web' holds a share of 0.5"]
    table = [line.split() for line in lines[4:]]
    assert table[0] == [
        "ROLE",
        "FRAMEWORK",
        "PLACE",
        "SHARE",
        "WEIGHT",
        "HELD",
        "GUARANTEED",
        "LACKS",
    ]
    assert table[1] == ["web", "-", "1/3", "0.500", "2", "-", "-", "-"]
    assert table[2] == ["web", F0, "-", "0.250", "1", "cpus:2", "-", "mem:100"]
    (row,) = cli("explain", "--role", "web", "--json").json
    assert [each["position"] for each in row["standings"]] == [1, None]
    assert row["standings"][1]["lacking"] == {"mem": 100.0}


def test_a_role_and_a_framework_cannot_be_explained_at_once(explained, cli):
    ended = cli("explain", "one", "--role", "web")
    assert ended.code == 2
    assert "not both" in ended.err


def test_what_nobody_knows_cannot_be_explained(explained, cli):
    ended = cli("explain", "nope")
    assert ended.code == 1
    assert ended.err.startswith("mesos-py: error: framework or task 'nope': ")


# --- version ------------------------------------------------------------------


def test_version_needs_no_master(cli, monkeypatch):
    monkeypatch.setenv("MESOS_PY_MASTER", "127.0.0.1:1")
    assert cli("version").code == 0


def test_the_masters_version_is_asked_for_with_remote(master, cli):
    rows = cli("version", "--remote", "--json").json
    assert [row["component"] for row in rows] == ["mesos-py", "master"]
    assert rows[1]["version"] == "9.9.9"


# --- completion ---------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_a_script_that_calls_us(shell, cli):
    ended = cli("completion", shell)
    assert ended.code == 0
    assert "_MESOS_PY_COMPLETE" in ended.out
    assert "mesos-py" in ended.out


def test_an_unknown_shell_is_bad_input(cli):
    assert cli("completion", "tcsh").code == 2


@pytest.fixture
def completed(cli, monkeypatch, capfdbinary):
    """The words that bash would offer for the last of these."""

    def complete(*words: str) -> list[str]:
        from mesos_py.cli import main

        monkeypatch.setenv("_MESOS_PY_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", " ".join(("mesos-py", *words)))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        with pytest.raises(SystemExit) as ended:
            main.run([])
        assert ended.value.code == 0
        out = capfdbinary.readouterr()
        assert out.err == b""
        lines = out.out.decode().splitlines()
        return [line.partition(",")[2] for line in lines if line]

    return complete


def test_commands_are_completed(completed):
    assert completed("ta") == ["tasks"]


def test_tasks_and_frameworks_are_completed_from_the_master(master, completed):
    master.frameworks.append(fake.framework(0, "one"))
    master.tasks += [fake.task("t-live"), fake.task("t-dead", state=TASK_KILLED)]
    assert completed("logs", "t-") == ["t-dead", "t-live"]
    assert completed("kill", "t-") == ["t-live"]
    assert completed("teardown", "o") == ["one"]
    assert completed("tasks", "--framework", "1") == [F0]
    assert completed("explain", "t-") == ["t-live"]


def test_without_a_master_nothing_is_offered_and_nothing_is_said(completed, monkeypatch):
    monkeypatch.setenv("MESOS_PY_MASTER", "127.0.0.1:1")
    assert completed("logs", "t") == []


def test_an_address_that_is_none_does_not_disturb_completion(completed, monkeypatch):
    monkeypatch.setenv("MESOS_PY_MASTER", "nonsense")
    assert completed("kill", "t") == []
