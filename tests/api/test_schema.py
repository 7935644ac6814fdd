"""The OpenAPI document is what the server does: thousands of requests made of it, right and wrong, are answered so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from mainspring import Email, Mainspring, every
from mainspring.alerts import dead
from mainspring.api.app import make_api
from mainspring.server import Server
from mainspring.testing import drain
from tests.api.conftest import add_tasks

_LEFT_OUT = r"/events$|/test$"
"""What does not end, and what would send a request to wherever an earlier one has said."""

_EXAMPLES = 45

KNOWN: dict[str, list[str]] = {
    **{name: ["known"] for name in ("schedule_id", "rule_id", "alert_id")},
    "name": ["mail", "acme", "fail", "known"],
    "key": ["smtp"],
}

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server on a database in which there is something of everything."""
    app = Mainspring(f"sqlite:///{tmp_path_factory.mktemp('schema') / 'mainspring.db'}?synchronous=normal")
    add_tasks(app)
    jobs = [app.enqueue("fail"), app.enqueue("greet", ["Ada"])]
    drain(app)
    jobs += [app.enqueue("greet", [str(n)], run_after="1h") for n in range(20)]
    with app.workflow("w") as workflow:
        workflow.add("fail")
    flows = [workflow.enqueue()]
    app.schedules.add("known", "fail", every("1h"))
    app.notifications.add("known", Email("ops@example.org"))
    app.alerts.add("known", dead())
    app.secrets.set("known", "hunter2 hunter2")
    app.teams.set("acme", max_pending=10)
    app.queues.pause("mail")
    app.breakers.trip("smtp")
    KNOWN["job_id"] = [str(job.id) for job in [*jobs, *flows]]
    made = Server(app, "127.0.0.1", 0)
    made.start()
    yield made
    made.stop()
    app.close()


def _number(value: object) -> int:
    try:
        return UUID(str(value)).int >> 7
    except ValueError:
        return sum(str(value).encode(errors="replace"))


schema = schemathesis.openapi.from_dict(make_api(Mainspring("sqlite:///nowhere.db")).openapi())


@schema.hook
def map_path_parameters(_: Any, parameters: dict[str, Any] | None) -> dict[str, Any] | None:
    """Have every other request be about something that is there."""
    for name, value in (parameters or {}).items():
        if name in KNOWN and parameters is not None and _number(value) % 2:
            parameters[name] = KNOWN[name][_number(value) % len(KNOWN[name])]
    return parameters


@schema.hook
def map_query(_: Any, query: dict[str, Any] | None) -> dict[str, Any] | None:
    """Have nobody wait for a job that nobody runs."""
    if query and isinstance(query.get("wait"), int | float) and query["wait"] > 0:
        query["wait"] = 0.001
    return query


@pytest.mark.slow
@schema.exclude(path_regex=_LEFT_OUT).parametrize()
@settings(
    max_examples=_EXAMPLES,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_every_answer_is_as_the_document_says(case: schemathesis.Case[Any], server: Server) -> None:
    case.call_and_validate(base_url=server.url, checks=CHECKS)
