"""The command that removes what a worker that is gone has left of a job.  Pure.

It runs as a task of the framework, on the worker's agent, and so in a sandbox of its own beside
the worker's: agents keep them as `frameworks/ID/executors/EXECUTOR/runs/CONTAINER`, as in Mesos.
That is all it goes by, so that it finds also what nobody has heard of: a worker may be killed
before it has said anything.  It removes nothing but what has the job's name, in directories that
workers make (`worker.place`), in sandboxes of that worker, and follows no link; where sandboxes
do not lie so, it removes nothing, and fails.
"""

from __future__ import annotations

from typing import Final

_SCRIPT: Final = """\
here=$(pwd -P)
case $here in
*/executors/"$1"/runs/*) ;;
*) echo "sandboxes do not lie as expected: $here" >&2; exit 1 ;;
esac
there=${here%/*/runs/*}/$2/runs
if [ ! -d "$there" ]; then exit 0; fi
cd -P "$there" || exit 1
if [ "$(pwd -P)" != "$there" ]; then echo "a link: $there" >&2; exit 1; fi
failed=0
for run in *; do
    if [ ! -d "$run" ] || [ -L "$run" ]; then continue; fi
    (
        cd -P "$run" || exit 1
        for path in "published/$3" "jobs/$3" "jobs/$3.lock" "work/$4"*; do
            if [ -L "${path%%/*}" ] || rm -rf -- "$path" 2>/dev/null; then continue; fi
            # A program may have made something unreadable for its owner.
            if [ ! -L "$path" ]; then chmod -R u+rwx -- "$path"; fi
            rm -rf -- "$path" || exit 1
        done
    ) || failed=1
done
exit $failed
"""


def command(task_id: str, worker_id: str, job_id: str) -> list[str]:
    """Words to be executed, as a task of this id.  Exit code 0: there is nothing (any more)."""
    attempts = f"attempt_{job_id.removeprefix('job_')}_"
    return ["sh", "-c", _SCRIPT, "sweep", task_id, worker_id, job_id, attempts]


__all__ = ["command"]
