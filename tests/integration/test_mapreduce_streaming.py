"""Programs as the streaming contract has it, run by real attempts, without a cluster."""

from __future__ import annotations

import gzip
import random
import subprocess
import sys
import zipfile

import pytest

from frameworks.mapreduce.job import Shipped
from mesos_py.errors import AlreadyExists, NotFound
from tests.kit.mapreduce_local import Jobs, counter

WORDS = "to be or not to be\nthat is the question\n" * 50
PY = sys.executable


@pytest.fixture
def jobs(tmp_path):
    return Jobs(tmp_path)


def licence_text():
    return "".join(f"word{n % 97} other{n % 13} \\n \t {n}\n" for n in range(5000))


# ---- Whole jobs, against pipelines ---------------------------------------------------------


def test_word_count_is_what_a_pipeline_gives(jobs):
    text = licence_text()
    outcome = jobs.run(
        text,
        "tr -s ' ' '\\n'",
        "uniq -c",
        conf={"mapreduce.input.fileinputformat.split.maxsize": "20000"},
    )
    assert outcome.failure is None
    assert outcome.maps > 3
    assert jobs.parts == [jobs.shell("tr -s ' ' '\\n' | sort | uniq -c", "in-1.txt")]
    assert (jobs.output / "_SUCCESS").read_bytes() == b""
    assert sorted(path.name for path in jobs.output.iterdir()) == ["_SUCCESS", "part-00000"]
    assert list((jobs.directory / "between").iterdir()) == []


def test_parts_of_many_reduces_are_together_what_one_gives(jobs):
    script = jobs.script(
        "sum.py",
        "#!/usr/bin/env python3\n"
        "import sys, itertools\n"
        "pairs = (line.rstrip('\\n').split('\\t') for line in sys.stdin)\n"
        "for key, group in itertools.groupby(pairs, lambda pair: pair[0]):\n"
        "    print(key, sum(int(count) for _, count in group), sep='\\t')\n",
    )
    mapper = "awk '{for (i = 1; i <= NF; i++) print $i \"\\t1\"}'"
    split = {"mapreduce.input.fileinputformat.split.maxsize": "30000"}
    jobs.run(licence_text(), mapper, "sum.py", shipped=(script,), reduces=5, conf=split)
    parts = jobs.parts
    assert len(parts) == 5
    assert all(part.splitlines() == sorted(part.splitlines()) for part in parts)
    expected = jobs.shell(f"{mapper} | sort | {PY} sum.py", "in-1.txt")
    assert sorted(b"".join(parts).splitlines()) == sorted(expected.splitlines())

    combined = jobs.run(
        licence_text(),
        mapper,
        "sum.py",
        combiner="sum.py",
        shipped=(script,),
        reduces=5,
        conf=split,
    )
    assert jobs.parts == parts
    assert counter(combined, "COMBINE_INPUT_RECORDS") == counter(combined, "MAP_OUTPUT_RECORDS")
    assert 5000 < counter(combined, "COMBINE_OUTPUT_RECORDS") < 6000
    assert counter(combined, "REDUCE_INPUT_RECORDS") == counter(combined, "COMBINE_OUTPUT_RECORDS")


def test_without_reduces_each_map_has_a_part(jobs):
    text = licence_text()
    outcome = jobs.run(text, "cat", conf={"mapreduce.input.fileinputformat.split.maxsize": "50000"})
    assert outcome.maps == len(jobs.parts) > 1
    assert jobs.text == text
    assert counter(outcome, "MAP_INPUT_RECORDS") == counter(outcome, "MAP_OUTPUT_RECORDS") == 5000
    assert counter(outcome, "MAP_OUTPUT_BYTES") == len(text)


def test_keys_of_any_bytes_come_through_as_they_are(jobs):
    chance = random.Random(7)
    usual = bytes(byte for byte in range(256) if byte != 10)
    lines = [
        bytes(chance.choices(usual, k=chance.randrange(6))) + b"\t" * chance.randrange(3)
        for _ in range(4000)
    ]
    outcome = jobs.run(b"".join(line + b"\n" for line in lines), "cat", "cat")
    assert outcome.failure is None
    expected = sorted(lines, key=lambda line: (line.split(b"\t")[0], line))
    assert jobs.parts == [b"".join(line + b"\n" for line in expected)]


