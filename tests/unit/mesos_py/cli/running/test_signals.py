"""Signals that end a command are its own business, for as long as it says."""

import asyncio
import os
import signal

import pytest

from mesos_py.cli.running.signals import ENDING, on_ending_signals


@pytest.mark.parametrize("number", ENDING)
async def test_a_signal_is_handled_in_the_block_and_as_before_after_it(number):
    told = asyncio.get_running_loop().create_future()
    with on_ending_signals(told.set_result):
        os.kill(os.getpid(), number)
        assert await told == number
    assert asyncio.get_running_loop().remove_signal_handler(number) is False
    default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
    assert signal.getsignal(number) == default
