"""A task: a named handler with default policies."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

import msgspec

from mainspring.errors import DuplicateTask, InvalidPayload, InvalidValue, TaskNotFound
from mainspring.model.annotations import hints
from mainspring.model.breaker import Breaker
from mainspring.model.duration import duration
from mainspring.model.job import Priority, check_expires, check_key, check_name, check_priority
from mainspring.model.limits import Limit, Want, want_of
from mainspring.model.payload import Ref, convert, decode_call, encode_call
from mainspring.model.retry import Retry
from mainspring.model.secret import named_by
from mainspring.model.template import check_template, fields, render
from mainspring.model.text import shortened

Arguments = tuple[tuple[Any, ...], dict[str, Any]]

_SHAPES = 16
"""Kinds of calls for which a task keeps a decoder; a handler with **kwargs could have any number."""


class Executor(StrEnum):
    """What runs a handler."""

    THREAD = "thread"
    COROUTINE = "coroutine"
    PROCESS = "process"
    COMMAND = "command"  # for the built-in task of that name


@dataclass(frozen=True, kw_only=True)
class Task:
    """A named handler and what its jobs are like unless they say otherwise.

    `context` names the parameter that takes the attempt's Context; it is no argument of the job.
    """

    name: str
    handler: Callable[..., Any]
    queue: str = "default"
    priority: int = Priority.NORMAL
    retry: Retry = field(default_factory=Retry)
    timeout: timedelta | None = None
    expires: timedelta | None = None
    executor: Executor = Executor.THREAD
    context: str | None = None
    limits: Sequence[Limit] = ()
    breaker: Breaker | None = None
    key: str | None = None  # a template over the arguments
    fair: str | None = None  # likewise: whose jobs take turns with whose
    notify: str | None = None  # who is told of what becomes of its jobs, as JSON
    makes_workflow: bool = False
    attempts: str | None = None  # the parameter, if there is one, that says how many a job has at most
    encrypt: bool = False  # whether arguments and results are sealed
    check: Callable[[Mapping[str, Any]], None] | None = None  # refuses values that its annotations let through
    _shapes: dict[_Shape, msgspec.json.Decoder[Any]] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_name(self.name, "task name")
        check_name(self.queue, "queue")
        check_priority(self.priority)
        _check_retry(self.retry)
        if self.timeout is not None and duration(self.timeout, "timeout") == timedelta(0):
            raise InvalidValue("expected timeout to be longer than 0; leave it out for none")
        _check_limits(self)
        _check_breaker(self)
        check_encrypt(self.encrypt)
        if self.expires is not None:
            check_expires(self.expires)
        if self.key is not None:
            check_key(self.key)
            check_template(self.key, "key", self.parameters)
        if self.fair is not None:
            check_key(self.fair, "fair")
            check_template(self.fair, "fair", self.parameters)

    @functools.cached_property
    def result_type(self) -> Any:
        """What the handler returns, by its annotation; Any where that has none, or none that can be told."""
        try:
            return hints(self.handler, "return".__eq__).get("return", Any)
        except Exception:  # noqa: BLE001 - an annotation is any expression, and may raise anything
            return Any

    @functools.cached_property
    def context_by_name(self) -> bool:
        """Whether the context is passed by name; else it is the first argument."""
        return inspect.signature(self.handler).parameters[self.context or ""].kind is inspect.Parameter.KEYWORD_ONLY

    def encode(self, /, *args: object, **kwargs: object) -> str:
        """Return the payload of a call with these arguments, having checked that the handler could take them."""
        decoder = self._shapes.get((len(args), tuple(kwargs)))
        if decoder is None:
            self.bind(args, kwargs)
        payload = encode_call(args, kwargs)
        if decoder is None or not _fits(decoder, payload):
            self._decode_slowly(payload)
        return payload

    def encode_linked(self, args: Sequence[object], kwargs: Mapping[str, object], refs: Sequence[Ref]) -> str:
        """Return the payload of such a call in which results of other jobs take the places of some arguments.

        Those are checked when the job runs.
        """
        if not refs:
            return self.encode(*args, **kwargs)
        self.bind(args, kwargs)
        payload = encode_call(args, kwargs, refs)
        self._decode_slowly(payload, self._referring(refs))
        return payload

    def encode_map(
        self, items: Sequence[object] | None, args: Sequence[object], kwargs: Mapping[str, object], refs: Sequence[Ref]
    ) -> str:
        """Return the payload of a job that calls the handler with each of *items*, and the other arguments, in turn.

        If they are not known yet, a ref says which job returns them.
        """
        others = [ref for ref in refs if ref.path[:2] != ("args", 0)]
        unknown = {ref.path[2] for ref in refs if ref not in others and len(ref.path) > 2}
        for place, item in enumerate(items or ()):
            if place not in unknown:
                self.encode_linked([item, *args], kwargs, others)
        self.encode_linked([None, *args], kwargs, [*others, Ref(("args", 0), UUID(int=0))])
        return encode_call([items, *args], kwargs, refs)

    def decode(self, payload: str) -> Arguments:
        """Return the arguments that *payload* carries, each converted as the handler's annotations ask."""
        for decoder in self._shapes.values():
            arguments = _quickly(decoder, payload)
            if arguments is not None:
                return arguments
        return self._decode_slowly(payload)

    def bind(self, args: Sequence[object], kwargs: Mapping[str, object]) -> inspect.BoundArguments:
        """Return which parameter of the handler takes which argument, the context left out."""
        try:
            return self._signature.bind(*args, **kwargs)
        except (TypeError, ValueError) as error:
            raise InvalidPayload(f"task {self.name!r} can't be called like that: {error}") from None

    @property
    def parameters(self) -> Collection[str]:
        """The names by which a template may call the arguments of a job."""
        return [name for name, parameter in self._signature.parameters.items() if parameter.kind not in _VARIADIC]

    def named(self, payload: str) -> Mapping[str, object]:
        """Return the arguments that *payload* carries by the names of their parameters, defaults among them."""
        call = decode_call(payload)
        return {**self._defaults, **dict(zip(self._places, call.args, strict=False)), **call.kwargs}

    def retry_of(self, payload: str) -> Retry:
        """Return when a job with this payload is tried again."""
        if self.attempts is None:
            return self.retry
        try:
            return self.retry.within(convert(self.named(payload)[self.attempts], int, self.attempts))
        except (InvalidValue, KeyError):
            return self.retry

    @property
    def limited(self) -> bool:
        """Whether its jobs have to ask before they start."""
        return bool(self.limits) or self.breaker is not None

    def wants(self, payload: str) -> list[Want]:
        """Return what a job with this payload wants of the limits, and of the breaker first.

        Nothing if it can't be run anyway.
        """
        if not self.limited:
            return []
        try:
            arguments = self.named(payload)
            wants = [] if self.breaker is None else [want_of(self.breaker, arguments)]
            wants += [limit.want(arguments) for limit in self.limits]
        except (InvalidPayload, KeyError):  # the last for an argument that is missing
            return []
        return wants if len(wants) == 1 else list({want.key: want for want in wants}.values())

    def patched(self, payload: str, patch: Mapping[str, object]) -> str:
        """Return *payload* with the arguments that *patch* names set, by position where they were, and checked."""
        call = decode_call(payload)
        args, kwargs = list(call.args), dict(call.kwargs)
        for name, value in patch.items():
            place = self._places.get(name, len(args))
            if place < len(args):
                args[place] = value
            else:
                kwargs[name] = value
        return self.encode(*args, **kwargs)

    def key_of(self, payload: str) -> str | None:
        """Return the key of a job with this payload, if the task says what it is."""
        return None if self.key is None else self._rendered(self.key, "key", payload)

    def fair_of(self, payload: str) -> str | None:
        """Return the fair key of a job with this payload, if the task says what it is."""
        return None if self.fair is None else self._rendered(self.fair, "fair", payload)

    def _rendered(self, template: str, name: str, payload: str) -> str:
        unknown = fields(template, name) & self._referring(decode_call(payload).refs)
        if unknown:
            raise InvalidValue(
                f"the {name} of task {self.name!r} is {template!r}, and argument {min(unknown)!r} is the result of "
                f"another job, not known yet; give this job a {name} of its own with using({name}=...), or None"
            )
        return render(template, name, self.named(payload))

    def _referring(self, refs: Iterable[Ref]) -> set[str]:
        """Return the names of the parameters whose values are, or hold, results of other jobs."""
        by_place = {place: name for name, place in self._places.items()}
        parameters = self._signature.parameters.values()
        rest = {parameter.kind: parameter.name for parameter in parameters if parameter.kind in _VARIADIC}
        names: set[str] = set()
        for ref in refs:
            kind, place = ref.path[:2]
            if kind == "args":
                names.add(by_place.get(int(place)) or rest[inspect.Parameter.VAR_POSITIONAL])
            else:
                known = place in self._signature.parameters
                names.add(str(place) if known else rest[inspect.Parameter.VAR_KEYWORD])
        return names

    def _decode_slowly(self, payload: str, unknown: Collection[str] = ()) -> Arguments:
        """Decode with a good word for every mistake; a call that has none gets a decoder for others like it.

        Arguments that are *unknown* yet are left as they are.
        """
        call = decode_call(payload)
        bound = self.bind(call.args, call.kwargs)
        for parameter in bound.signature.parameters.values():
            if parameter.name in bound.arguments and parameter.name in self._hints and parameter.name not in unknown:
                value, hint = bound.arguments[parameter.name], self._hints[parameter.name]
                bound.arguments[parameter.name] = _convert(parameter, value, hint)
        if self.check is not None:
            _check_values(self.check, bound.arguments, unknown)
        elif not unknown:  # a decoder would pass the check by
            self._learn(len(call.args), tuple(call.kwargs))
        return bound.args, bound.kwargs

    def _learn(self, positional: int, named: tuple[str, ...]) -> None:
        parameters = list(self._signature.parameters.values())
        if len(self._shapes) >= _SHAPES or any(parameter.kind in _VARIADIC for parameter in parameters):
            return
        hints = [(parameter.name, self._hints.get(parameter.name, Any)) for parameter in parameters]
        args: Any = tuple.__class_getitem__(tuple(hint for _, hint in hints[:positional]))
        kwargs = msgspec.defstruct("Kwargs", [(name, dict(hints)[name]) for name in named], forbid_unknown_fields=True)
        call = msgspec.defstruct("Call", [("args", args), ("kwargs", kwargs)])
        try:
            self._shapes[positional, named] = msgspec.json.Decoder(call)
        except TypeError:
            return  # an annotation that can be converted to, but not decoded to

    @functools.cached_property
    def _defaults(self) -> dict[str, object]:
        parameters = self._signature.parameters.values()
        return {one.name: one.default for one in parameters if one.default is not inspect.Parameter.empty}

    @functools.cached_property
    def _signature(self) -> inspect.Signature:
        signature = inspect.signature(self.handler)
        kept = [parameter for parameter in signature.parameters.values() if parameter.name != self.context]
        return signature.replace(parameters=kept)

    @functools.cached_property
    def _places(self) -> Mapping[str, int]:
        """Which parameter takes the argument at which place."""
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        parameters = self._signature.parameters.values()
        return {parameter.name: n for n, parameter in enumerate(parameters) if parameter.kind in kinds}

    @functools.cached_property
    def _hints(self) -> dict[str, Any]:
        try:
            return hints(self.handler, lambda name: name not in ("return", self.context))
        except Exception as error:  # noqa: BLE001 - an annotation is any expression, and may raise anything
            raise InvalidPayload(f"task {self.name!r} has an annotation that can't be resolved: {error}") from None


