"""A pytest plugin for `make mutants`: keep the tests whose ids begin with one of MAINSPRING_TEST_SELECT."""

from __future__ import annotations

import os

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    wanted = tuple(os.environ["MAINSPRING_TEST_SELECT"].splitlines())
    items[:] = [item for item in items if item.nodeid.startswith(wanted)]
