"""Who may see and do what on the dashboard: as over the API, and no form of another site does anything."""

from __future__ import annotations

import re
from contextlib import closing
from html import unescape
from http.client import HTTPConnection
from urllib.parse import unquote, urlsplit
from uuid import UUID, uuid4

import pytest

from mainspring import JobState, Mainspring, every
from mainspring.api.policy import PUBLIC, Policy, Where
from mainspring.model.alert import dead
from mainspring.model.token import Role
from mainspring.server import Server
from mainspring.web.session import TEAM, TOKEN, proof_of
from mainspring.web.site import PAGES
from tests.support.waiting import until
from tests.web.conftest import Visitor

WALK = sorted(
    ((method, path, policy) for pages in PAGES for method, path, policy, _ in pages.made), key=lambda one: one[:2]
)
FORMS = [(path, policy) for method, path, policy in WALK if method == "POST"]


def filled(path: str) -> str:
    return re.sub(r"\{\w+:uuid\}", str(uuid4()), re.sub(r"\{\w+:path\}|\{\w+\}", "nothing", path))


def test_every_page_says_who_may_see_it_and_every_form_what_the_audit_log_calls_it() -> None:
    only_ask = {"/logout", "/team", "/jobs/choose", "/schedules/-/preview"}

    assert all(policy is not PUBLIC for _, _, policy in WALK)
    for path, policy in FORMS:
        assert (policy.records is None) == (path in only_ask), path
    assert not [path for method, path, policy in WALK if method == "GET" and policy.records]


@pytest.mark.parametrize(("method", "path", "policy"), WALK, ids=str)
def test_who_is_not_logged_in_is_led_to_where_he_can(visitor: Visitor, method: str, path: str, policy: Policy) -> None:
    visitor(acme="admin")  # as soon as there is a token, all need one
    anybody = visitor()
    answer = anybody.request(method, filled(path), data={"proof": "x"} if method == "POST" else None)

    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/login?next=")
    anybody.cookies.set(TOKEN, "ms_aaaaaaaaaaaa_wrong")
    assert anybody.request(method, filled(path)).status_code == 303


@pytest.mark.parametrize(("path", "policy"), FORMS, ids=str)
def test_a_form_is_taken_from_pages_of_ours_and_from_who_may(visitor: Visitor, path: str, policy: Policy) -> None:
    admin = visitor("admin")
    for site, origin in (("cross-site", None), ("same-site", None), ("same-origin", "https://evil.example")):
        headers = {"Sec-Fetch-Site": site, **({"Origin": origin} if origin else {})}
        refused = admin.post(filled(path), data={"proof": "x"}, headers=headers)
        assert (refused.status_code, "foreign" in refused.text or "elsewhere" in refused.text) == (403, True)
    without_proof = admin.post(filled(path), data={"deed": "cancel"}, headers={"Sec-Fetch-Site": "same-origin"})
    assert without_proof.status_code == 403
    roles = list(Role)
    for role in roles[: roles.index(policy.role or Role.VIEWER)]:
        assert visitor(acme=role).send_form(filled(path)).status_code == 403
        assert visitor(role).send_form(filled(path)).status_code == 403
    if policy.where is not Where.TEAM:
        assert visitor(acme="admin").send_form(filled(path)).status_code == 403


@pytest.mark.parametrize("path", [path for method, path, _ in WALK if method == "GET"])
def test_every_page_keeps_strangers_scripts_out(visitor: Visitor, path: str) -> None:
    answer = visitor("admin").get(filled(path))

    policy = answer.headers["content-security-policy"]
    assert answer.status_code in (200, 404, 422)  # where the address does not say of what
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "script-src 'self'" in policy
    assert not re.search(
        r"<script(?! type=\"module\" src=\"/static/live.js\">)|\son\w+=|javascript:|style=", answer.text
    )


def test_what_is_another_teams_is_not_there(visitor: Visitor, app: Mainspring) -> None:
    job = app.within("acme").enqueue("greet", ["Ada"])

    assert visitor(acme="viewer").get(f"/jobs/{job.id}").status_code == 200
    beta = visitor(beta="admin")
    assert beta.get(f"/jobs/{job.id}").status_code == 404
    assert beta.send_form(f"/jobs/{job.id}/cancel").status_code == 404
    assert "greet" not in beta.get("/jobs").text
    assert beta.get("/jobs", params={"team": "acme"}).status_code == 404
    assert job.state is JobState.READY


