"""Encrypted jobs: what they are given and what comes of them is read by nobody who has no key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from mainspring import JobState, Limit, Mainspring, Retry, Workflow, every
from mainspring.errors import InvalidValue, JobFailed, KeyMissing, SealBroken
from mainspring.keys import new_key
from mainspring.model.sealed import is_closed
from mainspring.testing import assert_enqueued, drain
from tests.cli.program import in_process as run
from tests.support.databases import dump, execute, table
from tests.support.waiting import until
from tests.worker import encrypted_tasks

CANARY = "canary-siskin"
ONCE = Retry(max_attempts=1)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    key = new_key()
    monkeypatch.setenv("MAINSPRING_KEYS", key)
    return key


@pytest.fixture
def app(url: str) -> Iterator[Mainspring]:
    """An app on each kind of database in turn whose jobs are encrypted."""
    made = Mainspring(url, encrypt=True)
    yield made
    made.close()


def test_arguments_and_results_are_stored_sealed(app: Mainspring, url: str) -> None:
    @app.task
    def echo(text: str, *, more: list[str]) -> dict[str, Any]:
        return {"text": text, "more": more}

    with app.worker():
        job = echo.enqueue(CANARY, more=[CANARY])
        many = echo.enqueue_many([((CANARY,), {"more": [str(n)]}) for n in range(20)])

        assert job.result("60s") == {"text": CANARY, "more": [CANARY]}
        assert [one.result("60s")["more"] for one in many] == [[str(n)] for n in range(20)]

    assert CANARY not in dump(url)
    assert is_closed(job.snapshot.payload)
    assert is_closed(job.snapshot.result or "")


def test_a_task_says_for_itself_whether_it_is_encrypted(app: Mainspring, url: str) -> None:
    plain = Mainspring(url)
    closed = plain.task(name="closed", encrypt=True)(print)
    opened = app.task(name="opened", encrypt=False)(print)

    assert is_closed(closed.enqueue(1).snapshot.payload)
    assert not is_closed(opened.enqueue(1).snapshot.payload)
    assert is_closed(app.task(print).enqueue(1).snapshot.payload)
    plain.close()


@pytest.mark.parametrize(("said", "meant"), [("1", True), ("true", True), ("0", False), ("", False)])
def test_the_environment_may_say_it(said: str, meant: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAINSPRING_ENCRYPT", said)

    assert Mainspring().tasks.encrypt is meant


def test_what_is_neither_yes_nor_no_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAINSPRING_ENCRYPT", "please")

    with pytest.raises(InvalidValue, match="MAINSPRING_ENCRYPT"):
        Mainspring()
    with pytest.raises(InvalidValue, match="encrypt"):
        Mainspring(encrypt=False).task(encrypt="yes")(print)  # type: ignore[call-overload]


def test_a_sender_without_tasks_encrypts_too(app: Mainspring, url: str) -> None:
    app.enqueue("anything", [CANARY])

    assert CANARY not in dump(url)


def test_without_a_key_nothing_is_stored(app: Mainspring, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAINSPRING_KEYS", "")

    with pytest.raises(InvalidValue):
        app.enqueue("anything", [CANARY])
    assert app.jobs() == []


@pytest.mark.parametrize("what", ["payload", "task"])
def test_arguments_that_were_moved_to_another_job_are_refused(app: Mainspring, url: str, what: str) -> None:
    ran: list[str] = []

    @app.task(name="one", retry=ONCE)
    def one(text: str) -> None:
        ran.append(text)

    app.task(name="two", retry=ONCE)(one)
    first, second = one.enqueue("a"), one.enqueue("b")
    jobs, payloads = table(url, "jobs"), (first.snapshot.payload, second.snapshot.payload)
    if what == "payload":
        execute(url, f"UPDATE {jobs} SET payload = '{payloads[1]}' WHERE id = '{first.id}'")
        execute(url, f"UPDATE {jobs} SET payload = '{payloads[0]}' WHERE id = '{second.id}'")
    else:
        execute(url, f"UPDATE {jobs} SET task = 'two'")

    drain(app)

    assert ran == []
    for job in (first, second):
        failure = job.refresh().failure
        assert (job.state, failure and failure.type) == (JobState.FAILED, "mainspring.errors.SealBroken")


def test_a_result_that_was_moved_to_another_job_is_refused(app: Mainspring, url: str) -> None:
    @app.task
    def echo(text: str) -> str:
        return text

    first, second = echo.enqueue("a"), echo.enqueue("b")
    drain(app)
    moved = second.refresh().result
    execute(url, f"UPDATE {table(url, 'jobs_done')} SET result = '{moved}' WHERE id = '{first.id}'")

    with pytest.raises(SealBroken):
        first.result()
    assert second.result() == "b"


def test_what_was_sealed_with_the_old_key_can_be_read_and_the_new_one_seals(
    app: Mainspring, url: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def echo(text: str) -> str:
        return text

    app.task(echo)
    before = app.enqueue("echo", [CANARY])
    newer = new_key()
    monkeypatch.setenv("MAINSPRING_KEYS", f"{newer},{key}")
    after = Mainspring(url, encrypt=True)
    after.task(echo)

    later = after.enqueue("echo", [CANARY])
    drain(after)

    assert [after.job(job.id).result() for job in (before, later)] == [CANARY, CANARY]
    assert f".{newer.partition(':')[0]}." in later.snapshot.payload
    assert f".{key.partition(':')[0]}." in before.snapshot.payload
    after.close()


def test_whoever_has_no_key_can_list_cancel_and_replay(
    app: Mainspring, url: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.task(retry=ONCE)
    def fail(text: str) -> None:
        raise ValueError("no")

    failed, waiting = fail.enqueue(CANARY), fail.using(run_after="1h").enqueue(CANARY)
    drain(app)
    monkeypatch.delenv("MAINSPRING_KEYS")
    keyless = Mainspring(url, encrypt=True)

    assert {job.id for job in keyless.jobs()} == {failed.id, waiting.id}
    assert keyless.job(waiting.id).cancel() is JobState.CANCELLED
    assert keyless.job(failed.id).replay() is JobState.READY
    listed = json.loads(run("jobs", "list", "--json", "--url", url).stdout)["jobs"]
    shown = json.loads(run("jobs", "show", str(failed.id), "--json", "--url", url).stdout)
    for document in [*listed, shown]:
        assert (document["encrypted"], document["args"], document["kwargs"]) == (True, None, None)
    assert "encrypted" in run("jobs", "show", str(failed.id), "--url", url).stdout
    monkeypatch.setenv("MAINSPRING_KEYS", key)
    assert json.loads(run("jobs", "show", str(failed.id), "--json", "--url", url).stdout)["args"] == [CANARY]
    keyless.close()


def test_a_worker_without_the_key_leaves_the_job_to_be_tried_again(
    app: Mainspring, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def take(text: str) -> None: ...

    app.task(take)
    job = app.enqueue("take", [CANARY])
    monkeypatch.setenv("MAINSPRING_KEYS", new_key())
    other = Mainspring(url)
    other.task(take)

    drain(other)

    assert job.state is JobState.RETRYING
    assert isinstance(job.snapshot.failure, msgspec.Struct)
    assert "MAINSPRING_KEYS" in job.snapshot.failure.message
    other.close()


def test_results_go_from_job_to_job_of_a_workflow_and_into_maps(app: Mainspring, url: str) -> None:
    @app.task
    def extract(text: str) -> list[str]:
        return [text, text[::-1]]

    @app.task
    def shout(text: str, times: int) -> str:
        return text + "!" * times

    @app.task
    def join(texts: list[str]) -> str:
        return " ".join(texts)

    @app.workflow
    def inner(wf: Workflow, text: str) -> None:
        wf.add(join, wf.map(shout, wf.add(extract, text), 2))

    with app.workflow("outer") as wf:
        wf.add(join, [wf.add(inner, CANARY), wf.add(shout, "b", times=1)])
        wf.map(shout, ["x", "y"], times=3)
    drain(app)
    run_ = wf.enqueue()
    drain(app)

    assert run_.result() == ["x!!!", "y!!!"]
    results = [job.result() for job in run_.jobs()]
    assert results[2] == f"{CANARY}!! {CANARY[::-1]}!! b!"
    assert CANARY not in dump(url)
    assert CANARY[::-1] not in dump(url)


def test_what_undoes_is_sealed_for_its_workflow(app: Mainspring, url: str) -> None:
    undone: list[str] = []

    @app.task
    def do(text: str) -> str:
        return text * 2

    @app.task
    def undo(text: str, done: str) -> None:
        undone.append(f"{text} {done}")

    @app.task(retry=ONCE)
    def fail() -> None:
        raise ValueError("no")

    with app.workflow("saga") as wf:
        first = wf.add(do, "a-canary")
        first.on_failure(undo, "a-canary", first)
        second = wf.add(do.using(after=[first]), "b-canary")
        second.on_failure(undo, "b-canary", second)
        wf.add(fail.using(after=[second]))
    wf.enqueue()
    drain(app)

    assert undone == ["b-canary b-canaryb-canary", "a-canary a-canarya-canary"]
    assert "canary" not in dump(url)


def test_schedules_make_encrypted_jobs_without_a_key_and_are_not_changed_by_being_stored_again(
    app: Mainspring, url: str, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    got: list[str] = []

    @app.schedule(every("1h"), id="hourly", kwargs={"text": CANARY})
    @app.task(retry=ONCE)
    def take(text: str) -> None:
        got.append(text)

    app.schedules.sync()
    stored = app.schedules.get("hourly")
    app.schedules.sync()
    assert app.schedules.get("hourly").definition == stored.definition
    monkeypatch.delenv("MAINSPRING_KEYS")
    keyless = Mainspring(url)
    job = keyless.schedules.trigger("hourly")
    shown = json.loads(run("schedules", "show", "hourly", "--json", "--url", url).stdout)
    monkeypatch.setenv("MAINSPRING_KEYS", key)
    drain(app)

    assert (shown["encrypted"], shown["args"]) == (True, None)
    assert got == [CANARY]
    assert job.state is JobState.SUCCEEDED
    assert CANARY not in dump(url)
    keyless.close()


def test_what_a_schedule_was_given_is_good_for_its_own_jobs_only(app: Mainspring, url: str) -> None:
    got: list[str] = []

    @app.task(retry=ONCE)
    def take(text: str) -> None:
        got.append(text)

    app.schedules.add("a", take, every("1h"), kwargs={"text": "a"})
    app.schedules.add("b", take, every("1h"), kwargs={"text": "b"})
    app.schedules.trigger("a")
    execute(url, f"UPDATE {table(url, 'jobs')} SET schedule = 'b'")

    drain(app)

    assert got == []


def test_dead_letters_are_replayed_with_other_arguments(app: Mainspring, url: str) -> None:
    @app.task(retry=ONCE)
    def divide(by: int, text: str) -> float:
        return 1 / by

    job = divide.enqueue(0, CANARY)
    drain(app)
    with app.worker():
        report = app.dead.replay(task="divide", patch={"by": 2})

    assert (report.succeeded, job.result()) == (1, 0.5)
    assert CANARY not in dump(url)


def test_keys_fair_keys_and_limits_are_told_by_the_arguments(app: Mainspring, url: str) -> None:
    @app.task(key="k:{user}", fair="{user}", limits=[Limit("l:{user}", concurrency=1)])
    def take(user: int, text: str) -> str:
        return text

    job = take.enqueue(7, CANARY)
    assert take.enqueue(7, "another").id == job.id
    drain(app)

    assert (job.refresh().key, job.snapshot.fair) == ("k:7", "7")
    assert [limit.key for limit in app.limits.list()] == ["l:7"]
    assert job.result() == CANARY
    assert_enqueued(app, take, args=[7, CANARY])
    assert CANARY not in dump(url)


@pytest.mark.parametrize("if_taken", ["replace", "reschedule"])
def test_a_job_that_would_take_over_what_is_sealed_for_another_is_refused(app: Mainspring, if_taken: Any) -> None:
    @app.task
    def take(text: str) -> None: ...

    with pytest.raises(InvalidValue, match="encrypted"):
        take.using(key="k", if_taken=if_taken).enqueue(CANARY)


def test_secrets_in_encrypted_arguments_are_revealed_and_redacted(app: Mainspring, url: str) -> None:
    @app.task(retry=ONCE)
    def take(token: str) -> Any:
        return [len(token), token]

    app.secrets.set("token", CANARY)
    job = take.enqueue("secret://token")
    drain(app)

    assert job.result() == [len(CANARY), "***"]
    assert "secret://" not in dump(url)


def test_steps_signals_and_blocks_of_other_processes_are_sealed(url: str) -> None:
    app = encrypted_tasks.app
    with app.client.redirect(url), app.worker(concurrency=1):
        job = encrypted_tasks.durable.enqueue("canary-a")
        job.signal("go", "canary-b")
        job.signal("go", ["canary-c"])
        block = encrypted_tasks.in_a_block.enqueue("canary-d")
        encrypted_tasks.adds.enqueue("canary-e").result("60s")

        assert job.result("60s") == ["CANARY-A", "canary-b", ["canary-c"]]
        assert block.result("60s") == ["canary-d"]
        until(lambda: all(one.state.final for one in app.jobs()))
        (shouted,) = app.jobs(task="shout")
        assert shouted.result() == "canary-e!"
        assert [step.result for step in job.steps()] == ['"CANARY-A"', '"canary-b"', '["canary-c"]']
        shown = json.loads(run("jobs", "show", str(job.id), "--json", "--url", url).stdout)
        assert [step["result"] for step in shown["steps"]] == ["CANARY-A", "canary-b", ["canary-c"]]

    assert "canary" not in dump(url).lower()


def test_a_result_that_looks_sealed_is_no_more_than_it_says(app: Mainspring, url: str) -> None:
    @app.task(encrypt=False)
    def pretend() -> dict[str, str]:
        return {"sealed": "v1.k.n.c"}

    job = pretend.enqueue()
    drain(app)

    assert job.result() == {"sealed": "v1.k.n.c"}


def test_a_result_can_not_be_read_without_the_key(app: Mainspring, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    @app.task
    def echo(text: str) -> str:
        return text

    job = echo.enqueue(CANARY)
    drain(app)
    monkeypatch.setenv("MAINSPRING_KEYS", new_key())
    other = Mainspring(url)

    with pytest.raises(KeyMissing):
        other.job(job.id).result()
    other.close()


def test_jobs_from_before_are_run_and_their_results_sealed(app: Mainspring, url: str) -> None:
    @app.task
    def echo(text: str) -> str:
        return text

    plain = Mainspring(url)
    job = plain.enqueue("echo", ["was plain"])
    drain(app)

    assert is_closed(job.refresh().result or "")
    assert app.job(job.id).result() == "was plain"
    plain.close()


def test_a_key_that_can_not_be_used_fails_those_that_need_it_and_no_others(
    app: Mainspring, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.task(encrypt=True, retry=Retry(max_attempts=1))
    def sealed(text: str) -> None: ...

    @app.task(encrypt=False)
    def plain() -> str:
        return "done"

    first, second = sealed.enqueue("x"), plain.enqueue()
    monkeypatch.setenv("MAINSPRING_KEYS", "no key at all")
    app.client.close()
    with app.client.redirect(app.client.url), app.worker():
        assert second.result(timeout=30) == "done"
        with pytest.raises(JobFailed):
            first.result(timeout=30)


def test_a_map_over_what_is_sealed_stores_nothing_in_the_open(app: Mainspring, url: str) -> None:
    @app.task(encrypt=True)
    def patients() -> list[str]:
        return ["TOPSECRET-1", "TOPSECRET-2"]

    @app.task(encrypt=False)
    def handle(name: str) -> int:
        return len(name)

    with app.workflow("w") as wf:
        wf.map(handle, wf.add(patients))
    run = wf.enqueue()
    with app.worker():
        assert run.result(timeout=30) == [11, 11]

    assert all("TOPSECRET" not in str(app.client.get(job.id)) for job in app.jobs())
