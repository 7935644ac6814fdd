"""`mainspring secrets`."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from mainspring import Mainspring
from mainspring.keys import Keys, new_key
from tests.cli.program import Done, in_process


@pytest.fixture(autouse=True)
def _database(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAINSPRING_KEYS", new_key())
    monkeypatch.setenv("MAINSPRING_URL", url)
    Mainspring(url).client.store.close()


def with_input(text: str, *arguments: str) -> Done:
    """Run the program in a process of its own that reads *text*."""
    command = [sys.executable, "-m", "mainspring", "secrets", *arguments]
    return subprocess.run(command, input=text, env=os.environ.copy(), capture_output=True, text=True, check=False)


def listed(*options: str) -> list[tuple[str, str]]:
    found = json.loads(in_process("secrets", "list", "--json", *options).stdout)["secrets"]
    return [(secret["team"], secret["name"]) for secret in found]


def test_the_value_is_read_from_the_input_and_shown_nowhere(url: str) -> None:
    done = with_input("canary-4711\n", "set", "token")

    assert (done.returncode, done.stderr) == (0, "")
    assert "secret://token is set" in done.stdout
    table, document = in_process("secrets").stdout, in_process("secrets", "--json").stdout
    assert "token" in table
    assert "canary" not in done.stdout + table + document
    assert listed() == [("default", "token")]
    app = Mainspring(url)
    assert [secret.name for secret in app.secrets.list()] == ["token"]
    app.close()


def test_the_value_is_no_argument() -> None:
    done = in_process("secrets", "set", "token", "canary-4711")

    assert done.returncode == 2
    assert listed() == []


def test_a_value_that_is_too_short_to_be_redacted_is_kept_and_told() -> None:
    done = with_input("1234\n", "set", "pin", "--json")

    assert json.loads(done.stdout) == {"set": "pin"}
    assert done.returncode == 0
    assert done.stderr.startswith("warning: its value has fewer than 6 characters")


def test_teams_have_their_own() -> None:
    with_input("value of acme", "set", "token", "--team", "acme")

    assert listed() == [("acme", "token")]
    assert listed("--team", "beta") == []
    assert in_process("secrets", "remove", "token").returncode == 1
    assert in_process("secrets", "remove", "token", "--team", "acme").returncode == 0
    assert listed() == []


def test_one_that_is_not_there_is_told_by_its_name() -> None:
    done = in_process("secrets", "remove", "nothing")

    assert (done.returncode, done.stdout) == (1, "")
    assert "no secret named 'nothing'" in done.stderr


def test_a_new_key_is_printed_as_it_is_to_be_kept() -> None:
    first, second = (in_process("secrets", "new-key").stdout for _ in range(2))

    assert Keys.read(first).first != Keys.read(second).first


def test_secrets_are_sealed_anew_with_the_first_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with_input("value of a", "set", "a")
    with_input("value of b", "set", "b")
    monkeypatch.setenv("MAINSPRING_KEYS", f"{new_key()},{os.environ['MAINSPRING_KEYS']}")

    assert in_process("secrets", "rotate").stdout == "2 secrets sealed anew\n"
    assert json.loads(in_process("secrets", "rotate", "--json").stdout) == {"rotated": 0}


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_bytes_that_are_no_text_are_refused_as_such(locale: str) -> None:
    command = [sys.executable, "-m", "mainspring", "secrets", "set", "bin"]
    env = os.environ | {"LC_ALL": locale}

    done = subprocess.run(command, input=b"\xff\xfe", env=env, capture_output=True, check=False)

    told = b"error: expected the value of a secret to be UTF-8 text, got bytes that are none; encode it\n"
    assert (done.returncode, done.stderr) == (2, told)
    assert listed() == []
