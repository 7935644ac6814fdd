"""What an exit code says."""

from __future__ import annotations

import pytest

from mainspring.model.exit_code import how_it_ended


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "exited with code 0"),
        (3, "exited with code 3"),
        (-9, "was killed by SIGKILL"),
        (-63, "was killed by signal 63"),
    ],
)
def test_an_exit_code_is_told_in_words(code: int, words: str) -> None:
    assert how_it_ended(code) == words
