"""What a command says, as it is kept: with no secret in it, nor a half of one, wherever it is cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.model.redact import Redactor
from mainspring.worker.executors.output import MOST, Output

SECRET = "Zq7-Xw9_Kj2+Vb8=Yt4"
KEY = "-----BEGIN KEY-----\nc2VjcmV0c2VjcmV0\nbW9yZXNlY3JldA==\n-----END KEY-----"
FRAGMENTS = [SECRET[at : at + 4] for at in range(len(SECRET) - 3)]


def told(output: Output, *writes: bytes) -> Output:
    for data in writes:
        output.feed(output.out, data)
    output.close()
    return output


def said(redact: Redactor, *writes: bytes) -> tuple[Output, list[str]]:
    lines: list[str] = []

    def keep(level: int, line: str) -> bool:
        lines.append(line)
        return True

    return told(Output(keep, redact), *writes), lines


def in_writes(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


@pytest.mark.parametrize("before", range(1_950, 2_150, 5))
def test_no_half_of_a_secret_is_kept_where_a_line_without_end_is_told(before: int) -> None:
    _, lines = said(Redactor([SECRET]), *in_writes(b"x" * before + SECRET.encode() + b"x" * 200, 7))

    assert set("".join(lines)) == {"x", "*"}


@given(
    before=st.integers(0, 3 * MOST) | st.integers(1_960, 2_160),
    after=st.integers(0, 3 * MOST) | st.integers(MOST - 40, MOST + 40) | st.integers(1_960, 2_160),
    size=st.sampled_from([7, 2_000, 2_001, 65_536]),
    filler=st.sampled_from([b"x", b"x" * 500 + b"\n", "ü".encode()]),
)
def test_no_half_of_a_secret_is_kept_wherever_it_stands(before: int, after: int, size: int, filler: bytes) -> None:
    data = (filler * before)[:before] + SECRET.encode() + (filler * after)[:after]
    output, lines = said(Redactor([SECRET]), *in_writes(data, size if len(data) < 10_000 else 65_536))

    for kept in ("".join(lines), output.end, output.last_lines):
        assert not [fragment for fragment in FRAGMENTS if fragment in kept]


@pytest.mark.parametrize("times", [1, 100, 5_000])
def test_no_half_is_kept_where_there_is_one_after_the_other(times: int) -> None:
    """What gives way to stars is shorter then, and would let in what was cut earlier."""
    output, lines = said(Redactor([SECRET]), *in_writes(SECRET.encode() * times, 1_000))

    for kept in ("".join(lines), output.end, output.last_lines):
        assert set(kept) == {"*"}


def test_the_lines_of_a_key_are_found_in_all_that_is_kept() -> None:
    output, lines = said(Redactor([KEY]), *in_writes(b"y" * 1_995 + KEY.encode() + b"\n", 2_000))

    for kept in ("".join(lines), output.end, output.last_lines):
        assert "c2Vj" not in kept
        assert "bW9y" not in kept


@pytest.mark.parametrize("size", [1, 3, 1_999, 65_536])
def test_text_is_cut_between_characters(size: int) -> None:
    text = "x" + "grüße☃" * 10_000
    output, lines = said(Redactor([]), *in_writes(text.encode(), size))

    assert "".join(lines) == text
    assert max(map(len, lines)) <= 2_000
    assert text.endswith(output.end)
    assert text.endswith(output.last_lines)
    assert MOST - 4 < len(output.end.encode()) <= MOST
    assert output.truncated


def test_what_is_no_text_is_kept_as_escapes() -> None:
    output, lines = said(Redactor([]), b"a\0b\xff", b"c\r\n\xc3")

    assert lines == ["a\\x00b\\xffc", "\\xc3"]
    assert output.end == "a\\x00b\\xffc\r\n\\xc3"
    assert not output.truncated