def test_one_key_may_have_nearly_all_of_the_data(jobs):
    text = "".join(f"{'hot' if n % 10 else f'cold{n}'}\t{n:06} {'x' * 60}\n" for n in range(60_000))
    outcome = jobs.run(
        text,
        "cat",
        "cat",
        reduces=3,
        conf={
            "mapreduce.task.io.sort.mb": "1",
            "mapreduce.input.fileinputformat.split.maxsize": "3000000",
        },
    )
    assert outcome.failure is None
    assert sorted(jobs.text.splitlines()) == sorted(text.splitlines())
    assert all(part.splitlines() == sorted(part.splitlines()) for part in jobs.parts)


@pytest.mark.parametrize("reduces", [0, 2])
def test_no_input_gives_empty_parts(jobs, reduces):
    outcome = jobs.run("", "cat", "cat" if reduces else None, reduces=reduces)
    assert outcome.failure is None
    assert jobs.parts == [b""] * max(reduces, 1)
    assert (jobs.output / "_SUCCESS").exists()


def test_a_directory_without_files_is_no_input_at_all(jobs):
    empty = jobs.directory / "empty"
    empty.mkdir()
    outcome = jobs.run((str(empty),), "cat", "sh -c 'cat; echo end'", reduces=2)
    assert (outcome.maps, jobs.parts) == (0, [b"end\n"] * 2)


def test_a_last_line_without_newline_is_a_line(jobs):
    assert jobs.run("b\na", "sh -c 'cat; printf c'", "sh -c 'cat; printf d'").failure is None
    assert jobs.text == "a\nb\nc\nd\n"


def test_output_and_what_maps_leave_may_be_packed(jobs):
    outcome = jobs.run(
        licence_text(),
        "cat",
        "cat",
        conf={
            "mapreduce.output.fileoutputformat.compress": "true",
            "mapreduce.map.output.compress": "true",
        },
    )
    assert outcome.failure is None
    (part,) = jobs.output.glob("part-*")
    assert part.name == "part-00000.gz"
    assert gzip.decompress(part.read_bytes()) == jobs.shell("sort -t$'\\t' -k1,1", "in-1.txt")


def test_fields_of_the_key_and_the_separator_for_the_reducer_are_the_job_s(jobs):
    outcome = jobs.run(
        "b.2.x\na.1.y\na.1.x\nalone\n",
        "cat",
        "cat",
        conf={
            "stream.map.output.field.separator": ".",
            "stream.num.map.output.key.fields": "2",
            "stream.reduce.input.field.separator": "=",
        },
    )
    assert outcome.failure is None
    assert jobs.text == "a.1=x\na.1=y\nalone\nb.2=x\n"


def test_an_output_that_is_there_is_refused_and_stays(jobs):
    jobs.file("out-1/precious", "x")
    with pytest.raises(AlreadyExists, match="out-1"):
        jobs.run("a\n", "cat")
    assert [path.read_text() for path in jobs.output.iterdir()] == ["x"]


def test_input_that_is_not_there_is_said_before_anything_is_made(jobs):
    with pytest.raises(NotFound, match="nowhere"):
        jobs.run((str(jobs.directory / "nowhere"),), "cat")
    assert not jobs.output.exists()


# ---- What programs may do --------------------------------------------------------------------


def test_counters_and_status_go_by_stderr_and_not_into_the_log(jobs):
    report = (
        "sh -c 'cat; echo reporter:counter:my group,lines,5 >&2; echo said >&2; "
        "echo reporter:status:half done >&2; echo reporter:counter:bad,x,y >&2; exit 3'"
    )
    conf = {"stream.non.zero.exit.is.failure": "false"}
    outcome = jobs.run("a\n", report, conf=conf)
    assert outcome.failure is None
    assert counter(outcome, "lines", "my group") == 5

    failed = jobs.run("a\n", report, conf={"mapreduce.map.maxattempts": "1"})
    assert jobs.log(failed) == "said\nreporter:counter:bad,x,y\n"
    assert failed.failure.counters["my group"] == {"lines": 5}


def test_a_mapper_need_not_read_all(jobs):
    outcome = jobs.run("first\n" + "x" * 70 + "\n" * 3_000_000, "head -n 1", "cat")
    assert outcome.failure is None
    assert jobs.text == "first\n"


def test_a_reducer_need_not_read_at_all(jobs):
    outcome = jobs.run(licence_text() * 20, "cat", "echo done")
    assert outcome.failure is None
    assert jobs.text == "done\n"


