"""Secrets of a team: set, listed by name, and removed. Nothing here shows a value, not even one that is refused."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import Path
from pydantic import ConfigDict, Field
from starlette.responses import Response

from mainspring.api.callers import Asking
from mainspring.api.documents import NO_NUL, Document, Request
from mainspring.api.policy import needs
from mainspring.api.routing import Routes, answer, nothing
from mainspring.documents.secrets import secret_document
from mainspring.errors import SecretNotFound
from mainspring.model.secret import LONGEST, check_secret_value
from mainspring.model.token import Role

routes = Routes("secrets")

SecretName = Annotated[str, Path(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.\-]{0,127}$")]


class SecretRequest(Request):
    """The value of a secret."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"value": "correct horse battery staple"}]})

    value: Annotated[
        str, Field(min_length=1, max_length=LONGEST, pattern=NO_NUL, json_schema_extra={"writeOnly": True})
    ]


class SecretDocument(Document):
    """What may be known of a secret."""

    team: str
    name: str
    created_at: datetime
    changed_at: datetime
    changed_by: str
    key_id: str = Field(description="Of the key with which it is sealed.")


class Secrets(Document):
    """The secrets of a team, by name."""

    items: list[SecretDocument]


@routes.get("/secrets", needs(Role.ADMIN), gives=Secrets)
def list_secrets(caller: Asking) -> Response:
    """List the team's secrets by name, without their values."""
    return answer({"items": [secret_document(one) for one in caller.app.secrets.list()]})


@routes.put("/secrets/{name}", needs(Role.ADMIN, records="secret.set"), status=204, problems=(429,), veiled=True)
def set_secret(caller: Asking, name: SecretName, wanted: SecretRequest) -> Response:
    """Keep a value under a name, in place of what was kept there.

    Jobs of the team name it as `secret://name`, and get it if they start some seconds later.
    """
    check_secret_value(wanted.value)
    caller.record(name)
    caller.app.secrets.set(name, wanted.value, by=caller.actor)
    return nothing()


@routes.delete("/secrets/{name}", needs(Role.ADMIN, records="secret.remove"), status=204)
def remove_secret(caller: Asking, name: SecretName) -> Response:
    """Remove a secret. Jobs that name it fail from some seconds later on."""
    if name not in {one.name for one in caller.app.secrets.list()}:
        raise SecretNotFound(name, caller.team)
    caller.record(name)
    caller.app.secrets.remove(name)
    return nothing()
