"""Errors: kinship, and sentences that say what came and what to do."""

from __future__ import annotations

import copy
import inspect

import pytest

from mainspring import errors
from mainspring.errors import (
    DuplicateTask,
    IllegalMove,
    InvalidPayload,
    InvalidURL,
    InvalidValue,
    JobNotFound,
    LeaseLost,
    MainspringError,
    NotFound,
    SchemaError,
    SchemaMissing,
    SchemaNewer,
    SchemaOutdated,
    Stop,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    TaskNotFound,
    did_you_mean,
)

CLASSES = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if kind.__module__ == errors.__name__]


@pytest.mark.parametrize("kind", CLASSES)
def test_every_error_derives_from_mainspring_error(kind: type) -> None:
    assert issubclass(kind, MainspringError | Stop)


@pytest.mark.parametrize("kind", CLASSES)
def test_every_error_stands_in_the_tree_of_the_module(kind: type) -> None:
    assert f" {kind.__name__}" in (errors.__doc__ or "")


@pytest.mark.parametrize("kind", [InvalidValue, InvalidPayload, InvalidURL, DuplicateTask])
def test_errors_about_a_callers_value_are_value_errors(kind: type) -> None:
    assert issubclass(kind, ValueError)
    assert issubclass(kind, InvalidValue)


@pytest.mark.parametrize("kind", [NotFound, TaskNotFound, JobNotFound])
def test_errors_about_a_missing_thing_are_lookup_errors(kind: type) -> None:
    assert issubclass(kind, LookupError)
    assert issubclass(kind, NotFound)


@pytest.mark.parametrize("kind", [IllegalMove, LeaseLost, StoreError])
def test_other_errors_are_no_value_and_no_lookup_errors(kind: type) -> None:
    assert not issubclass(kind, ValueError | LookupError)


@pytest.mark.parametrize("kind", [StoreUnavailable, StoreReadOnly, StoreFull, SchemaError, SchemaNewer])
def test_errors_of_the_database_are_store_errors(kind: type) -> None:
    assert issubclass(kind, StoreError)


@pytest.mark.parametrize("kind", [SchemaMissing, SchemaOutdated, SchemaNewer])
def test_errors_about_the_tables_are_schema_errors(kind: type) -> None:
    assert issubclass(kind, SchemaError)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (DuplicateTask("mail"), "a task named 'mail' exists already; give one of the two another name="),
        (TaskNotFound("mial", ["mail"]), "no task is named 'mial', did you mean 'mail'?"),
        (TaskNotFound("mail", []), "no task is named 'mail'"),
        (JobNotFound(7), "no job has the id 7; it may have been pruned"),
        (IllegalMove("ready", "succeeded"), "a job can't move from ready to succeeded"),
        (SchemaMissing(), "the database was never prepared for Mainspring; run `mainspring migrate`"),
        (
            SchemaOutdated(1, 3),
            "the database is at schema version 1, this mainspring needs 3; run `mainspring migrate`",
        ),
        (
            SchemaNewer(9, 3),
            "the database is at schema version 9, this mainspring knows only up to 3; "
            "upgrade the mainspring package on this machine",
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_an_error_builds_its_sentence_from_the_facts(error: MainspringError, message: str) -> None:
    assert str(error) == message


@pytest.mark.parametrize("kind", [InvalidValue, InvalidPayload, InvalidURL, NotFound, LeaseLost, StoreError, StoreFull])
def test_an_error_without_facts_says_what_it_was_given(kind: type[MainspringError]) -> None:
    assert str(kind("the disk is full")) == "the disk is full"


@pytest.mark.parametrize(
    ("word", "known", "hint"),
    [
        ("send_wellcome", ["send_welcome", "import_file"], ", did you mean 'send_welcome'?"),
        ("import_fil", ["import_file", "import_files"], ", did you mean 'import_file'?"),
        ("digest", ["send_welcome", "import_file"], ""),
        ("digest", [], ""),
        ("", ["digest"], ""),
    ],
)
def test_a_near_word_is_offered_and_a_far_one_is_not(word: str, known: list[str], hint: str) -> None:
    assert did_you_mean(word, known) == hint


def test_known_words_may_be_any_iterable() -> None:
    assert did_you_mean("diges", iter({"digest": 1})) == ", did you mean 'digest'?"


@pytest.mark.parametrize(
    "error",
    [
        errors.DuplicateTask("mail"),
        errors.TaskNotFound("mial", ["mail"]),
        errors.IllegalMove("failed", "running"),
        errors.SchemaMissing(),
        errors.SchemaNewer(9, 1),
        errors.StoreFull("full"),
    ],
)
def test_an_error_survives_being_copied(error: errors.MainspringError) -> None:
    """As it is on the way from one process to another."""
    copied = copy.copy(error)

    assert type(copied) is type(error)
    assert str(copied) == str(error)
