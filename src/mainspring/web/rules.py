"""Rules of alerts for people: in words, and as the fields of a form."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import msgspec

from mainspring.errors import InvalidValue, did_you_mean
from mainspring.model.alert import (
    RULES,
    Age,
    Alert,
    Dead,
    Depth,
    ErrorRate,
    Lag,
    MissedSchedules,
    MissingWorkers,
    Rule,
    Stuck,
)
from mainspring.model.duration import duration, spelled
from mainspring.model.span import span
from mainspring.model.text import counted, shortened
from mainspring.web.forms import Form
from mainspring.web.look import figure

KINDS: Mapping[str, str] = {
    "dead": "Jobs fail for good",
    "error_rate": "Too large a share of jobs fails",
    "depth": "Too many jobs wait in a queue",
    "age": "A job waits too long in a queue",
    "stuck": "A job runs too long",
    "missing_workers": "Too few workers serve a queue",
    "missed_schedules": "A schedule misses ticks or successes",
    "lag": "What is due is not made ready",
}
"""What each kind looks for, in the order in which they are offered."""

_LABELS = {
    "longer_than": "Longer than",
    "above": "Above",
    "over": "Looking back",
    "at_least": "Only if so many ended",
    "fewer_than": "Fewer workers than",
    "queue": "Queue",
    "task": "Task",
}
_NUMBER = re.compile(r"\d{1,9}", re.ASCII)
_SHARE = re.compile(r"(\d{1,3}(?:\.\d{1,9})?)\s*(%?)", re.ASCII)


@dataclass(frozen=True)
class Field:
    """A field of the form for a rule."""

    name: str
    label: str
    hint: str
    default: str
    required: bool


def fields_of(kind: str) -> list[Field]:
    """Return what the form for a rule of this *kind* asks for."""
    return [
        Field(one.name, _LABELS[one.name], _hint(one.type), _default(one), bool(one.required))
        for one in msgspec.structs.fields(_known(kind))
    ]


def rule_of(kind: str, form: Form) -> Rule:
    """Return the rule that *form* describes; of what it leaves empty, what is the usual."""
    made = _known(kind)
    given = {
        one.name: _read(one.type, form[one.name], _LABELS[one.name].lower())
        for one in msgspec.structs.fields(made)
        if form[one.name] or one.required
    }
    return made(**given)


def in_words(rule: Rule) -> str:
    """Return when *rule* holds."""
    match rule:
        case Stuck():
            return f"a job{_of(rule)} runs for longer than {spelled(rule.longer_than)}"
        case Lag():
            return f"what is due is not made ready within {spelled(rule.above)}"
        case Depth():
            return f"more than {counted(rule.above, 'job')} waiting in queue {rule.queue}"
        case Age():
            return f"a job of queue {rule.queue} waits for longer than {spelled(rule.above)}"
        case ErrorRate():
            share = f"more than {100 * rule.above:.4g}% of the jobs{_of(rule)} that ended within {spelled(rule.over)}"
            return f"{share} failed, of {rule.at_least:,} or more"
        case Dead():
            number = f"more than {counted(rule.above, 'job')}" if rule.above else "any job"
            return f"{number} failed for good within {spelled(rule.over)}"
        case MissingWorkers():
            where = f"queue {rule.queue}" if rule.queue else "a queue in which jobs are ready"
            return f"fewer than {counted(rule.fewer_than, 'worker')} for {where}"
        case MissedSchedules():
            return f"a schedule missed ticks within {spelled(rule.over)}, or the success that it should have had"


def value_of(alert: Alert) -> str:
    """Return the figure that the last look has found, in the unit of the rule's."""
    rule, value = alert.definition.rule, alert.value
    if value is not None and isinstance(rule, ErrorRate):
        return f"{value:.1%}"
    if value is not None and isinstance(rule, Lag | Age):
        return span(timedelta(seconds=value))
    return figure(value)


def _known(kind: str) -> type[Rule]:
    if kind not in RULES:
        raise InvalidValue(
            f"expected a rule to be one of {', '.join(RULES)}, got: {shortened(kind)}{did_you_mean(kind, RULES)}"
        )
    return RULES[kind]


def _of(rule: Stuck | ErrorRate) -> str:
    task = f" of task {rule.task}" if rule.task else ""
    return f"{task} in queue {rule.queue}" if rule.queue else task


def _hint(kind: Any) -> str:
    if kind is timedelta:
        return "a length of time, such as 10m"
    if kind is float:
        return "a share, such as 20%"
    return "a number" if kind is int else "a name"


def _default(field: Any) -> str:
    if field.required or field.default is None:
        return ""
    if isinstance(field.default, timedelta):
        return spelled(field.default)
    return f"{field.default:.0%}" if isinstance(field.default, float) else str(field.default)


def _read(kind: Any, text: str, label: str) -> Any:
    if kind is timedelta:
        return duration(text, label)
    if kind is float:
        return _share(text, label)
    if kind is int:
        if not _NUMBER.fullmatch(text):
            raise InvalidValue(f"expected {label} to be a whole number, got: {shortened(text)}")
        return int(text)
    return text


def _share(text: str, label: str) -> float:
    found = _SHARE.fullmatch(text)
    if found is None:
        raise InvalidValue(f"expected {label} to be a share such as 0.2 or 20%, got: {shortened(text)}")
    return float(found[1]) / (100 if found[2] else 1)
