"""Words: what a notification says to people, in plain text and in HTML, and the values that templates may name."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from uuid import UUID

from mainspring.model.channel import FIELDS, Email, Event, one_line
from mainspring.model.template import render
from mainspring.model.text import counted

Notice = Mapping[str, object]

_LONGEST_SUBJECT = 200

_SHOWN = (
    *("task", "queue", "state", "attempt", "schedule", "tick", "until", "expected_by", "workflow", "job_id"),
    *("created_at", "started_at", "at", "reason", "error_type", "error_message"),
)
"""What is shown of a notice, in this order, where there is something to show."""


def subject(channel: Email, values: Mapping[str, str]) -> str:
    """Return the subject of a mail, on one line whatever the values are."""
    template = channel.subject or "[{team}] {headline}"
    return one_line(render(template, "subject", values))[:_LONGEST_SUBJECT]


def text(channel: Email, values: Mapping[str, str], notice: Notice) -> str:
    """Return the text of a mail."""
    if channel.text is not None:
        return render(channel.text, "text", values)
    lines = [f"{name.replace('_', ' ')}: {value}" for name, value in _table(values, notice)]
    link = [f"\n{values['link']}"] if values["link"] else []
    return "\n".join([values["headline"], "", *lines, *link, ""])


def html(channel: Email, values: Mapping[str, str], notice: Notice) -> str:
    """Return the same in HTML, in which nothing that a job says can be anything but text."""
    if channel.text is not None:
        return f"<pre>{escape(render(channel.text, 'text', values))}</pre>\n"
    cells = "".join(
        f"<tr><th align='left'>{escape(name.replace('_', ' '))}</th><td><pre>{escape(value)}</pre></td></tr>\n"
        for name, value in _table(values, notice)
    )
    link = values["link"]
    more = f"<p><a href='{escape(link)}'>{escape(link)}</a></p>\n" if link else ""
    return f"<h3>{escape(values['headline'])}</h3>\n<table>\n{cells}</table>\n{more}"


def values_of(notice_id: UUID, notice: Notice, links: Mapping[str, str]) -> dict[str, str]:
    """Return what templates may name; what there is nothing to say of is empty."""
    error = notice.get("error")
    known = error if isinstance(error, Mapping) else {}
    facts: dict[str, object] = {
        **notice,
        "id": notice_id,
        "link": links.get("job") or links.get("schedule"),
        "error_type": known.get("type"),
        "error_message": known.get("message"),
        "headline": notice.get("headline") or _headline(notice),
    }
    return {name: "" if facts.get(name) is None else str(facts[name]) for name in FIELDS}


def _table(values: Mapping[str, str], notice: Notice) -> list[tuple[str, str]]:
    shown = {name: values[name] if name in values else str(notice.get(name) or "") for name in _SHOWN}
    return [(name, value) for name, value in shown.items() if value]


def _headline(notice: Notice) -> str:
    task, schedule, attempt = notice.get("task"), notice.get("schedule"), notice.get("attempt")
    whose = f"{task} of schedule {schedule}" if schedule else str(task)
    match notice.get("event"):
        case Event.SUCCESS:
            return f"{whose} succeeded"
        case Event.FAILURE:
            return f"{whose} {'expired' if notice.get('state') == 'expired' else 'failed'}"
        case Event.RETRY:
            return f"{whose} failed in attempt {attempt} and is tried again"
        case Event.LATE if "expected_by" in notice:
            return f"schedule {schedule} has had no success in time"
        case Event.LATE:
            return f"schedule {schedule} fired late"
        case Event.MISSED:
            return f"schedule {schedule} missed {_how_many(notice.get('ticks'))}"
        case Event.RECOVERED:
            return f"{whose} has recovered"
    return str(notice.get("event"))


def _how_many(ticks: object) -> str:
    return counted(ticks, "tick") if isinstance(ticks, int) else "many ticks"
