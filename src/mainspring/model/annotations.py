"""What the annotations of a handler mean."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any


def annotated(handler: Callable[..., Any]) -> Callable[..., Any]:
    """Return what carries the annotations of *handler*, which may be a partial or an object that can be called."""
    while isinstance(handler, functools.partial):
        handler = handler.func
    if inspect.isclass(handler):
        return handler.__init__
    return handler if inspect.isroutine(handler) else type(handler).__call__


def hints(handler: Callable[..., Any], wanted: Callable[[str], bool]) -> dict[str, Any]:
    """Return what the *wanted* annotations of *handler* mean, by name; raise what looking one of them up raises.

    The others need not make sense: a name may be defined further down, or be imported for type checkers alone.
    """
    source = annotated(handler)
    kept = {name: note for name, note in getattr(source, "__annotations__", {}).items() if wanted(name)}
    # Names are looked up where that was defined which seems to be wrapped here.
    parameters = getattr(source, "__type_params__", ())
    carrier = SimpleNamespace(__annotations__=kept, __wrapped__=source, __type_params__=parameters)
    return typing.get_type_hints(carrier, include_extras=True)