def test_much_on_stderr_blocks_nobody_and_its_end_is_kept(jobs):
    noisy = (
        'awk \'BEGIN {for (i = 0; i < 200000; i++) print "complaint", i > "/dev/stderr"; exit 4}\''
    )
    outcome = jobs.run("a\n", noisy, conf={"mapreduce.map.maxattempts": "1"})
    assert outcome.failure.details.endswith("complaint 199999")
    assert len(outcome.failure.details) < 20_000
    assert jobs.log(outcome).count("\n") == 200_000


def test_what_a_program_leaves_running_is_not_waited_for(jobs):
    outcome = jobs.run("a\n", "sh -c 'cat; sleep 1000 & echo end'")
    assert outcome.failure is None
    assert jobs.text == "a\nend\n"


def test_programs_find_the_properties_of_job_and_task(jobs):
    jobs.run(
        "a\n",
        "env",
        conf={
            "mapreduce.job.priority": "high",
            "my.own.property-1": "a b",
            "mapreduce.task.timeout": "60000",
        },
        env={"FROM_CMDENV": "c=d", "TMPDIR": "/elsewhere"},
    )
    env = dict(line.split("=", 1) for line in jobs.text.splitlines() if "=" in line)
    path = str(jobs.directory / "in-1.txt")
    expected = {
        "mapreduce_job_id": "job_20261128141500_0001",
        "mapred_job_id": "job_20261128141500_0001",
        "mapreduce_job_name": "test",
        "mapreduce_task_id": "task_20261128141500_0001_m_000000",
        "mapred_tip_id": "task_20261128141500_0001_m_000000",
        "mapreduce_task_attempt_id": "attempt_20261128141500_0001_m_000000_0",
        "mapred_task_id": "attempt_20261128141500_0001_m_000000_0",
        "mapreduce_task_ismap": "true",
        "mapred_task_is_map": "true",
        "mapreduce_task_partition": "0",
        "mapreduce_map_input_start": "0",
        "mapreduce_map_input_length": "2",
        "mapreduce_job_reduces": "0",
        "mapred_reduce_tasks": "0",
        "mapreduce_job_priority": "high",
        "mapred_job_priority": "high",
        "my_own_property_1": "a b",
        "user_name": "tester",
        "FROM_CMDENV": "c=d",
        "TMPDIR": "/elsewhere",
    }
    assert {name: env.get(name) for name in expected} == expected
    assert env["mapreduce_map_input_file"].removeprefix("file://") == path
    assert env["mapreduce_task_output_dir"].endswith("attempt_20261128141500_0001_m_000000_0")
    assert env["PATH"].split(":")[0] == env["PWD"]


def test_shipped_files_and_archives_are_in_the_directory_of_the_program(jobs):
    packed = jobs.directory / "lib.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("deep/names.txt", "in the archive\n")
    main = jobs.script(
        "main.py",
        "import sys, helper\n"
        "print(helper.TEXT, open('lib/deep/names.txt').read(), open('d.txt').read())\n",
    )
    outcome = jobs.run(
        "a\n",
        f"{PY} main.py",
        shipped=(
            main,
            jobs.script("helper.py", "TEXT = 'imported'\n"),
            Shipped(jobs.file("data.txt", "data\n"), "d.txt"),
            Shipped(str(packed), "lib", archive=True),
        ),
    )
    assert outcome.failure is None
    assert jobs.text == "imported in the archive\n data\n\n"


# ---- How they fail ---------------------------------------------------------------------------

ONCE = {"mapreduce.map.maxattempts": "1", "mapreduce.reduce.maxattempts": "1"}


@pytest.mark.parametrize(
    ("mapper", "words"),
    [
        ("sh -c 'echo so it is >&2; exit 3'", "ended with exit code 3: so it is"),
        ("sh -c 'kill -SEGV $$'", "was killed by SIGSEGV (segmentation fault)"),
        ("sh -c 'kill -KILL $$'", "was killed by SIGKILL (killed)"),
        ("sh -c 'sh -c \"kill -TERM \\$\\$\"; exit $?'", "exit code 143 (of a shell, for SIGTERM"),
    ],
)
def test_exit_codes_and_signals_are_put_into_words(jobs, mapper, words):
    outcome = jobs.run("a\n", mapper, conf=ONCE)
    assert outcome.failure.blame == "program"
    assert words in outcome.failure.message
    assert outcome.failure.message.startswith(f"mapper: {mapper}")
    assert outcome.failure.where.endswith("in-1.txt bytes 0 to 2")
    assert not jobs.output.exists()


