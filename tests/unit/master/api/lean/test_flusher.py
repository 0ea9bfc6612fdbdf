"""Who has something to write does so at the end of the round."""

import asyncio

import pytest

from master.api.lean.flusher import Flusher


class Part:
    """A stream or a connection; `bad`: what goes wrong with it."""

    def __init__(self, *bad):
        self.bad = bad
        self.told = []

    def flush(self):
        self._do("flush")

    def cut(self):
        self._do("end")

    abort = cut

    def _do(self, what):
        self.told.append(what)
        if what in self.bad:
            raise RuntimeError(what)


@pytest.mark.parametrize("bad", [["flush"], ["flush", "end"]])
@pytest.mark.parametrize("kind", ["add", "add_connection"])
async def test_one_that_fails_is_ended_and_the_others_are_written_to_now_and_later(kind, bad):
    flusher = Flusher()
    failing, good = Part(*bad), Part()
    getattr(flusher, kind)(failing)
    flusher.add_connection(good)
    await asyncio.sleep(0)
    flusher.add_connection(good)
    await asyncio.sleep(0)
    assert failing.told == ["flush", "end"]
    assert good.told == ["flush", "flush"]
