"""Names by which another process finds the same function or class.

They come from this program's own tasks. Nothing that a job carries is ever taken for a name.
"""

from __future__ import annotations

import importlib
import sys
from contextvars import ContextVar
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from mainspring.errors import InvalidValue, MainspringError
from mainspring.model.task import Task

MAIN_ELSEWHERE = "__mainspring_child__"
"""What the file that a program was started with is called where it is only loaded."""

_loading = ContextVar("loading", default=False)


class Reference(msgspec.Struct, frozen=True):
    """Where something is found: under a name in a module, or in the file that the program was started with."""

    place: str
    name: str
    is_file: bool = False


def reference_to(thing: object) -> Reference | None:
    """Return how another process finds *thing*, a function or class; None when it has no name that leads to it."""
    place, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    if not isinstance(place, str) or not isinstance(name, str) or place not in sys.modules:
        return None
    try:
        found = _follow(sys.modules[place], name)
    except AttributeError:
        return None
    if found != thing:
        return None
    return _in_main(sys.modules[place], name) if place == "__main__" else Reference(place, name)


def handler_reference(task: Task) -> Reference:
    """Return how another process finds the handler of *task*, or say what is wrong with it."""
    found = reference_to(task.handler)
    if found is None:
        raise InvalidValue(_expectation(f"{task.handler!r}"))
    return found


def importable(task: Task) -> bool:
    """Return whether the handler of *task* can be imported elsewhere, which must not run the main program again."""
    return getattr(task.handler, "__module__", None) != "__main__" and reference_to(task.handler) is not None


def find(reference: Reference) -> Any:
    """Return what *reference* leads to, having loaded its module; for a task that is its handler."""
    outer = _loading.set(True)
    try:
        module = _load_main(reference.place) if reference.is_file else importlib.import_module(reference.place)
    finally:
        _loading.reset(outer)
    try:
        return _follow(module, reference.name)
    except AttributeError:
        where = f"{reference.place} has no {reference.name} when it is imported"
        raise InvalidValue(_expectation(f"one that is not: {where}")) from None


def check_not_loading() -> None:
    """Refuse what would begin anew in every process that only looks for a handler."""
    if _loading.get():
        raise MainspringError(
            "a module that has handlers for executor='process' starts a worker as soon as it is imported; "
            "put that under `if __name__ == '__main__':`"
        )


def _expectation(got: str) -> str:
    return f"expected executor='process' with a function that can be imported by name, got {got}"


def _follow(module: ModuleType, name: str) -> Any:
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part)
    task = getattr(found, "task", None)
    return task.handler if isinstance(task, Task) else found


def _in_main(main: ModuleType, name: str) -> Reference | None:
    """Return how to find *name* of the main module: by its real name after `python -m`, else by its file."""
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name != "__main__":
        return Reference(spec.name, name)
    file = getattr(main, "__file__", None)
    return Reference(str(Path(file).absolute()), name, is_file=True) if file and Path(file).is_file() else None


def _load_main(file: str) -> ModuleType:
    """Run the main module's file under another name, so that what stands under `__main__` there is left out."""
    if MAIN_ELSEWHERE not in sys.modules:
        loader = SourceFileLoader(MAIN_ELSEWHERE, file)
        spec = spec_from_loader(MAIN_ELSEWHERE, loader)
        assert spec is not None
        module = sys.modules[MAIN_ELSEWHERE] = module_from_spec(spec)
        try:
            loader.exec_module(module)
        except BaseException:
            del sys.modules[MAIN_ELSEWHERE]
            raise
    return sys.modules[MAIN_ELSEWHERE]
