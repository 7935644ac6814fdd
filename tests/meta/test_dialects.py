"""The two dialects have the same queries, the same parameters and the same truths."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files

import pytest

from mainspring.model.job import JobState, Wish
from mainspring.store.migrate import load_migrations
from mainspring.store.queries import AMBIENT, Query, load_queries

SQLITE, POSTGRES = "mainspring.store.sqlite", "mainspring.store.postgres"


def shared_files(package: str) -> dict[str, str]:
    found = {file.name: file.read_text() for file in files(package).joinpath("sql").iterdir()}
    return {name: text for name, text in found.items() if name not in ("fragments.sql", "own.sql")}


def shared_queries(package: str) -> Mapping[str, Query]:
    queries = load_queries(package)
    names = {name for text in shared_files(package).values() for name in re.findall(r"-- name: (\w+)", text)}
    return {name: queries[name] for name in names}


def test_both_have_the_same_files_with_the_same_queries_in_the_same_order() -> None:
    def outline(package: str) -> dict[str, list[str]]:
        return {name: re.findall(r"-- name: (\w+)", text) for name, text in shared_files(package).items()}

    assert outline(SQLITE) == outline(POSTGRES)


def test_each_query_takes_the_same_parameters_in_both() -> None:
    def parameters(package: str) -> dict[str, frozenset[str]]:
        return {name: query.parameters - AMBIENT for name, query in shared_queries(package).items()}

    assert parameters(SQLITE) == parameters(POSTGRES)


def test_a_postgres_query_is_one_statement() -> None:
    """It goes out in the extended protocol, in one round trip, and is atomic without a transaction around it."""
    assert {name for name, query in load_queries(POSTGRES).items() if len(query.statements) != 1} == set()


def test_no_query_is_named_twice() -> None:
    for package in (SQLITE, POSTGRES):
        names = [
            name
            for file in files(package).joinpath("sql").iterdir()
            for name in re.findall(r"-- name: (\w+)", file.read_text())
        ]
        assert len(names) == len(set(names))


def test_both_have_migrations_of_the_same_numbers_and_names() -> None:
    def outline(package: str) -> list[tuple[int, str]]:
        return [(migration.number, migration.name) for migration in load_migrations(package)]

    assert outline(SQLITE) == outline(POSTGRES) == [(n, name) for n, (_, name) in enumerate(outline(SQLITE), 1)]


@pytest.mark.parametrize("package", [SQLITE, POSTGRES])
def test_the_states_that_the_tables_allow_are_those_of_the_model(package: str) -> None:
    script = "".join(migration.script for migration in load_migrations(package))
    allowed = [set(re.findall(r"'(\w+)'", body)) for body in re.findall(r"CHECK \(state IN \(([^)]*)\)\)", script)]
    wishes = [set(re.findall(r"'(\w+)'", body)) for body in re.findall(r"CHECK \(wish IN \(([^)]*)\)\)", script)]

    assert allowed == [{state for state in JobState if not state.final}, {state for state in JobState if state.final}]
    assert wishes == [set(Wish)]
