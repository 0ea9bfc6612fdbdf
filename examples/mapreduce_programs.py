"""Four programs as people write them for Hadoop Streaming, and the same as shell pipelines.

    mesos-py local --agents 2 -- python -m examples.mapreduce_programs [DIRECTORY]
    python -m examples.mapreduce_programs --local 2 [DIRECTORY]

Word count, inverted index, join and sort of the Python files in a directory (default: the
standard library).  What a job leaves is compared, byte for byte, with what its program leaves
as `cat input | mapper | sort | reducer`.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frameworks import mapreduce

# Which module imports which.
IMPORTS = r"""
/^(import|from) [a-z_]+/ {
    file = ENVIRON["mapreduce_map_input_file"]
    sub(".*/", "", file)
    print $2 "\timported by\t" file
}
"""
# How long each is: in the same form, so that one reducer is given both.
LENGTHS = r"""
{ lines++ }
END {
    file = ENVIRON["mapreduce_map_input_file"]
    sub(".*/", "", file)
    sub("[.]py$", "", file)
    print file "\t lines\t" lines
}
"""
JOINED = r"""
BEGIN { FS = OFS = "\t" }
$2 == " lines" { module = $1; lines = $3; next }
$1 == module { print $3, module, lines }
"""
POSTINGS = r"""
{
    file = ENVIRON["mapreduce_map_input_file"]
    sub(".*/", "", file)
    count = split($0, words, /[^A-Za-z_]+/)
    for (i = 1; i <= count; i++) if (words[i] != "") seen[words[i]] = 1
}
END { for (word in seen) print word "\t" file }
"""
INDEX = r"""
BEGIN { FS = "\t" }
$1 != word { if (NR > 1) print line; word = $1; line = word "\t" $2; next }
{ line = line "," $2 }
END { if (NR) print line }
"""


@dataclass(frozen=True)
class Program:
    """mapper runs for each file by itself, with its name in the environment, as a map does."""

    name: str
    mapper: str
    reducer: str


def awk(program: str) -> str:
    return f"awk {shlex.quote(program)}"


def both(one: str, other: str) -> str:
    """Two programs that read the same."""
    script = f'input=$(mktemp); cat > "$input"; {one} < "$input"; {other} < "$input"; rm "$input"'
    return f"sh -c {shlex.quote(script)}"


PROGRAMS = (
    Program("word count", "tr -cs A-Za-z_ '\\n'", "uniq -c"),
    Program("inverted index", awk(POSTINGS), awk(INDEX)),
    Program("join", both(awk(IMPORTS), awk(LENGTHS)), awk(JOINED)),
    Program("sort", "cat", "cat"),
)


def as_pipeline(program: Program, files: list[Path]) -> bytes:
    """What it writes without us."""
    mapped = b""
    for file in files:
        env = {**os.environ, "mapreduce_map_input_file": f"file://{file}"}
        with file.open("rb") as lines:
            mapped += subprocess.check_output(shlex.split(program.mapper), stdin=lines, env=env)
    env = {**os.environ, "LC_ALL": "C"}
    ordered = subprocess.run(["sort"], input=mapped, env=env, check=True, stdout=subprocess.PIPE)
    reduced = subprocess.run(
        shlex.split(program.reducer), input=ordered.stdout, check=True, stdout=subprocess.PIPE
    )
    return reduced.stdout


def as_job(program: Program, files: list[Path], output: Path, where: dict[str, Any]) -> bytes:
    """What it writes as a job with one reduce."""
    mapreduce.run(
        name=program.name,
        mapper=program.mapper,
        reducer=program.reducer,
        inputs=[str(file) for file in files],
        output=str(output),
        # A map for each file: the name of it is in the environment.
        conf={"mesos.input.combine": "false", "mapreduce.map.cpu.vcores": 0.5},
        **where,
    )
    return (output / "part-00000").read_bytes()


def main() -> int:
    """The exit code: 0 if all are the same."""
    parser = argparse.ArgumentParser(description="Streaming programs, compared with pipelines.")
    parser.add_argument("--local", type=int, help="run in so many processes, without a cluster")
    parser.add_argument("--files", type=int, default=20, help="at most so many files")
    parser.add_argument("directory", nargs="?", default=sysconfig.get_path("stdlib"))
    given = parser.parse_args()
    found = sorted(Path(given.directory).absolute().glob("*.py"))
    files = [file for file in found if file.name[0] not in "_."][: given.files]
    where = {"local": given.local} if given.local else {}
    different = 0
    with tempfile.TemporaryDirectory() as scratch:
        # Agents may run tasks as other users.
        Path(scratch).chmod(0o755)
        for number, program in enumerate(PROGRAMS):
            job = as_job(program, files, Path(scratch, f"out-{number}"), where)
            same = job == as_pipeline(program, files)
            different += not same
            lines = job.count(b"\n")
            print(f"{program.name:<15} {lines:>7,} lines  {'same' if same else 'DIFFERENT'}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
