"""Naming an app: how it is found, and what is said when it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from mainspring.cli.apps import load_app
from tests.cli.program import assert_refused, in_process, mainspring
from tests.cli.projects import write

ONE = "from mainspring import Mainspring\napp = Mainspring()\n"


@pytest.mark.parametrize(
    "name",
    [
        "mine:app",
        "mine",
        "mine.py:app",
        "mine.py",
        "./mine.py:app",
        "package.inner:app",
        "package.inner",
        "package/inner.py",
        "package:again",
        "package/__init__.py",
        "loose/file.py:app",
    ],
)
def test_an_app_is_found_by_module_or_file_with_or_without_its_name(name: str, folder: Path) -> None:
    for file in ("mine.py", "package/inner.py", "loose/file.py"):
        write(folder / file, ONE)
    write(folder / "package" / "__init__.py", "from package.inner import app as again")

    assert len(load_app(name).tasks) == 0


def test_an_app_with_two_names_is_one_app(folder: Path) -> None:
    write(folder / "mine.py", ONE + "celery = app\n")

    assert load_app("mine") is load_app("mine:celery")


def test_a_file_may_import_its_neighbours(folder: Path) -> None:
    write(folder / "deep" / "neighbour.py", "name = 'x'")
    write(folder / "deep" / "mine.py", f"import neighbour\n{ONE}")

    assert len(load_app("deep/mine.py").tasks) == 0


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mien", ["no module named 'mien'", "did you mean 'mine'?"]),
        ("xyz", ["no module named 'xyz'", "path/to/file.py"]),
        ("package.iner:app", ["'package.iner'", "did you mean 'package.inner'?"]),
        ("mine.app", ["did you mean 'mine:app'?"]),
        ("mine:ap", ["nothing named 'ap'", "did you mean 'app'?"]),
        ("mine:xyz", ["nothing named 'xyz'", "its Mainspring objects: app"]),
        ("mine:number", ["mine:number", "got one of type int", "its Mainspring objects: app"]),
        ("two", ["2 Mainspring objects", "two:first, two:second"]),
        ("none", ["no Mainspring object", "`app = Mainspring()`"]),
        ("mien.py", ["no file 'mien.py'", "did you mean 'mine.py'?"]),
        ("package/xyz.py:app", ["no file 'package/xyz.py'"]),
        ("package/inner", ["no file 'package/inner'", "did you mean 'package/inner.py'?"]),
        ("nowhere/xyz.py:app", ["no file 'nowhere/xyz.py'"]),
        ("queue.py", ["another module is named 'queue'", "another name"]),
        ("mine:", ["module:name", "'mine:'"]),
        (":app", ["module:name", "':app'"]),
        (".mine", ["module:name", "'.mine'"]),
        ("mine:a b", ["module:name"]),
    ],
)
def test_an_app_that_is_not_there_is_refused_with_a_hint(name: str, words: list[str], folder: Path) -> None:
    write(folder / "mine.py", ONE + "number = 1\n")
    write(folder / "two.py", "from mainspring import Mainspring\nfirst, second = Mainspring(), Mainspring()\n")
    write(folder / "none.py", "number = 1")
    write(folder / "queue.py", ONE)
    write(folder / "package" / "__init__.py", "")
    write(folder / "package" / "inner.py", ONE)

    assert_refused(in_process("worker", "--app", name), *words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1\nimport nonexistent", ["mine.py, line 2", "ModuleNotFoundError: No module named 'nonexistent'"]),
        ("x = (\n", ["mine.py, line 1", "SyntaxError: '(' was never closed"]),
        ("import helper", ["helper.py, line 2", "SyntaxError"]),
        ("\n\n1 / 0", ["mine.py, line 3", "ZeroDivisionError"]),
        ("import json\njson.loads('x')", ["mine.py, line 2", "JSONDecodeError"]),
        ("from mainspring import Retry\nRetry(max_attempts=0)", ["mine.py, line 2", "max_attempts"]),
        (ONE + "@app.task\ndef f(): ...\napp.task(f)", ["mine.py, line 5", "DuplicateTask", "'f'"]),
        ("raise SystemExit(3)", ["mine.py, line 1", "exit code 3"]),
        ("raise ValueError('first\\nsecond')", ["ValueError: first second"]),
    ],
)
def test_an_error_in_the_users_code_is_one_sentence_with_its_file_and_line(
    text: str, words: list[str], folder: Path
) -> None:
    write(folder / "helper.py", "x = 1\n1 +\n")
    write(folder / "mine.py", text)

    assert_refused(in_process("worker", "--app", "mine:app"), "can't import 'mine'", *words)


def test_the_present_folder_is_searched_whichever_way_the_program_is_started(folder: Path) -> None:
    write(folder / "mine.py", "raise ValueError('found')")

    assert_refused(mainspring("worker", "--app", "mine", folder=folder), "mine.py, line 1", "ValueError: found")


def test_an_address_takes_the_place_of_the_apps_own(folder: Path) -> None:
    write(
        folder / "mine.py", "from mainspring import Mainspring\napp = Mainspring('sqlite:///its-own.db')\napp.jobs()\n"
    )

    app = load_app("mine", "sqlite:///another.db")
    app.jobs()
    app.close()

    assert (folder / "another.db").exists()