def check_encrypt(encrypt: bool) -> None:
    """Refuse what does not say whether to encrypt."""
    if not isinstance(encrypt, bool):
        raise InvalidValue(f"expected encrypt to be True or False, got: {shortened(encrypt)}")


def _check_limits(task: Task) -> None:
    if isinstance(task.limits, Limit) or not isinstance(task.limits, Sequence):
        raise InvalidValue(f"expected limits to be a list of Limit, got: {shortened(task.limits)}")
    for limit in task.limits:
        if not isinstance(limit, Limit):
            raise InvalidValue(f"expected limits to be a list of Limit, got in it: {shortened(limit)}")
        check_template(limit.key, "the key of a limit", task.parameters)
    if len({limit.key for limit in task.limits}) < len(task.limits):
        raise InvalidValue(f"expected each limit of task {task.name!r} to have a key of its own, got one twice")


def _check_breaker(task: Task) -> None:
    if task.breaker is None:
        return
    if not isinstance(task.breaker, Breaker):
        raise InvalidValue(f"expected breaker to be a Breaker such as Breaker('smtp'), got: {shortened(task.breaker)}")
    check_template(task.breaker.key, "the key of a breaker", task.parameters)


def _check_retry(retry: Retry) -> None:
    if isinstance(retry, Retry):
        return
    # Whoever gives a number means attempts; whoever gives nothing, or False, wants no retries.
    instead = f"Retry(max_attempts={retry})" if type(retry) is int and retry > 0 else "Retry(max_attempts=1) for none"
    raise InvalidValue(f"expected retry to be a Retry, got: {shortened(retry)}; write {instead}")


