import pytest

from frameworks.runtime import exits


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (1, "ended with exit code 1"),
        (126, "ended with exit code 126 (cannot be executed)"),
        (127, "ended with exit code 127 (not found)"),
        (128, "ended with exit code 128"),
        (137, "ended with exit code 137 (of a shell, for SIGKILL (killed))"),
        (255, "ended with exit code 255"),
        (-11, "was killed by SIGSEGV (segmentation fault)"),
        (-35, "was killed by signal 35 (real-time signal 1)"),
    ],
)
def test_exits_in_words(code, words):
    assert exits.exit_worded(code) == words
