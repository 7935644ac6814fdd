"""What `import mainspring` offers."""

from __future__ import annotations

import re
from pathlib import Path

import mainspring
from mainspring import errors

ROOT = Path(__file__).parents[2]


def test_all_names_are_there_in_order() -> None:
    assert mainspring.__all__ == sorted(mainspring.__all__)
    assert [name for name in mainspring.__all__ if not hasattr(mainspring, name)] == []


def test_every_exception_that_users_are_told_of_can_be_imported_from_the_package() -> None:
    told = " ".join((ROOT / name).read_text() for name in ("README.md", "docs/tasks.md"))
    raised = {
        name for name, thing in vars(errors).items() if isinstance(thing, type) and issubclass(thing, BaseException)
    }
    named = raised & set(re.findall(r"\w+", told))

    assert {"LeaseLost", "JobFailed", "StoreUnavailable", "CancelRequested"} <= named
    assert sorted(named - set(mainspring.__all__)) == []
