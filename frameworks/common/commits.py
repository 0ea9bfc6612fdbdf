"""The arbiter: of each task one attempt is the one whose result counts, whatever happens.

::

    nothing --choose--> chosen --confirm--> confirmed
       ^------void--------+--------------------+

Twins, attempts that were taken for lost and finish after all, and status updates that come
twice all end here: who is not chosen has no result.  Its decisions are kept by whoever keeps
the caller's journal, and told again in the same order to a new arbiter.
"""

from __future__ import annotations

from mesos_py.errors import InternalError


class Commits:
    __slots__ = ("_chosen", "_confirmed")

    def __init__(self) -> None:
        self._chosen: dict[int, int] = {}
        self._confirmed: set[int] = set()

    def choose(self, task: int, attempt: int) -> bool:
        """Whether this attempt is the one: the first that asks is, and stays it."""
        return self._chosen.setdefault(task, attempt) == attempt

    def confirm(self, task: int, attempt: int) -> bool:
        """Its result is in place.  False if that was said before.

        Raises InternalError for an attempt that is not the chosen one.
        """
        if self._chosen.get(task) != attempt:
            raise InternalError("not the chosen attempt", task=task, attempt=attempt)
        if task in self._confirmed:
            return False
        self._confirmed.add(task)
        return True

    def void(self, task: int, attempt: int) -> bool:
        """Its result is gone, or never came about: another one may be chosen.  False, and
        nothing happens, if it is not the chosen one."""
        if self._chosen.get(task) != attempt:
            return False
        del self._chosen[task]
        self._confirmed.discard(task)
        return True

    def chosen(self, task: int) -> int | None:
        return self._chosen.get(task)

    def confirmed(self, task: int) -> bool:
        return task in self._confirmed

    @property
    def chosen_count(self) -> int:
        """Of those chosen, confirmed or not."""
        return len(self._chosen)

    @property
    def confirmed_count(self) -> int:
        return len(self._confirmed)

    def unconfirmed(self) -> list[tuple[int, int]]:
        """(task, attempt) of those chosen and not confirmed, in the order of tasks."""
        return sorted(pair for pair in self._chosen.items() if pair[0] not in self._confirmed)