def test_a_failed_attempt_is_made_again_and_the_output_has_each_line_once(jobs):
    flaky = "sh -c 'cat; case $mapreduce_task_attempt_id in *_0) exit 1;; esac'"
    outcome = jobs.run("b\na\n", flaky, flaky)
    assert outcome.failure is None
    assert jobs.text == "a\nb\n"
    assert [type(event.outcome).__name__ for event in jobs.ended] == [
        "Failure",
        "MapDone",
        "Failure",
        "ReduceDone",
    ]
    assert counter(outcome, "MAP_INPUT_RECORDS") == 2


def test_an_attempt_that_fails_as_often_as_allowed_fails_the_job(jobs):
    outcome = jobs.run("a\n", "false", conf={"mapreduce.map.maxattempts": "3"})
    assert outcome.failure.message == "mapper: false ended with exit code 1"
    assert outcome.attempt.endswith("_2")
    assert len(jobs.ended) == 3


def test_a_program_that_is_nowhere_is_the_machine_s_fault(jobs):
    outcome = jobs.run("a\n", "no-such-program -x")
    assert outcome.failure.blame == "place"
    assert outcome.failure.missing == "no-such-program"
    assert "no-such-program" in outcome.failure.message
    # And there is no other machine.
    assert len(jobs.ended) == 1


def test_a_script_without_an_interpreter_is_the_job_s_fault(jobs):
    outcome = jobs.run("a\n", "plain", shipped=(jobs.script("plain", "cat\n"),))
    assert outcome.failure.blame == "job"
    assert "plain is no program" in outcome.failure.message
    missing = jobs.script("lost", "#!/no/such/interpreter\n")
    outcome = jobs.run("a\n", "lost", conf=ONCE, shipped=(missing,))
    assert outcome.failure.blame == "place"
    assert "interpreter" in outcome.failure.message


@pytest.mark.parametrize("broken", ["main.py", "helper.py"])
def test_a_script_that_does_not_compile_is_told_once_and_not_tried_again(jobs, broken):
    texts = {"main.py": "import helper\n", "helper.py": "pass\n", broken: "def f(:\n    pass\n"}
    outcome = jobs.run(
        "a\n" * 10,
        f"{PY} main.py",
        shipped=tuple(jobs.script(name, text) for name, text in texts.items()),
        conf={"mapreduce.input.fileinputformat.split.maxsize": "5"},
        parallel=1,
    )
    assert outcome.failure.blame == "job"
    assert "SyntaxError: invalid syntax" in outcome.failure.message
    assert f'{broken}", line 1' in outcome.failure.details
    assert len(jobs.ended) == 1


def test_the_program_s_own_traceback_comes_first(jobs):
    script = jobs.script(
        "fail.py",
        "import sys\n"
        "for number, line in enumerate(sys.stdin, 1):\n"
        "    print('at', number, file=sys.stderr)\n"
        "    if number == 37:\n"
        "        int(line)\n",
    )
    outcome = jobs.run("x\n" * 50, f"{PY} fail.py", "cat", shipped=(script,), conf=ONCE)
    failure = outcome.failure
    assert failure.details.startswith("Traceback (most recent call last):\n")
    assert "line 5, in <module>" in failure.details
    assert "at 37" in failure.details
    assert failure.message.endswith(
        "exit code 1: ValueError: invalid literal for int() with base 10: 'x\\n'"
    )
    assert jobs.log(outcome).startswith("at 1\n")


def test_a_syntax_error_in_data_is_no_script_that_does_not_compile(jobs):
    script = jobs.script("evil.py", "import sys, ast\nfor l in sys.stdin: ast.literal_eval(l)\n")
    outcome = jobs.run("(\n", f"{PY} evil.py", shipped=(script,), conf=ONCE)
    assert outcome.failure.blame == "program"


def test_a_silent_program_is_ended(jobs):
    conf = {**ONCE, "mapreduce.task.timeout": "4000"}
    outcome = jobs.run("a\n", "sh -c 'echo stuck >&2; sleep 1000'", conf=conf)
    assert "for 4 s (mapreduce.task.timeout)" in outcome.failure.message
    assert outcome.failure.details == "stuck\n"
    assert outcome.failure.blame == "program"


