"""The directory of a container within another goes."""

from __future__ import annotations

from agent.containers import sandbox
from agent.sandboxes.collector import TRASH
from agent.sandboxes.erasing import Trash


def discard(work_dir: str, parts: tuple[str, ...]) -> None:
    """Remove the directory, if it is there.  Slow.  Raises OSError."""
    with sandbox.opened(work_dir) as root:
        try:
            above = sandbox.open_directory(root, parts[:-1])
        except FileNotFoundError:
            return
        with sandbox.closing(above):
            trash = Trash(root, TRASH)
            try:
                trash.take(above, parts[-1])
                if problems := trash.empty_taken():
                    raise problems[0]
            except FileNotFoundError:
                pass
            finally:
                trash.close()


__all__ = ["discard"]
