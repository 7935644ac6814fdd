"""A handler: what a function must be to become a task."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from types import UnionType
from typing import Annotated, Any, ForwardRef, Union, get_args, get_origin

from mainspring.errors import InvalidValue, did_you_mean
from mainspring.model.annotations import annotated, hints
from mainspring.model.task import Executor, Task
from mainspring.model.text import shortened
from mainspring.worker.context import Context
from mainspring.worker.executors.references import handler_reference

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def check_handler(handler: Callable[..., Any]) -> None:
    """Refuse what can't be called, and what would not give its result when it is."""
    expected = "expected a function to make a task of, got"
    if isinstance(handler, str):
        raise InvalidValue(f"{expected}: {shortened(handler)}; write @app.task(name={shortened(handler)})")
    if not callable(handler):
        raise InvalidValue(f"{expected}: {shortened(handler)}")
    if inspect.isclass(handler):
        raise InvalidValue(f"{expected} the class {handler.__qualname__}; write a function that uses it")
    if _is(inspect.isgeneratorfunction, handler) or _is(inspect.isasyncgenfunction, handler):
        raise InvalidValue(
            f"{expected} the generator {name_of(handler)}, which yields; return a list, or enqueue a job for each item"
        )


def task_name(handler: Callable[..., Any]) -> str:
    """Return the name that a task has by its function."""
    name = getattr(handler, "__name__", None)
    if not isinstance(name, str) or name == "<lambda>":
        raise InvalidValue(f"expected a function that has a name, got: {shortened(handler)}; give the task a name=")
    return name


def executor_of(handler: Callable[..., Any], wanted: str | None) -> Executor:
    """Return what runs *handler*: the *wanted* executor if it can, else the one for functions of its kind."""
    awaits = _is(inspect.iscoroutinefunction, handler)
    if wanted is None:
        return Executor.COROUTINE if awaits else Executor.THREAD
    known = [executor for executor in Executor if executor is not Executor.COMMAND]
    if wanted not in known:
        hint = did_you_mean(str(wanted), known)
        raise InvalidValue(f"expected executor to be one of {', '.join(known)}, got: {shortened(wanted)}{hint}")
    if awaits != (wanted == Executor.COROUTINE):
        kind = "a coroutine function" if awaits else "a plain function"
        raise InvalidValue(f"expected a handler that executor={wanted!r} can run, got {kind}")
    return Executor(wanted)


def check_findable(task: Task) -> None:
    """Refuse a handler that its process would not find, if that is certain already.

    Others can be judged only when their module is complete: now even a function of a module is not in it yet.
    """
    if task.executor is Executor.PROCESS and "<" in getattr(task.handler, "__qualname__", ""):
        handler_reference(task)


def context_of(handler: Callable[..., Any]) -> str | None:
    """Return the name of the parameter that is annotated as a Context."""
    try:
        parameters = list(inspect.signature(handler).parameters.values())
    except (TypeError, ValueError):
        return None  # refused when it is enqueued, with the reason
    found = [parameter for parameter in parameters if _is_context(_annotation(handler, parameter))]
    if not found:
        return None
    parameter = found[0]
    first = parameter is parameters[0] and parameter.kind not in _VARIADIC
    if len(found) > 1 or not (first or parameter.kind is inspect.Parameter.KEYWORD_ONLY):
        raise InvalidValue(
            "expected the Context to be one parameter: the first, or one that is passed by name only, "
            f"got: {name_of(handler)}({', '.join(parameter.name for parameter in parameters)})"
        )
    return parameter.name


def name_of(handler: Callable[..., Any]) -> str:
    """Return what to call *handler* in a message."""
    return str(getattr(annotated(handler), "__qualname__", None) or shortened(handler))


def _is(kind: Callable[[Any], bool], handler: Callable[..., Any]) -> bool:
    """Return whether *handler* is of a *kind* of function; an object that can be called is what its `__call__` is."""
    return kind(handler) or kind(annotated(handler))


def _annotation(handler: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    """Return what a parameter is annotated as, or the text of that if it can't be told yet what it means."""
    try:
        return hints(handler, parameter.name.__eq__).get(parameter.name, parameter.annotation)
    except Exception:  # noqa: BLE001 - an annotation is any expression, and may raise anything
        return parameter.annotation


def _is_context(annotation: Any) -> bool:
    if isinstance(annotation, ForwardRef):
        annotation = annotation.__forward_arg__
    if isinstance(annotation, str):
        # Never resolved, as when it is imported for type checkers alone; the name is all there is to go by.
        words = set(re.findall(r"[\w.]+", annotation)) - {"None", "Optional", "typing.Optional"}
        return words in ({"Context"}, {"mainspring.Context"})
    if get_origin(annotation) in (Annotated, Union, UnionType):
        return any(_is_context(part) for part in get_args(annotation))
    return annotation is Context
