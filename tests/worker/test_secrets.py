"""Secrets on their way to a handler, and nowhere else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mainspring import Context, JobFailed, JobState, Limit, Mainspring, Retry, Workflow
from mainspring.keys import new_key
from mainspring.store.sql import SqlStore
from tests.support.databases import dump

ROOT = Path(__file__).parents[2]
# Of letters, of which no time and no id is made: digits are found in these now and then.
CANARY = 'canary-"siskin"/ü-x'
OTHER = "other-canary-linnet"
ONCE = Retry(max_attempts=1)


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAINSPRING_KEYS", new_key())


def test_no_trace_of_a_secret_is_left_anywhere_but_in_its_handler(app: Mainspring, url: str) -> None:
    app.secrets.set("api-token", CANARY)
    app.secrets.set("basic", OTHER)
    deep = {"headers": [{"Authorization": "secret://basic", "Accept": "secret://basic/x"}]}
    names = ("in_thread", "on_loop", "in_process", "in_a_block")
    jobs = {name: app.enqueue(name, ["secret://api-token"], {"deep": deep}) for name in names}
    seen = app.enqueue("where_it_is_seen", ["secret://api-token"])

    program = (
        "import logging; logging.basicConfig(level=logging.DEBUG); from tests.worker.secret_tasks import run; run()"
    )
    environment = os.environ | {"MAINSPRING_URL": url, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    shown = [
        subprocess.run(
            [sys.executable, "-m", "mainspring", "jobs", "show", str(job.id), "--url", url, *as_json],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for job in jobs.values()
        for as_json in ((), ("--json",))
    ]

    assert done.stdout == "all have ended\n", done.stderr
    assert {name: job.state for name, job in jobs.items()} == dict.fromkeys(names, JobState.SUCCEEDED)
    assert seen.result() is False
    everything = dump(url) + done.stderr + "".join(shown)
    for canary in ("canary-", "siskin", "linnet", "b3RoZXItY2FuYXJ5", "Y2FuYXJ5"):
        assert everything.count(canary) == 0, everything[everything.index(canary) - 300 :][:600]
    assert "it is ***" in done.stderr
    assert done.stderr.count("no good: ***") >= 3
    assert jobs["in_thread"].snapshot.payload.count("secret://api-token") == 1
    result = jobs["in_process"].result()
    assert result.pop("basic").startswith("Basic ")
    shown_headers = {"Authorization": "***", "Accept": "secret://basic/x"}
    assert result == {"token": "***", "all": {"headers": [shown_headers]}, "***": 1}


def test_a_handler_gets_the_values_wherever_they_are_named(app: Mainspring) -> None:
    got: list[Any] = []

    @app.task
    def take(*args: Any, **kwargs: Any) -> None:
        got.append((args, kwargs))

    app.secrets.set("a", CANARY)
    app.secrets.set("b.c-d_1", OTHER)
    with app.worker():
        take.enqueue(
            "secret://a", ["x", ["secret://b.c-d_1"]], {"secret://a": 1}, k={"deep": "secret://a"}, s=" secret://a"
        ).result("60s")

    assert got == [((CANARY, ["x", [OTHER]], {"secret://a": 1}), {"k": {"deep": CANARY}, "s": " secret://a"})]


def test_a_job_gets_the_secrets_of_its_own_team(app: Mainspring) -> None:
    got: list[str] = []

    @app.task(retry=ONCE)
    def take(token: str) -> None:
        got.append(token)

    acme = app.within("acme")
    app.secrets.set("token", "of the default team")
    acme.secrets.set("token", "of acme")
    acme.secrets.set("own", "acme alone has it")
    with app.worker():
        take.enqueue("secret://token").result("60s")
        acme.enqueue("take", ["secret://token"]).result("60s")
        stolen = take.enqueue("secret://own")
        with pytest.raises(
            JobFailed, match="team 'default' has no secret named 'own'; set it with `mainspring secrets set own`"
        ):
            stolen.result("60s")

    assert got == ["of the default team", "of acme"]


def test_a_secret_that_is_not_there_fails_the_attempt_and_is_looked_for_again(app: Mainspring) -> None:
    got: list[str] = []

    @app.task(retry=Retry(max_attempts=2, base="1h"))
    def take(token: str) -> None:
        got.append(token)

    with app.worker():
        job = take.enqueue("secret://late")
        while job.state is not JobState.RETRYING:
            pass
        failure = job.snapshot.failure
        assert failure is not None
        assert failure.type == "mainspring.errors.SecretNotFound"
        app.secrets.set("late", "has come")
        job.cancel()
        job.replay()
        job.result("60s")

    assert got == ["has come"]


def test_what_another_job_returns_can_not_name_a_secret(app: Mainspring) -> None:
    got: list[Any] = []

    @app.task
    def fetch() -> Any:
        return ["secret://token", {"a": "secret://token"}]

    @app.task
    def send(body: Any, token: str) -> None:
        got.append((body, token))

    @app.task(retry=ONCE)
    def send_each(item: Any) -> None:
        got.append(item)

    app.secrets.set("token", CANARY)
    with app.workflow("steal") as wf:
        wf.add(send, wf.add(fetch), "secret://token")
    with app.workflow("steal-more") as more:
        more.map(send_each, more.add(fetch))
    with app.worker():
        wf.enqueue().result("60s")
        with pytest.raises(JobFailed):
            more.enqueue().result("60s")

    assert got == [(["secret://token", {"a": "secret://token"}], CANARY)]


def test_a_map_over_secrets_gives_each_of_its_jobs_its_own(app: Mainspring, url: str) -> None:
    @app.task
    def length(token: str) -> int:
        return len(token)

    app.secrets.set("a", CANARY)
    app.secrets.set("b", OTHER)
    with app.workflow("lengths") as wf:
        wf.map(length, ["secret://a", "secret://b"])
    with app.worker():
        assert wf.enqueue().result("60s") == [len(CANARY), len(OTHER)]

    assert dump(url).count("siskin") == 0


def test_a_job_that_is_added_can_not_hold_the_value_of_a_secret(app: Mainspring, url: str) -> None:
    @app.task
    def other(text: str) -> str:
        return text[:2]

    @app.task(retry=ONCE)
    def pass_on(ctx: Context, token: str, by_name: bool) -> None:
        ctx.add(other, "secret://token" if by_name else f"Bearer {token}")

    @app.workflow(retry=ONCE)
    def spread(wf: Workflow, token: str) -> None:
        wf.add(other, token)

    app.secrets.set("token", CANARY)
    with app.worker():
        pass_on.enqueue("secret://token", by_name=True).result("60s")
        for job in (pass_on.enqueue("secret://token", by_name=False), spread.enqueue("secret://token")):
            with pytest.raises(JobFailed, match="pass secret://name on instead"):
                job.result("60s")

    assert "siskin" not in dump(url)


def test_a_limit_is_not_called_by_the_value_of_a_secret(app: Mainspring, url: str) -> None:
    called: list[str] = []

    @app.task(limits=[Limit("by:{token}", concurrency=1)])
    def take(token: str) -> int:
        called.extend(limit.key for limit in app.limits.list())  # now, for one that nobody holds may be pruned
        return len(token)

    app.secrets.set("token", CANARY)
    with app.worker():
        assert take.enqueue("secret://token").result("60s") == len(CANARY)

    assert called == ["by:secret://token"]
    assert "siskin" not in dump(url)


def test_a_changed_value_is_given_out_within_seconds_and_a_flood_asks_seldom(
    app: Mainspring, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    sealed_secrets = SqlStore.sealed_secrets

    def counted(self: SqlStore, names: Any) -> Any:
        asked.append(names)
        return sealed_secrets(self, names)

    monkeypatch.setattr(SqlStore, "sealed_secrets", counted)

    @app.task
    def take(token: str) -> str:
        return token[:5]

    app.secrets.set("token", "first value")
    with app.worker():
        jobs = take.enqueue_many([(("secret://token",), {})] * 300)
        assert {job.result("60s") for job in jobs} == {"first"}
        app.secrets.set("token", "second value")
        while take.enqueue("secret://token").result("60s") != "secon":
            pass

    assert len(asked) < 30


def test_plain_jobs_ask_for_no_secrets(app: Mainspring, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("nobody named a secret")

    monkeypatch.setattr(SqlStore, "sealed_secrets", refuse)

    @app.task
    def take(text: str) -> str:
        return text

    with app.worker():
        assert take.enqueue("no secret:// here").result("60s") == "no secret:// here"


def test_a_worker_without_the_key_says_which_one_it_needs(app: Mainspring, monkeypatch: pytest.MonkeyPatch) -> None:
    @app.task(retry=ONCE)
    def take(token: str) -> None: ...

    app.secrets.set("token", CANARY)
    key_id = app.secrets.list()[0].key_id
    monkeypatch.setenv("MAINSPRING_KEYS", new_key())
    other = Mainspring(app.client.url)
    other.task(retry=ONCE)(take)
    with other.worker():
        job = other.enqueue("take", ["secret://token"])
        with pytest.raises(JobFailed, match=f"secret 'token' of team 'default' was sealed .* '{key_id}'"):
            job.result("60s")
    other.close()


def test_what_a_message_of_ours_cuts_short_is_redacted_too(app: Mainspring, url: str) -> None:
    @app.task(retry=ONCE)
    def take(ctx: Context, items: dict[str, dict[str, str]]) -> None:
        ctx.progress(items)  # type: ignore[arg-type]

    app.secrets.set("token", "sk_live_" + "0123456789" * 20)
    with app.worker():
        job = take.enqueue({"a": {"b": "secret://token"}})
        with pytest.raises(JobFailed, match=r"\*\*\*…"):
            job.result("60s")

    assert "sk_live" not in dump(url)
