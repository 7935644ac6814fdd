"""A task: a named handler with default policies."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from mainspring.errors import DuplicateTask, InvalidPayload, TaskNotFound
from mainspring.model.job import Priority, check_name
from mainspring.model.payload import convert, decode_call, encode_call
from mainspring.model.retry import Retry


@dataclass(frozen=True, kw_only=True)
class Task:
    """A named handler and what its jobs are like unless they say otherwise."""

    name: str
    handler: Callable[..., Any]
    queue: str = "default"
    priority: int = Priority.NORMAL
    retry: Retry = field(default_factory=Retry)

    def __post_init__(self) -> None:
        check_name(self.name, "task name")
        check_name(self.queue, "queue")

    def encode(self, /, *args: object, **kwargs: object) -> str:
        """Return the payload of a call with these arguments, having checked that the handler could take them."""
        self._bind(args, kwargs)
        payload = encode_call(args, kwargs)
        self.decode(payload)
        return payload

    def decode(self, payload: str) -> inspect.BoundArguments:
        """Return the arguments that *payload* carries, each converted as the handler's annotations ask."""
        call = decode_call(payload)
        bound = self._bind(tuple(call.args), call.kwargs)
        for parameter in bound.signature.parameters.values():
            if parameter.name in bound.arguments and parameter.name in self._hints:
                value, hint = bound.arguments[parameter.name], self._hints[parameter.name]
                bound.arguments[parameter.name] = _convert(parameter, value, hint)
        return bound

    def _bind(self, args: tuple[object, ...], kwargs: dict[str, object]) -> inspect.BoundArguments:
        try:
            return self._signature.bind(*args, **kwargs)
        except (TypeError, ValueError) as error:
            raise InvalidPayload(f"task {self.name!r} can't be called like that: {error}") from None

    @functools.cached_property
    def _signature(self) -> inspect.Signature:
        return inspect.signature(self.handler)

    @functools.cached_property
    def _hints(self) -> dict[str, Any]:
        try:
            return typing.get_type_hints(_annotated(self.handler), include_extras=True)
        except NameError as error:
            raise InvalidPayload(f"task {self.name!r} has an annotation that can't be resolved: {error}") from None


def _annotated(handler: Callable[..., Any]) -> Callable[..., Any]:
    """Return what carries the annotations of *handler*, which may be a partial or an object that can be called."""
    while isinstance(handler, functools.partial):
        handler = handler.func
    return handler if inspect.isroutine(handler) or inspect.isclass(handler) else type(handler).__call__


def _convert(parameter: inspect.Parameter, value: Any, hint: Any) -> Any:
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        return tuple(convert(item, hint, f"argument '*{parameter.name}'") for item in value)
    if parameter.kind is inspect.Parameter.VAR_KEYWORD:
        return {name: convert(item, hint, f"argument {name!r}") for name, item in value.items()}
    return convert(value, hint, f"argument {parameter.name!r}")


class Registry:
    """The tasks that this program knows, by name."""

    def __init__(self) -> None:
        self._tasks: dict[str, Task] = {}

    def add(self, task: Task) -> None:
        """Register *task*; a second task of the same name is an error."""
        if task.name in self._tasks:
            raise DuplicateTask(task.name)
        self._tasks[task.name] = task

    def get(self, name: str) -> Task:
        """Return the task called *name*."""
        try:
            return self._tasks[name]
        except KeyError:
            raise TaskNotFound(name, self._tasks) from None

    def __contains__(self, name: str) -> bool:
        return name in self._tasks

    def __iter__(self) -> Iterator[Task]:
        return iter(self._tasks.values())
