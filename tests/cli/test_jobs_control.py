"""`mainspring jobs cancel`, `pause`, `resume` and `replay`."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from uuid import UUID

import pytest

from mainspring.cli.ids import short
from mainspring.cli.jobs import control
from mainspring.model.failure import Failure
from mainspring.model.job import JobState, Wish
from mainspring.model.lifecycle import settle
from mainspring.model.outcome import Failed, Succeeded
from mainspring.service import person
from mainspring.store.sql import SqlStore
from tests.cli.jobs import FAILED, Jobs, jobs_in
from tests.cli.program import assert_refused, in_process, mainspring

ALSO_FROM_AFAR = True

NOBODY = "01999999-9999-7000-8000-000000000000"


def test_jobs_are_acted_on_one_after_the_other(url: str) -> None:
    with jobs_in(url) as jobs:
        job, other = jobs.add(), jobs.add()

        for command, state in (("pause", "paused"), ("resume", "ready"), ("cancel", "cancelled"), ("replay", "ready")):
            done = mainspring("jobs", command, str(job), short(other), "--url", url)

            assert (done.returncode, done.stderr) == (0, "")
            assert done.stdout == f"{job} {state}\n{other} {state}\n"
            assert jobs.get(job).state == jobs.get(other).state == state


def test_a_running_jobs_worker_is_asked(jobs: Jobs) -> None:
    job = jobs.run()

    paused = in_process("jobs", "pause", str(job.id), "--reason", "too hot")
    assert paused.stdout == f"{job.id} running; its worker was asked to pause it\n"
    who = "anybody on this machine" if os.environ["MAINSPRING_URL"].startswith("http") else person()
    assert (jobs.get(job.id).wish, jobs.get(job.id).reason) == (Wish.PAUSE, f"by {who}: too hot")
    assert in_process("jobs", "resume", str(job.id)).stdout == f"{job.id} running\n"
    assert jobs.get(job.id).wish is None
    assert in_process("jobs", "cancel", str(job.id)).stdout == f"{job.id} running; its worker was asked to cancel it\n"
    assert jobs.get(job.id).wish is Wish.CANCEL


def test_a_job_that_can_not_be_acted_on_stays_as_it_is(jobs: Jobs) -> None:
    job = jobs.succeed()

    for command, done in (("cancel", "cancelled"), ("pause", "paused"), ("resume", "resumed"), ("replay", "replayed")):
        assert in_process("jobs", command, str(job.id)).stdout == f"{job.id} succeeded, so it can't be {done}\n"
    assert jobs.get(job.id) == job


def test_jobs_are_chosen_by_time_and_by_error(jobs: Jobs) -> None:
    failed, other = jobs.fail(), jobs.end(Failed(Failure(type="KeyError", message="lost")))

    none = in_process("jobs", "replay", "--error", "no luck", "--until", "1h", "--yes")
    done = in_process("jobs", "replay", "--error", "no luck", "--since", "1h", "--yes")

    assert (none.stdout, done.stdout) == ("No job is like that.\n", "Replayed 1 job.\n")
    assert (jobs.get(failed.id).state, jobs.get(other.id).state) == (JobState.READY, JobState.FAILED)


def test_a_dead_job_whose_key_is_taken_stays_dead(jobs: Jobs) -> None:
    dead = jobs.fail(key="k")
    jobs.add(key="k")

    done = in_process("jobs", "replay", str(dead.id))

    assert done.stdout == f"{dead.id} failed, because an unfinished job has the same key\n"


def test_an_id_that_no_job_has_does_not_keep_the_others_from_being_acted_on(jobs: Jobs) -> None:
    job = jobs.add()

    done = in_process("jobs", "cancel", NOBODY, str(job), "--reason", "a typo")

    assert (done.returncode, done.stdout) == (1, f"{job} cancelled\n")
    assert done.stderr == f"error: no job has the id {NOBODY}; it may have been pruned\n"
    assert jobs.get(job).reason == "a typo"


def test_programs_are_told_what_became_of_each(jobs: Jobs) -> None:
    job = jobs.add()

    done = in_process("jobs", "cancel", str(job), NOBODY, str(job), "--json")

    assert done.returncode == 1
    assert json.loads(done.stdout) == {
        "jobs": [{"id": str(job), "before": "ready", "state": "cancelled"}],
        "missing": [NOBODY],
    }


def test_many_jobs_are_chosen_by_what_they_are_like(jobs: Jobs) -> None:
    failed = [jobs.fail(task="send").id for _ in range(3)]
    other = jobs.fail(task="other").id

    done = in_process("jobs", "replay", "--task", "send", "--yes", "--reason", "mended")

    assert (done.returncode, done.stdout, done.stderr) == (0, "Replayed 3 jobs.\n", "")
    assert {jobs.get(job).state for job in failed} == {JobState.READY}
    assert jobs.get(failed[0]).reason == "mended"
    assert jobs.get(other).state is JobState.FAILED


def test_replaying_by_task_leaves_alone_what_was_cancelled_on_purpose(jobs: Jobs) -> None:
    job = jobs.add()
    jobs.store.cancel([job])

    assert in_process("jobs", "replay", "--task", "greet", "--yes").stdout == "No job is like that.\n"
    assert in_process("jobs", "replay", "--state", "cancelled", "--yes").stdout == "Replayed 1 job.\n"


def test_cancelling_by_queue_takes_all_that_are_unfinished(jobs: Jobs) -> None:
    succeeded, running = jobs.succeed(), jobs.run()
    waiting = [jobs.add(), jobs.add(delay=3600), jobs.add()]
    jobs.store.pause([waiting[0]])

    done = in_process("jobs", "cancel", "--queue", "default", "--yes")

    assert done.stdout == "Cancelled 4 jobs.\n"
    assert {jobs.get(job).state for job in waiting} == {JobState.CANCELLED}
    assert jobs.get(running.id).wish is Wish.CANCEL
    assert jobs.get(succeeded.id) == succeeded


def test_what_could_not_be_replayed_is_counted(jobs: Jobs) -> None:
    jobs.fail(key="k")
    jobs.fail()
    jobs.add(key="k")

    assert in_process("jobs", "replay", "--state", "failed", "-y").stdout == "Replayed 1 job; 1 stayed as it was.\n"


def meanwhile(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object]) -> None:
    """Have something happen while the person is asked whether he means it, and have him say yes."""
    monkeypatch.setattr(control, "confirmed", lambda *_: happens() or True)


def test_what_succeeded_before_it_was_confirmed_is_not_counted(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs.add()

    def succeed() -> None:
        (job,) = jobs.store.claim(jobs.session.id, "default", 1)
        jobs.store.settle([settle(job, Succeeded("null"))])

    meanwhile(monkeypatch, succeed)

    done = in_process("jobs", "cancel", "--task", "greet")

    assert done.stdout == "Cancelled 0 jobs; 1 stayed as it was.\n"


@pytest.mark.parametrize("command", ["cancel", "pause", "resume", "replay"])
def test_what_another_did_before_it_was_confirmed_is_not_counted(
    command: str, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = jobs.store
    job = jobs.fail().id if command == "replay" else jobs.add()
    if command == "resume":
        store.pause([job])
    meanwhile(monkeypatch, lambda: getattr(store, command)([job]))

    done = in_process("jobs", command, "--task", "greet")

    assert done.stdout.endswith("d 0 jobs; 1 stayed as it was.\n")


def test_running_jobs_count_once_their_worker_was_asked_and_only_then(jobs: Jobs) -> None:
    held, free = jobs.run(), jobs.run()
    jobs.store.pause([held.id])

    def said(command: str) -> str:
        return in_process("jobs", command, "--state", "running", "--yes").stdout

    assert said("resume") == "Resumed 1 job; 1 stayed as it was.\n"
    jobs.store.cancel([free.id])
    assert said("pause") == "Paused 1 job; 1 stayed as it was.\n"
    assert said("cancel") == "Cancelled 1 job; 1 stayed as it was.\n"
    assert said("cancel") == "Cancelled 0 jobs; 2 stayed as they were.\n"


def test_a_request_that_changes_nothing_does_not_pass_for_one_that_does(jobs: Jobs) -> None:
    job = jobs.run()
    jobs.store.cancel([job.id])

    for command in ("cancel", "pause", "resume"):
        done = in_process("jobs", command, str(job.id))
        assert done.stdout == f"{job.id} running; its worker was asked to cancel it already\n"


def test_a_replayed_job_that_has_failed_again_counts(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs.fail()
    act = SqlStore.replay

    def replay_and_fail(store: SqlStore, ids: list[UUID], reason: str | None) -> dict[UUID, JobState]:
        states = act(store, ids, reason)
        (job,) = store.claim(jobs.session.id, "default", 1)
        store.settle([settle(job, FAILED)])
        return states

    monkeypatch.setattr(SqlStore, "replay", replay_and_fail)

    assert in_process("jobs", "replay", "--state", "failed", "--yes").stdout == "Replayed 1 job.\n"


def test_a_job_that_begins_after_another_has_replayed_it_does_not_count(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, act = jobs.fail(), SqlStore.replay

    def replay_late(store: SqlStore, ids: list[UUID], reason: str | None) -> dict[UUID, JobState]:
        store.claim(jobs.session.id, "default", 1)
        return act(store, ids, reason)

    meanwhile(monkeypatch, lambda: act(jobs.store, [job.id]))
    monkeypatch.setattr(SqlStore, "replay", replay_late)

    assert in_process("jobs", "replay", "--state", "failed").stdout == "Replayed 0 jobs; 1 stayed as it was.\n"


def test_many_jobs_are_acted_on_in_batches(jobs: Jobs) -> None:
    ids = [jobs.add() for _ in range(1_203)]

    done = in_process("jobs", "pause", "--task", "greet", "--yes", "--json")

    assert json.loads(done.stdout) == {"found": 1_203, "paused": 1_203}
    assert jobs.store.counts() == {"default": {JobState.PAUSED: len(ids)}}


def test_without_a_terminal_nothing_is_done_to_many_jobs_unasked(jobs: Jobs) -> None:
    job = jobs.fail()

    assert_refused(in_process("jobs", "replay", "--state", "failed"), "this would replay 1 job", "--yes")
    assert jobs.get(job.id).state is JobState.FAILED


@pytest.mark.parametrize(("answer", "said", "state"), [("y", "Replayed 1 job.", "ready"), ("n", "Nothing", "failed")])
def test_at_a_terminal_the_number_is_shown_and_the_user_asked(answer: str, said: str, state: str, jobs: Jobs) -> None:
    job = jobs.fail()
    terminal, end = pty.openpty()
    command = [sys.executable, "-m", "mainspring", "jobs", "replay", "--state", "failed"]

    process = subprocess.Popen(command, stdin=end, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    os.close(end)
    os.write(terminal, f"{answer}\n".encode())
    out, err = process.communicate(timeout=60)
    os.close(terminal)

    assert process.returncode == 0
    assert "Replay 1 job? [y/N]" in err
    assert said in out
    assert jobs.get(job.id).state == state


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["cancel"], ["by id or by --state, --queue, --task, --key", "--error", "neither"]),
        (["cancel", NOBODY, "--task", "x"], ["both"]),
        (["cancel", "--state", "failed"], ["failed can't be cancelled", "blocked, scheduled, ready"]),
        (["replay", "--state", "succeeded"], ["succeeded can't be replayed", "failed, cancelled, expired"]),
        (["pause", "--state", "pausd"], ["did you mean 'paused'?"]),
        (["resume", "--state", "ready"], ["ready can't be resumed"]),
        (["cancel", "xyz"], ["id of a job", "'xyz'"]),
        (["resume", NOBODY, "--reason", "x"], ["--reason"]),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: list[str], words: list[str], jobs: Jobs) -> None:
    assert_refused(in_process("jobs", *arguments), *words)