_Shape = tuple[int, tuple[str, ...]]
"""How many arguments a call has by position, and which by name."""

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _fits(decoder: msgspec.json.Decoder[Any], payload: str) -> bool:
    try:
        decoder.decode(payload)
    except msgspec.MsgspecError:
        return False
    return True


def _quickly(decoder: msgspec.json.Decoder[Any], payload: str) -> Arguments | None:
    """Return the arguments in *payload*, or None if it is not the kind of call that *decoder* is for."""
    try:
        call = decoder.decode(payload)
    except msgspec.MsgspecError:
        return None
    return call.args, msgspec.structs.asdict(call.kwargs)


def _convert(parameter: inspect.Parameter, value: Any, hint: Any) -> Any:
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        return tuple(convert(item, hint, f"argument '*{parameter.name}'") for item in value)
    if parameter.kind is inspect.Parameter.VAR_KEYWORD:
        return {name: convert(item, hint, f"argument {name!r}") for name, item in value.items()}
    return convert(value, hint, f"argument {parameter.name!r}")


def _check_values(
    check: Callable[[Mapping[str, Any]], None], arguments: Mapping[str, Any], unknown: Collection[str]
) -> None:
    """Have the *arguments* checked that are known yet: no results of other jobs, and no secrets."""
    try:
        check({name: value for name, value in arguments.items() if name not in unknown and named_by(value) is None})
    except InvalidPayload:
        raise
    except InvalidValue as error:
        raise InvalidPayload(str(error)) from None


