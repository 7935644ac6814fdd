"""The documents say what the code does."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from mainspring.model.lifecycle import MOVES
from mainspring.model.queue import Pausable

ROOT = Path(__file__).parents[2]
DOCUMENTS = [path.relative_to(ROOT) for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]]


def test_the_examples_in_the_readme_run(tmp_path: Path) -> None:
    told: list[tuple[int, str, str]] = []
    for example in re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL):
        done = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True)
        told.append((done.returncode, done.stdout, done.stderr))

    assert told == [(0, "sent to 42 in de\n", ""), (0, "14\ncharged 7\nfine\n", ""), (0, "done\n", "")]


def test_the_drawn_states_and_moves_are_those_of_the_lifecycle() -> None:
    drawing = (ROOT / "docs" / "architecture.md").read_text()
    drawn = set(re.findall(r"^    (\w+) --> (\w+):", drawing, re.MULTILINE))
    legal = {(source, target) for source, targets in MOVES.items() for target in targets}

    assert drawn == legal


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_every_make_target_that_is_named_exists(document: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

    assert set(re.findall(r"(?:^|`)make ([a-z-]+)", (ROOT / document).read_text(), re.MULTILINE)) <= targets


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_every_file_that_is_linked_exists(document: Path) -> None:
    text = (ROOT / document).read_text()
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]

    assert [link for link in links if not (ROOT / document.parent / link).exists()] == []


def test_every_module_that_the_architecture_names_exists() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    named = set(re.findall(r"`((?:model|store)/\w+\.py)`", text))
    tests = set(re.findall(r"`((?:conformance)/\w+\.py)`", text))

    assert {name for name in named if not (ROOT / "src" / "mainspring" / name).exists()} == set()
    assert {name for name in tests if not (ROOT / "tests" / name).exists()} == set()


def test_every_reason_why_a_job_does_not_run_is_told_by_its_code() -> None:
    codes = set(re.findall(r'Reason\(\s*"(\w+)"', (ROOT / "src" / "mainspring" / "explain.py").read_text()))
    told = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "why.md").read_text(), re.MULTILINE)

    assert sorted(told) == sorted(codes | {f"{kind}_paused" for kind in Pausable})