def test_no_button_is_shown_for_what_one_may_not_do(visitor: Visitor, app: Mainspring) -> None:
    job = app.within("acme").enqueue("greet", ["Ada"])

    assert "/cancel" in visitor(acme="submitter").get(f"/jobs/{job.id}").text
    for path in ("/jobs", f"/jobs/{job.id}"):
        shown = visitor(acme="viewer").get(path).text
        assert "/cancel" not in shown
        assert 'name="deed"' not in shown


def test_no_page_leads_to_one_that_is_refused(visitor: Visitor) -> None:
    addresses = {path for method, path, _ in WALK if method == "GET" and "{" not in path}
    for browser in (visitor(acme="viewer"), visitor(acme="admin"), visitor(default="viewer"), visitor("admin")):
        page = browser.get("/").text
        shown = {path for path in addresses if f'<a href="{path}"' in page}
        assert {path: browser.get(path).status_code for path in shown} == dict.fromkeys(shown, 200)
    assert "/limits" in shown
    assert 'href="/tokens"' not in visitor(acme="operator").get("/").text


def test_somebody_logs_in_looks_and_logs_out(visitor: Visitor, app: Mainspring) -> None:
    text, _ = app.tokens.create("me", {"acme": "viewer"})
    browser = visitor()
    refused = browser.post("/login", data={"token": "ms_aaaaaaaaaaaa_wrong"})
    empty = browser.post("/login", data={"token": ""})
    taken = browser.post("/login", data={"token": text, "next": "/jobs"})

    assert (refused.status_code, empty.status_code) == (401, 401)
    assert (taken.status_code, taken.headers["location"]) == (303, "/jobs")
    cookie = taken.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert browser.get("/jobs").status_code == 200
    browser.token = text
    assert browser.send_form("/logout").status_code == 303
    assert browser.get("/jobs").status_code == 303


@pytest.mark.parametrize("wanted", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)"])
def test_who_logs_in_stays_here(visitor: Visitor, app: Mainspring, wanted: str) -> None:
    text, _ = app.tokens.create("me", {"acme": "viewer"})

    assert visitor().post("/login", data={"token": text, "next": wanted}).headers["location"] == "/"


@pytest.mark.parametrize("wanted", ["/jobs?team=acme&state=ready&task=a%26b%3Dc%23d", f"/jobs/{UUID(int=7)}?team=acme"])
def test_who_follows_a_link_comes_to_all_of_it_by_way_of_the_log_in(
    visitor: Visitor, app: Mainspring, wanted: str
) -> None:
    text, _ = app.tokens.create("me", {"acme": "viewer"})
    browser = visitor()

    form = browser.get(browser.get(wanted).headers["location"]).text
    asked = unescape(form.split('name="next" value="')[1].split('"')[0])

    assert browser.post("/login", data={"token": text, "next": asked}).headers["location"] == wanted


def test_who_is_logged_in_is_let_go_when_the_token_is_revoked(visitor: Visitor, app: Mainspring) -> None:
    browser = visitor(acme="viewer")
    assert browser.get("/jobs").status_code == 200
    (token,) = app.tokens.list()

    app.tokens.revoke(token.id)

    until(lambda: browser.get("/jobs").status_code == 303)


def test_who_has_a_token_for_several_teams_begins_with_one_and_chooses_another(
    visitor: Visitor, app: Mainspring
) -> None:
    app.within("beta").enqueue("greet", ["Ada"])
    browser = visitor(gamma="viewer", beta="viewer", acme="viewer")
    browser.post("/login", data={"token": str(browser.token)})

    assert browser.cookies[TEAM] == "acme"
    assert "greet" not in browser.get("/jobs").text
    assert browser.send_form("/team", team="beta").status_code == 303
    assert "greet" in browser.get("/jobs").text
    for name, status in (("other", 303), ("*", 422), ("", 422)):
        assert browser.send_form("/team", team=name).status_code == status
        assert browser.cookies[TEAM] == "beta"
    browser.cookies.set(TEAM, "other", domain="127.0.0.1", path="/")
    assert browser.get("/jobs").status_code == 404


@pytest.mark.parametrize("grants", [{"acme": "viewer"}, {"*": "viewer", "acme": "admin"}, {"default": "viewer"}])
def test_who_need_not_choose_a_team_begins_without(visitor: Visitor, app: Mainspring, grants: dict[str, str]) -> None:
    browser = visitor(**{"everywhere" if team == "*" else team: role for team, role in grants.items()})
    browser.cookies.set(TEAM, "other", domain="127.0.0.1", path="/")  # of who was logged in before

    browser.post("/login", data={"token": str(browser.token)})

    assert TEAM not in browser.cookies
    assert browser.get("/jobs").status_code == 200