def _for_workers_to_know(*args: object, **kwargs: object) -> None:
    """Stands for a handler that is not in this program."""


BUILTIN = "mainspring."
"""What the names of tasks begin with that every program knows, and no other."""


class Registry:
    """The tasks that this program knows, by name: its own, and those that are built in.

    With *encrypt*, what is said of no task in particular is that arguments and results are sealed.
    """

    def __init__(self, builtin: Iterable[Task] = (), *, encrypt: bool = False) -> None:
        self.encrypt = encrypt
        self._tasks: dict[str, Task] = {}
        self._builtin = {task.name: task for task in builtin}
        self._by_executor: dict[Executor, dict[str, Task]] = {executor: {} for executor in Executor}
        self._followers: list[Callable[[Task], None]] = []

    def add(self, task: Task) -> None:
        """Register *task*; a second task of the same name is an error."""
        if task.name.startswith(BUILTIN):
            raise InvalidValue(f"expected a task name that does not begin with {BUILTIN!r}, got: {task.name!r}")
        if task.name in self._tasks:
            raise DuplicateTask(task.name)
        self._put(task)

    def _put(self, task: Task) -> None:
        self._tasks[task.name] = task
        self._by_executor[task.executor][task.name] = task
        for tell in self._followers:
            tell(task)

    @contextmanager
    def followed_by(self, tell: Callable[[Task], None]) -> Iterator[None]:
        """Have *tell* called with every task that is registered while the block lasts."""
        self._followers.append(tell)
        try:
            yield
        finally:
            self._followers.remove(tell)

    @contextmanager
    def served_with(self, builtin: Iterable[Task]) -> Iterator[Registry]:
        """Lend the tasks of this program, also those that are registered meanwhile, together with *builtin* ones."""
        served = Registry(self._builtin.values())
        with self.followed_by(served._put):
            for task in [*self._tasks.values(), *builtin]:
                served._put(task)
            yield served

    @property
    def builtin(self) -> Collection[str]:
        """The names of those that are built in."""
        return self._builtin

    def run_by(self, executor: Executor) -> Mapping[str, Task]:
        """Return the tasks that *executor* runs, among them those that are registered later."""
        return self._by_executor[executor]

    def get(self, name: str) -> Task:
        """Return the task called *name*."""
        found = self._tasks.get(name) or self._builtin.get(name)
        if found is None:
            raise TaskNotFound(name, [*self._tasks, *self._builtin])
        return found

    def to_send(self, name: str) -> Task:
        """Return the task called *name*, for whoever enqueues it by name.

        A program that has tasks knows them all; one that has none is a mere sender, and may name any but built-in ones.
        """
        known = bool(self._tasks) or (name.startswith(BUILTIN) and bool(self._builtin))
        return self.get(name) if known else self._unknown(name)

    def known(self, name: str) -> Task:
        """Return the task called *name*, or one that takes any arguments if this program does not know it."""
        return self._tasks.get(name) or self._builtin.get(name) or self._unknown(name)

    def _unknown(self, name: str) -> Task:
        return Task(name=name, handler=_for_workers_to_know, encrypt=self.encrypt)

    def __len__(self) -> int:
        return len(self._tasks)

    def __contains__(self, name: str) -> bool:
        return name in self._tasks or name in self._builtin

    def __iter__(self) -> Iterator[Task]:
        return iter(self._tasks.values())