def test_a_program_that_says_something_is_not_silent(jobs):
    conf = {**ONCE, "mapreduce.task.timeout": "5000"}
    patient = "sh -c 'for i in 1 2 3 4 5 6; do sleep 1; echo reporter:status:$i >&2; done'"
    assert jobs.run("a\n", patient, conf=conf).failure is None


def test_damaged_input_is_the_data_s_fault_though_the_program_is_content(jobs):
    whole = gzip.compress(licence_text().encode() * 20)
    damaged = jobs.file("in.gz", whole[: len(whole) // 2])
    outcome = jobs.run((damaged,), "cat", "cat", conf=ONCE)
    assert outcome.failure.blame == "data"
    assert "in.gz" in outcome.failure.message
    assert not jobs.output.exists()


@pytest.mark.parametrize("reduces", [0, 1])
def test_a_full_disk_is_the_machine_s_fault(jobs, reduces, tmp_path):
    """A process may write files of 300 kB, which is as good as a full disk."""
    program = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from tests.kit.mapreduce_local import Jobs\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))\n"
        "jobs = Jobs(Path(sys.argv[1]))\n"
        "outcome = jobs.run('a\\n', \"awk 'BEGIN {for (i = 0; i < 100000; i++) print i}'\",\n"
        f"    {'cat' if reduces else None!r}, conf={ONCE!r})\n"
        "print(outcome.failure.blame, outcome.failure.message, jobs.output.exists())\n"
    )
    said = subprocess.run(
        [PY, "-c", program, str(tmp_path / "jobs")],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert said.stdout.startswith("place "), said.stderr
    assert "File too large" in said.stdout
    assert said.stdout.endswith("False\n")


@pytest.mark.parametrize(
    ("names", "words"),
    [(("a", "a"), "a: is there twice"), (("../../x",), "leads out of the directory")],
)
def test_names_of_shipped_files_that_cannot_be_are_the_job_s_fault(jobs, names, words):
    data = jobs.file("data", "x")
    outcome = jobs.run("a\n", "cat", shipped=tuple(Shipped(data, name) for name in names))
    assert outcome.failure.blame == "job"
    assert words in outcome.failure.message
    assert len(jobs.ended) == 1


def test_a_shipped_file_that_is_gone_fails_the_job_at_once(jobs):
    gone = Shipped(str(jobs.directory / "gone.py"), "gone.py")
    outcome = jobs.run("a\n", "cat", shipped=(gone,))
    assert outcome.failure.blame == "job"
    assert "gone.py" in outcome.failure.message
    assert len(jobs.ended) == 1


@pytest.mark.parametrize(
    ("conf", "wanted"),
    [
        ({}, [b"0\ta b\n2 lines\n", b"7\t\n2 lines\n", b"13\tc\n1 lines\n"]),
        (
            {"stream.map.input.ignoreKey": "true"},
            [b"a b\n2 lines\n", b"\n2 lines\n", b"c\n1 lines\n"],
        ),
    ],
)
def test_so_many_lines_a_map_with_where_each_begins(jobs, conf, wanted):
    outcome = jobs.run(
        "a b\n\xe9\n\n1234\nc",
        "awk 'NR == 1 {print} END {print NR \" lines\"}'",
        input_format="nline",
        conf={"mapreduce.input.lineinputformat.linespermap": "2", **conf},
    )
    assert outcome.failure is None
    assert (outcome.maps, counter(outcome, "MAP_INPUT_RECORDS")) == (3, 5)
    assert jobs.parts == wanted


def test_lazy_output_has_no_part_for_nothing(jobs):
    outcome = jobs.run("x\nx\n", "cat", "uniq -c", reduces=3, lazy_output=True)
    assert outcome.failure is None
    names = sorted(path.name for path in jobs.output.iterdir())
    assert len(names) == 2
    assert names[0] == "_SUCCESS"
    assert jobs.text.split() == ["2", "x"]
    # Nor where there is nothing at all; and a program that fails without a word has failed.
    assert jobs.run("x\n", "true", lazy_output=True).failure is None
    assert [path.name for path in jobs.output.iterdir()] == ["_SUCCESS"]
    assert jobs.run("x\n", "false", lazy_output=True, conf=ONCE).failure is not None