@pytest.mark.parametrize("none", ["*", ""])
def test_who_sees_all_teams_may_choose_none_again(visitor: Visitor, app: Mainspring, none: str) -> None:
    app.alerts.add("ours", dead(1))
    admin = visitor("admin")

    admin.send_form("/team", team="acme")
    assert (admin.cookies[TEAM], "ours" in admin.get("/alerts").text) == ("acme", False)
    admin.send_form("/team", team=none)

    assert (TEAM in admin.cookies, "ours" in admin.get("/alerts").text) == (False, True)


@pytest.mark.parametrize("proto", [None, "http", "https"])
def test_behind_tls_cookies_are_sent_over_tls_only(visitor: Visitor, app: Mainspring, proto: str | None) -> None:
    text, _ = app.tokens.create("me", {"acme": "viewer"})

    answer = visitor().post(
        "/login", data={"token": text}, headers={} if proto is None else {"X-Forwarded-Proto": proto}
    )

    assert ("Secure" in answer.headers["set-cookie"]) == (proto == "https")


@pytest.mark.parametrize(
    "path", ["/jobs?key=a%00b", "/dead?task=a%00", "/schedules?after=a%00b", "/queues/a%00b", "/schedules/%00"]
)
def test_an_address_with_what_no_database_takes_is_refused(visitor: Visitor, path: str) -> None:
    answer = visitor().get(path)

    assert (answer.status_code, "without NUL" in answer.text) == (422, True)


@pytest.mark.parametrize("fields", [{"back": "/jobs?key=a%00b"}, {"back": "/jobs", "reason": "a\0b"}])
def test_a_form_with_what_no_database_takes_is_refused(visitor: Visitor, fields: dict[str, str]) -> None:
    answer = visitor().send_form("/jobs/choose", deed="cancel", all="yes", **fields)

    assert (answer.status_code, "without NUL" in answer.text) == (422, True)


PAGES_WITH_FORMS = ("/", "/jobs", "/queues", "/queues/default", "/schedules/-/new", "/tokens", "/limits")


@pytest.mark.parametrize("path", PAGES_WITH_FORMS)
def test_every_form_names_the_team_that_its_page_shows(visitor: Visitor, app: Mainspring, path: str) -> None:
    for team in ("acme", "default"):
        app.within(team).enqueue("greet", ["Ada"])
    browser = visitor("admin")
    for named, chosen in (("?team=acme", "acme"), ("?team=default", "default"), ("", None)):
        page = browser.get(f"{path}{named}").text
        forms = [form for form in page.split("<form ")[1:] if 'method="post"' in form.partition(">")[0]]
        proof = f'name="proof" value="{proof_of(browser.token, chosen)}"'
        assert len(forms) >= 2
        assert all(proof in form.partition("</form>")[0] for form in forms)


def test_a_form_is_for_the_team_of_its_page_whatever_was_chosen_since(visitor: Visitor, app: Mainspring) -> None:
    for team in ("acme", "beta"):
        app.within(team).schedules.add("s", "greet", every("1h"), args=["Ada"])
    browser = visitor(acme="operator", beta="operator", gamma="viewer")
    page = browser.get("/schedules/s?team=beta")
    browser.cookies.set(TEAM, "acme", domain="127.0.0.1", path="/")

    done = browser.press(page, "/schedules/-/pause", schedule="s", reason="enough")

    assert [app.within(team).schedules.get("s").paused for team in ("acme", "beta")] == [False, True]
    assert [(entry.action, entry.team) for entry in app.audit.list()] == [("schedule.pause", "beta")]
    assert "enough" in browser.get(done.headers["location"]).text
    tampered = proof_of(browser.token, "beta").replace("beta:", "acme:")
    for proof, status, words in (
        (tampered, 403, "expected a form of a page of ours"),
        (proof_of(browser.token, "gamma"), 403, "expected the role operator"),
        (proof_of(browser.token, "delta"), 404, "nothing is known of a team named"),
    ):
        refused = browser.send_form("/schedules/-/pause", schedule="s", proof=proof)
        assert (refused.status_code, words in refused.text) == (status, True)


