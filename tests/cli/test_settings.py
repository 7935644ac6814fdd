"""`mainspring settings`: every variable that means something is listed, with what it says and no secret."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import mainspring
from mainspring.cli.settings import _INTERNAL
from tests.cli.program import in_process

NAME = re.compile(r"\bMAINSPRING_[A-Z_]+\b")


def listed() -> dict[str, dict[str, Any]]:
    done = in_process("settings", "--json")
    assert done.returncode == 0
    return {one["name"]: one for one in json.loads(done.stdout)["settings"]}


def test_every_variable_that_the_code_names_is_listed_and_no_other() -> None:
    sources = Path(mainspring.__file__).parent.rglob("*.py")
    named = {name for source in sources for name in NAME.findall(source.read_text())}

    assert set(listed()) == named - _INTERNAL


def test_each_says_what_is_so_and_where_that_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAINSPRING_LEASE", "5s")
    monkeypatch.delenv("MAINSPRING_GRACE", raising=False)
    monkeypatch.setenv("MAINSPRING_APP", "")

    found = listed()

    assert (found["MAINSPRING_LEASE"]["value"], found["MAINSPRING_LEASE"]["from"]) == ("5s", "environment")
    assert (found["MAINSPRING_GRACE"]["value"], found["MAINSPRING_GRACE"]["from"]) == ("30s", "default")
    assert (found["MAINSPRING_APP"]["value"], found["MAINSPRING_APP"]["from"]) == (None, "not set")
    assert found["MAINSPRING_LEASE"]["option"] == "--lease"
    assert found["MAINSPRING_LEASE"]["commands"] == ["up", "worker"]
    assert all(one["about"] for one in found.values())


def test_no_secret_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [name for name in listed() if name.endswith(("KEYS", "TOKEN", "SECRET"))]
    for name in names:
        monkeypatch.setenv(name, "canary-value")
    monkeypatch.setenv("MAINSPRING_URL", "postgresql://me:canary-value@db/app")
    monkeypatch.setenv("MAINSPRING_SMTP", "smtp://me:canary-value@mail")

    plain, document = in_process("settings").stdout, in_process("settings", "--json").stdout

    assert len(names) >= 3
    assert "canary" not in plain + document
    assert "postgresql://me:***@db/app" in document


def test_a_misspelled_variable_is_named_with_a_near_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAINSPRING_LEESE", "5s")

    done = in_process("settings")

    assert "MAINSPRING_LEESE is set and means nothing, did you mean 'MAINSPRING_LEASE'?" in done.stderr
