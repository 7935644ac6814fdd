"""`mainspring jobs signal`, and what `jobs show` tells of steps."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from mainspring.cli.ids import short
from mainspring.model.job import Job
from mainspring.model.lifecycle import settle
from mainspring.model.outcome import Suspended
from tests.cli.jobs import Jobs, jobs_in
from tests.cli.program import assert_refused, in_process, mainspring

ALSO_FROM_AFAR = True

HOUR = timedelta(hours=1)


def waiting(jobs: Jobs) -> Job:
    """Return a job that waits for the signal `approved`, an hour at most."""
    job = jobs.run()
    jobs.store.record_step(job.id, job.fence, "charge", '{"paid":true}')
    jobs.store.take_signal(job.id, job.fence, "@signal approved", "approved", HOUR)
    jobs.store.settle([settle(job, Suspended(HOUR, "approved"))])
    return jobs.get(job.id)


def taken(jobs: Jobs) -> object:
    (job,) = jobs.store.claim(jobs.session.id, "default", 1)
    value = jobs.store.take_signal(job.id, job.fence, "@signal approved", "approved", HOUR)
    assert isinstance(value, str)
    return json.loads(value)


def test_a_job_that_waits_goes_on(url: str) -> None:
    with jobs_in(url) as jobs:
        job = waiting(jobs)

        done = mainspring("jobs", "signal", short(job.id), "approved", '{"by": "ada"}', "--url", url)

        assert (done.returncode, done.stderr, done.stdout) == (0, "", f"{job.id} ready\n")
        assert taken(jobs) == {"by": "ada"}


@pytest.mark.parametrize(("given", "value"), [(["7"], 7), (["by ada"], "by ada"), ([], None)])
def test_a_value_is_json_or_else_text_or_none(jobs: Jobs, given: list[str], value: object) -> None:
    job = waiting(jobs)

    told = json.loads(in_process("jobs", "signal", str(job.id), "approved", *given, "--json").stdout)

    assert told == {"id": str(job.id), "signal": "approved", "value": value, "state": "ready"}
    assert taken(jobs) == value


def test_what_can_not_be_sent_is_refused(jobs: Jobs) -> None:
    done, job = jobs.succeed(), jobs.run()

    assert_refused(in_process("jobs", "signal", str(done.id), "approved"), "takes no signals any more; enqueue another")
    assert_refused(in_process("jobs", "signal", str(job.id), "two words"), "expected", "two words")
    nobody = "01999999-9999-7000-8000-000000000000"
    missing = in_process("jobs", "signal", nobody, "approved")
    assert (missing.returncode, missing.stderr[:24]) == (1, "error: no job has the id")


def test_the_steps_of_a_job_are_shown(jobs: Jobs) -> None:
    job = waiting(jobs)

    text = "\n".join(" ".join(line.split()) for line in in_process("jobs", "show", str(job.id)).stdout.splitlines())
    told = json.loads(in_process("jobs", "show", str(job.id), "--json").stdout)

    assert "\nSteps\n" in text
    assert '{"paid":true}' in text
    assert "waits until" in text
    assert [(step["name"], step["result"], step["pending"]) for step in told["steps"]] == [
        ("charge", {"paid": True}, False),
        ("@signal approved", None, True),
    ]
    assert told["signal"] == "approved"
    assert told["waits_because"][0]["code"] == "signal"
