"""`mainspring alerts add`: have people told when a rule holds."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any

import msgspec
import typer

from mainspring.app import DEFAULT_URL
from mainspring.cli.alerts.look import told_alert
from mainspring.cli.alerts.options import AlertId
from mainspring.cli.apps import app_at
from mainspring.cli.note import note
from mainspring.cli.options import AsJson, Team, Url
from mainspring.cli.output import say, say_json
from mainspring.cli.values import VEILED, length, share, value, veiled, whole_number
from mainspring.documents.told import as_document
from mainspring.errors import InvalidValue, did_you_mean
from mainspring.model.alert import EVERY, RULES, Rule, described
from mainspring.model.channel import channel_of
from mainspring.model.duration import spelled
from mainspring.model.text import shortened

RuleName = Annotated[
    str,
    typer.Argument(metavar="RULE", help=f"One of {', '.join(RULES)}.", autocompletion=lambda: list(RULES)),
]
Above = Annotated[
    str | None,
    typer.Option("--above", metavar="THRESHOLD", help="A number of jobs, a share or a length of time, by the rule."),
]
Over = Annotated[str | None, typer.Option("--over", metavar="LENGTH", help="How far back to look, as in 10m.")]
LongerThan = Annotated[
    str | None, typer.Option("--longer-than", metavar="LENGTH", help="How long a job may run, as in 1h.")
]
AtLeast = Annotated[
    str | None, typer.Option("--at-least", metavar="N", help="How many jobs it takes to tell an error rate.")
]
FewerThan = Annotated[str | None, typer.Option("--fewer-than", metavar="N", help="How many workers there should be.")]
Queue = Annotated[str | None, typer.Option("--queue", metavar="QUEUE", help="The queue to look at.")]
Task = Annotated[str | None, typer.Option("--task", metavar="TASK", help="Only jobs of this task.")]
Every = Annotated[str, typer.Option("--every", metavar="LENGTH", help="How often to look.")]
Hold = Annotated[
    str, typer.Option("--hold", metavar="LENGTH", help="How long the rule must hold before anybody is told.")
]
Notify = Annotated[
    list[str] | None,
    typer.Option(
        "--notify", metavar="JSON", help=f"A channel by which to tell people. May be given several times. {VEILED}"
    ),
]


def add(  # noqa: PLR0913 - one parameter for each option
    alert_id: AlertId,
    rule_name: RuleName,
    above: Above = None,
    over: Over = None,
    longer_than: LongerThan = None,
    at_least: AtLeast = None,
    fewer_than: FewerThan = None,
    queue: Queue = None,
    task: Task = None,
    every: Every = spelled(EVERY),
    hold: Hold = "0s",
    notify: Notify = None,
    team: Team = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Add an alert, or define one anew whose id is known.

    It fires when its rule holds, and has resolved when that no longer does; of either people are told once.
    """
    thresholds = {
        "above": above,
        "over": over,
        "longer_than": longer_than,
        "at_least": at_least,
        "fewer_than": fewer_than,
        "queue": queue,
        "task": task,
    }
    rule = _rule(rule_name, {name: text for name, text in thresholds.items() if text is not None})
    channels = [channel_of(value(veiled(text, "--notify"))) for text in notify or []]
    with app_at(url, team=team, new=True) as app:
        note(app, "alert.put", [alert_id], rule=described(rule))
        alert = told_alert(
            app.alerts.add(alert_id, rule, every=length(every, "--every"), hold=length(hold, "--hold"), notify=channels)
        )
    if as_json:
        say_json(as_document(alert))
    else:
        say(f"{alert.id}: {alert.rule['text']}, looked at every {alert.every}")


def _rule(name: str, given: Mapping[str, str]) -> Rule:
    if name not in RULES:
        raise InvalidValue(f"expected RULE to be one of {', '.join(RULES)}, got: {name!r}{did_you_mean(name, RULES)}")
    fields = {field.name: field for field in msgspec.structs.fields(RULES[name])}
    for option in given:
        if option not in fields:
            takes = " and ".join(map(_option, fields))
            raise InvalidValue(f"expected {takes} with the rule {name}, got: {_option(option)}")
    missing = [one.name for one in fields.values() if one.required and one.name not in given]
    if missing:
        raise InvalidValue(f"expected {_option(missing[0])} with the rule {name}, got none")
    read = {one: _read(fields[one].type, text, _option(one)) for one, text in given.items()}
    return RULES[name](**read)


def _option(field: str) -> str:
    return f"--{field.replace('_', '-')}"


def _read(kind: Any, text: str, option: str) -> Any:
    if kind is timedelta:
        return length(text, option)
    if kind is float:
        return share(text, option)
    if kind is int:
        number = whole_number(text)
        if number is None:
            raise InvalidValue(f"expected {option} to be a whole number up to 999,999,999, got: {shortened(text)}")
        return number
    return text
