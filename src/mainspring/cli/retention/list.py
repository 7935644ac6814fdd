"""`mainspring retention list`."""

from __future__ import annotations

from mainspring.app import DEFAULT_URL
from mainspring.cli.apps import app_at
from mainspring.cli.options import AsJson, Url
from mainspring.cli.output import cell, listing, say, say_json, show
from mainspring.documents.retention import rule_document
from mainspring.model.duration import spelled


def list_rules(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List the rules for how long finished jobs are kept, the most precise first: of those that fit it counts."""
    with app_at(url) as app:
        rules = app.retention.list()
    if as_json:
        say_json({"rules": [rule_document(rule) for rule in rules]})
        return
    if not rules:
        say("No rules: finished jobs are kept for as long as workers are told to by --retention.")
        return
    table = listing()
    for column in ("Team", "Queue", "State", "Age"):
        table.add_column(column, overflow="fold")
    table.add_column("Count", justify="right")
    for rule in rules:
        covers = rule.covers
        age = "as the rest" if rule.age is None else spelled(rule.age)
        count = "any" if rule.count is None else f"{rule.count:,}"
        table.add_row(
            *(cell(one or "any") for one in (covers.team, covers.queue, covers.state)), cell(age), cell(count)
        )
    show(table)
