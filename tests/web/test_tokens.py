"""Tokens on the dashboard: made and shown once, and revoked."""

from __future__ import annotations

import re

import pytest

from mainspring import Mainspring
from tests.support.waiting import until
from tests.web.conftest import Visitor

TOKEN = re.compile(r"ms_[a-z2-7]{12}_[\w-]{43}")


def test_a_token_is_made_and_shown_once(visitor: Visitor, app: Mainspring) -> None:
    browser = visitor(acme="admin")

    answer = browser.send_form("/tokens", name="shop", role="submitter", expires="30d")
    (text,) = TOKEN.findall(answer.text)
    made = app.tokens.verify(text)

    assert answer.status_code == 200
    assert made is not None
    assert (made.name, dict(made.grants)) == ("shop", {"acme": "submitter"})
    assert made.expires_at is not None
    assert made.created_by.startswith("token:")
    assert answer.headers["cache-control"] == "no-store"
    assert text not in str(answer.headers)
    secret = text[-43:]
    for path in ("/tokens", "/audit", f"/tokens/{made.id}/revoke"):
        assert secret not in browser.get(path).text
    assert secret not in "".join(record.details for record in app.audit.list())
    assert (app.audit.list()[0].action, app.audit.list()[0].target) == ("token.create", "shop")


def test_the_first_one_says_what_it_means(visitor: Visitor) -> None:
    browser = visitor()

    before = browser.get("/tokens").text
    assert "No token lets anybody in" in before
    assert 'value="*"' in before
    assert "<option selected>admin</option>" in before
    assert before.index("nobody is let in without a token") < before.index(">Make</button>")
    made = browser.send_form("/tokens", name="me", team="*", role="admin", expires="")
    assert "nobody is let in without a token" in made.text
    until(lambda: browser.get("/tokens").status_code == 303)


def test_tokens_are_listed_and_revoked_which_asks_first(visitor: Visitor, app: Mainspring) -> None:
    text, token = app.tokens.create("<b>shop</b>", {"acme": "viewer"}, expires="1h")
    browser = visitor(acme="admin")

    page = browser.get("/tokens").text
    assert "&lt;b&gt;shop" in page
    assert "acme: viewer" in page
    assert "yours" in page
    assert "<option selected>" not in page
    assert "nobody is let in without a token" not in page
    asked = browser.get(f"/tokens/{token.id}/revoke").text
    assert "can&#39;t be taken back" in asked or "can't be taken back" in asked
    assert app.tokens.verify(text) is not None
    answer = browser.send_form(f"/tokens/{token.id}/revoke")

    assert answer.headers["location"] == "/tokens"
    assert app.tokens.verify(text) is None
    assert "1 that lets nobody in any more" in browser.get("/tokens").text
    assert (app.audit.list()[0].action, app.audit.list()[0].target) == ("token.revoke", token.id)


def test_who_revokes_his_own_is_warned(visitor: Visitor, app: Mainspring) -> None:
    browser = visitor(acme="admin")
    (own,) = app.tokens.list()

    assert "by which you are logged in" in browser.get(f"/tokens/{own.id}/revoke").text
    browser.send_form(f"/tokens/{own.id}/revoke")
    until(lambda: browser.get("/tokens").status_code == 303)


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "", "role": "viewer"},
        {"name": "x", "role": "king"},
        {"name": "x"},
        {"name": "x", "role": "viewer", "expires": "never"},
        {"name": "x", "role": "viewer", "expires": "0s"},
        {"name": "x", "role": "viewer", "team": "No Team"},
    ],
)
def test_what_makes_no_sense_is_refused(visitor: Visitor, app: Mainspring, fields: dict[str, str]) -> None:
    answer = visitor(acme="admin").send_form("/tokens", **fields)

    assert (answer.status_code, "expected" in answer.text) == (422, True)
    assert len(app.tokens.list()) == 1


def test_nobody_gives_more_than_he_has(visitor: Visitor, app: Mainspring) -> None:
    admin, others = visitor(acme="admin"), app.tokens.create("theirs", {"beta": "viewer"})[1]

    for team in ("*", "beta"):
        assert admin.send_form("/tokens", name="x", role="viewer", team=team).status_code == 422
    assert "theirs" not in admin.get("/tokens").text
    assert admin.get(f"/tokens/{others.id}/revoke").status_code == 404
    assert admin.send_form(f"/tokens/{others.id}/revoke").status_code == 404
    assert visitor(acme="operator").get("/tokens").status_code == 403
    everywhere = visitor("admin")
    assert everywhere.send_form("/tokens", name="x", role="admin", team="*").status_code == 200
    assert len(app.tokens.list()) == 5