def test_a_form_of_who_has_chosen_no_team_is_for_none_that_was_chosen_since(visitor: Visitor, app: Mainspring) -> None:
    job = app.enqueue("greet", ["Ada"], run_after="1h")
    admin = visitor("admin")
    page = admin.get(f"/jobs/{job.id}")
    admin.cookies.set(TEAM, "acme", domain="127.0.0.1", path="/")

    done = admin.press(page, f"/jobs/{job.id}/cancel")

    assert (job.state, app.audit.list()[0].team) == (JobState.CANCELLED, "default")
    assert admin.get(done.headers["location"]).status_code == 200


def test_a_page_that_is_brought_up_to_date_stays_its_teams(visitor: Visitor, app: Mainspring) -> None:
    app.within("beta").enqueue("greet", ["Ada"])
    browser = visitor("viewer")
    browser.cookies.set(TEAM, "acme", domain="127.0.0.1", path="/")

    for page, team, there in (("beta", "beta", True), ("acme", "acme", False), ("*", "default", False)):
        seen = browser.get("/jobs", headers={"Mainspring-Team": page}).text
        assert (f'<input name="team" value="{team}"' in seen, "greet" in seen) == (True, there)
    assert browser.cookies[TEAM] == "acme"


def test_nothing_is_read_of_a_strangers_form(visitor: Visitor) -> None:
    visitor("admin")

    assert visitor().send_form("/jobs/choose", reason="x" * 300_000).status_code == 303


def test_without_tokens_this_machine_alone_is_served(visitor: Visitor, server: Server) -> None:
    browser = visitor()

    assert browser.get("/").status_code == 200
    assert browser.get("/", headers={"Host": "evil.example"}).status_code == 403
    assert browser.get("/", headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "document"}).status_code == 200
    assert browser.get("/", headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "iframe"}).status_code == 403


@pytest.mark.parametrize("name", ["nothing.js", "..%2fpages.py", "../pages.py", "style.css%00"])
def test_no_other_file_is_served(visitor: Visitor, name: str) -> None:
    assert visitor().get(f"/static/{name}").status_code == 404


def test_a_form_that_is_too_large_is_refused(visitor: Visitor) -> None:
    assert visitor().send_form("/jobs/choose", reason="x" * 300_000).status_code == 413


@pytest.mark.parametrize("path", ["/nope", "/jobs/nope", "/workflows/x", "/static/"])
def test_who_goes_astray_is_shown_a_page_and_a_program_a_problem(visitor: Visitor, path: str) -> None:
    browser = visitor("admin")

    page = browser.get(path, headers={"Accept": "text/html,*/*"}, follow_redirects=True)
    problem = browser.get(path)

    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "Back to the overview" in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]
    if not path.endswith("/"):
        assert (problem.status_code, problem.json()["type"]) == (404, "urn:mainspring:not-found")
    assert browser.get("/api/v1/nope", headers={"Accept": "text/html"}).json()["status"] == 404


@pytest.mark.parametrize(
    ("path", "leads"), [("/jobs/", "/jobs"), ("//elsewhere.example/", "/elsewhere.example"), ("/\\e.example/", "/%5Ce")]
)
def test_a_slash_too_many_is_taken_away_and_leads_nowhere_else(server: Server, path: str, leads: str) -> None:
    address = urlsplit(server.url)
    with closing(HTTPConnection(str(address.hostname), address.port, timeout=30)) as connection:
        connection.request("GET", path, headers={"Accept": "text/html"})
        answer = connection.getresponse()

    assert answer.status == 307
    assert str(answer.headers["location"]).startswith(leads)


def test_whose_token_has_expired_comes_back_to_the_page_whose_form_he_sent(visitor: Visitor, server: Server) -> None:
    visitor("admin")
    browser = visitor()
    browser.cookies.set(TOKEN, "ms_gone")
    form = {"proof": proof_of("ms_gone", None), "reason": "flood"}
    for referer, wanted in [(f"{server.url}/queues/mail?x=1", "/queues/mail?x=1"), ("http://else.example/q", "/")]:
        answer = browser.post(
            "/queues/mail/pause", data=form, headers={"Sec-Fetch-Site": "same-origin", "Referer": referer}
        )
        assert answer.status_code == 303, answer.text
        assert unquote(answer.headers["location"]) == f"/login?next={wanted}"


def test_what_turns_the_direction_of_writing_is_shown_and_not_obeyed(visitor: Visitor, app: Mainspring) -> None:
    job = app.enqueue("greet", ["price \u202e99.1\u2066 ok"])

    page = visitor("admin").get(f"/jobs/{job.id}").text

    assert "price \\u202e99.1\\u2066 ok" in page
    assert "\u202e" not in page
