"""Work in threads of their own."""

import os
import threading

import pytest

from agent.isolation.network.namespaces import in_thread, own, path_of


def test_what_is_done_in_a_thread_is_returned():
    assert in_thread(lambda: threading.current_thread().name) == "network-namespace"


def test_what_is_raised_in_a_thread_is_raised_here():
    with pytest.raises(ValueError, match="invalid literal"):
        in_thread(lambda: int("x"))


def test_a_namespace_is_found_by_its_path_as_long_as_it_is_held():

    held = own()
    try:
        with open(path_of(held)) as found:  # noqa: PTH123
            assert os.fstat(found.fileno()).st_ino == os.fstat(held).st_ino
    finally:
        os.close(held)
