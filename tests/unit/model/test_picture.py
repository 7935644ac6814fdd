"""Pictures of workflows: what is drawn, in which order, and what is left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from mainspring.model.job import Job, JobState, NewJob, Wish
from mainspring.model.links import Edge, encode_links
from mainspring.model.picture import Kind, Picture, picture_of, progress, tally
from mainspring.model.workflow import Plan, Undo, encode_plan

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
ROOT = UUID(int=1)
PLAIN = encode_plan(Plan(begun=True))
MAP = encode_plan(Plan(begun=True, gathers=True))
S, F, B = JobState.SUCCEEDED, JobState.FAILED, JobState.BLOCKED


def job(number: int, task: str, state: JobState = S, after: Sequence[int] = (), **more: Any) -> Job:
    """Return a job that took as many seconds as its number, if it has started."""
    started = NOW - timedelta(seconds=number) if state in (JobState.RUNNING, S, F) else None
    links = encode_links([Edge(UUID(int=parent)) for parent in after], None) if after else None
    given: dict[str, Any] = {"started_at": started, "links": links, **more}
    return Job(
        UUID(int=number),
        task,
        "default",
        "{}",
        5,
        state,
        NOW,
        NOW,
        None,
        1,
        0,
        1,
        None,
        given.pop("started_at"),
        given.pop("wish", None),
        given.pop("reason", None),
        given.pop("error", None),
        NOW if state.final else None,
        None,
        None,
        None,
        None,
        None,
        None,
        workflow=ROOT,
        **given,
    )


def drawn(
    *members: Job, plan: str = PLAIN, counts: Mapping[int, Mapping[JobState, int]] | None = None, state: JobState = B
) -> Picture:
    """Return the picture of a workflow with these members."""
    own: dict[JobState, int] = {}
    for member in members:
        own[member.state] = own.get(member.state, 0) + 1
    known = {ROOT: own, **{UUID(int=number): told for number, told in (counts or {}).items()}}
    return picture_of(job(1, "etl", state, plan=plan), members, known, NOW)


def test_each_job_stands_below_the_last_of_those_that_it_comes_after() -> None:
    picture = drawn(
        job(2, "extract"),
        job(3, "check"),
        job(4, "transform", JobState.RUNNING, after=[2]),
        job(5, "count", F, after=[3]),
        job(6, "load", B, after=[4, 5]),
        job(7, "tidy", JobState.CANCELLED, after=[3]),
    )

    assert str(picture).splitlines() == [
        "✓ extract      succeeded  2s",
        "  ▶ transform  running    4s",
        "✓ check        succeeded  3s",
        "  ✗ count      failed     5s",
        "    · load     blocked    after transform, count",
        "  ⊘ tidy       cancelled",
    ]
    assert picture.edges == [
        (UUID(int=parent), UUID(int=child)) for parent, child in ((2, 4), (3, 5), (4, 6), (5, 6), (3, 7))
    ]


@pytest.mark.parametrize(
    ("state", "mark"),
    [
        (JobState.BLOCKED, "·"),
        (JobState.SCHEDULED, "·"),
        (JobState.READY, "·"),
        (JobState.RUNNING, "▶"),
        (JobState.RETRYING, "↻"),
        (JobState.PAUSED, "⏸"),
        (JobState.SUCCEEDED, "✓"),
        (JobState.FAILED, "✗"),
        (JobState.CANCELLED, "⊘"),
        (JobState.EXPIRED, "⊘"),
    ],
)
def test_each_state_has_its_mark(state: JobState, mark: str) -> None:
    assert str(drawn(job(2, "extract", state))).startswith(f"{mark} extract  {state}")


def test_names_that_occur_several_times_get_numbers() -> None:
    picture = drawn(job(2, "load"), job(3, "load", after=[2]), job(4, "other", B, after=[2, 3]))

    assert str(picture).splitlines() == [
        "✓ load 1     succeeded  2s",
        "  ✓ load 2   succeeded  3s",
        "    · other  blocked    after load 1, load 2",
    ]


def test_a_map_is_one_line_with_counts_and_a_workflow_within_tells_how_far_it_is() -> None:
    picture = drawn(
        job(2, "transform", F, plan=MAP),
        job(3, "nightly", B, plan=PLAIN),
        job(4, "later", B, plan=encode_plan(Plan(gathers=True))),
        job(5, "nothing", S, plan=encode_plan(Plan(gathers=True))),
        job(6, "ending", B, plan=PLAIN, wish=Wish.CANCEL),
        counts={2: {S: 4_998, F: 2}, 3: {S: 2, JobState.RUNNING: 1, B: 4}, 6: {JobState.RUNNING: 1}},
    )

    assert str(picture).splitlines() == [
        "✗ transform × 5,000: 4,998 succeeded, 2 failed  2s",
        "▶ nightly      under way        2 of 7 jobs: 2 succeeded, 1 running",
        "· later × ?    blocked",
        "✓ nothing × 0  succeeded        5s",
        "▶ ending       being cancelled  0 of 1 job: 1 running",
    ]
    assert [node.kind for node in picture.nodes] == [Kind.MAP, Kind.WORKFLOW, Kind.MAP, Kind.MAP, Kind.WORKFLOW]
    assert picture.progress == "2 of 5 jobs: 1 succeeded, 2 running, 1 failed"


def test_many_that_are_alike_are_one_line() -> None:
    some = [job(number, "part", F if number == 9 else S, after=[2]) for number in range(3, 33)]
    picture = drawn(job(2, "split"), *some, job(40, "join", B, after=range(3, 33)), job(41, "part", B, after=[40]))

    assert str(picture).splitlines() == [
        "✓ split         succeeded  2s",
        "  ✗ part 1 × 30: 29 succeeded, 1 failed",
        "    · join      blocked",
        "      · part 2  blocked",
    ]
    assert len(picture.nodes) == 33


@pytest.mark.parametrize(
    ("states", "mark"),
    [
        ({S: 20, B: 10}, "▶"),
        ({JobState.READY: 20, B: 10}, "·"),
        ({S: 20, JobState.CANCELLED: 10}, "⊘"),
        ({S: 20, JobState.EXPIRED: 9, F: 1}, "✗"),
        ({S: 30}, "✓"),
    ],
)
def test_many_look_as_they_do_together(states: dict[JobState, int], mark: str) -> None:
    every = [state for state, count in states.items() for _ in range(count)]

    assert str(drawn(*(job(n, "part", state) for n, state in enumerate(every, 2)))).startswith(f"{mark} part × 30: ")


def test_a_map_that_is_drawn_itself_counts_all_its_jobs_though_not_all_are_known() -> None:
    members = [job(number, "part") for number in range(2, 12)]
    picture = drawn(*members, plan=MAP, counts={1: {S: 99_999, F: 1}})

    assert str(picture) == "✗ etl × 100,000: 99,999 succeeded, 1 failed"
    assert picture.left_out == 99_990


def test_what_is_left_out_is_told() -> None:
    picture = drawn(job(2, "part"), counts={1: {S: 1_235}})

    assert str(picture).splitlines()[-1] == "… and 1,234 jobs more"


def test_a_long_chain_is_indented_only_so_far_and_then_says_what_comes_before() -> None:
    chain = [job(number, f"job{number}", after=[number - 1] if number > 2 else []) for number in range(2, 400)]

    lines = str(drawn(*chain)).splitlines()

    assert lines[10].startswith("                    ✓ job12  ")
    assert "after" not in lines[10]
    assert lines[11].startswith("                    ✓ job13  ")
    assert lines[11].endswith("  after job12")
    assert max(map(len, lines)) < 80


def test_parents_that_are_many_or_outside_are_counted() -> None:
    some = [job(number, f"job{number}") for number in range(10, 15)]
    picture = drawn(*some, job(20, "join", B, after=range(10, 15)), job(21, "other", B, after=[5]))

    assert str(picture).splitlines()[-2:] == [
        "  · join  blocked    after job10, job11, job12 and 2 more",
        "· other   blocked    after 1 job outside",
    ]
    assert picture.edges[-1] == (UUID(int=14), UUID(int=20))


def test_what_undoes_is_marked_and_failures_are_told_in_one_line() -> None:
    undo = Undo(UUID(int=2), NewJob(id=UUID(int=9), task="unbook", payload="{}"))
    picture = drawn(
        job(2, "book"),
        job(3, "pay", F, error='{"type":"E","message":"no luck\\nat all"}'),
        job(4, "ask", JobState.EXPIRED, reason="too late"),
        job(9, "unbook"),
        plan=encode_plan(Plan(begun=True, undo=(undo,))),
    )

    assert str(picture).splitlines()[-1] == "✓ unbook  succeeded  9s  to undo"
    assert [node.why for node in picture.nodes] == [None, "no luck", "too late", None]


def test_a_workflow_without_jobs_is_an_empty_picture() -> None:
    assert (str(drawn()), drawn().mermaid(), drawn().progress) == ("", "flowchart TD", "0 of 0 jobs")


def test_mermaid_gets_states_as_classes() -> None:
    picture = drawn(
        job(2, "extract"),
        job(3, "transform", B, after=[2], plan=MAP),
        job(4, "load", B, after=[2, 3]),
        counts={3: {S: 7}},
    )

    assert picture.mermaid().splitlines() == [
        "flowchart TD",
        '    n1["extract<br/>succeeded, 2s"]:::succeeded',
        '    n2[["transform × 7: 7 succeeded"]]:::running',
        '    n3["load<br/>blocked"]:::blocked',
        "    n1 --> n2",
        "    n1 --> n3",
        "    n2 --> n3",
        "    classDef blocked fill:#f8f9fa,stroke:#6c757d,color:#000",
        "    classDef running fill:#cff4fc,stroke:#087990,color:#000",
        "    classDef succeeded fill:#d1e7dd,stroke:#146c43,color:#000",
    ]


@pytest.mark.parametrize("sign", ['"', "<", ">", "#", "&", ";", "`", "]", "}", "|", "%", "*", "\\", "\x1b"])
def test_no_name_breaks_out_of_its_place_in_mermaid(sign: str) -> None:
    (_, line, _) = drawn(job(2, f"a{sign}b")).mermaid().splitlines()

    assert line == f'    n1["a#{ord(sign)};b<br/>succeeded, 2s"]:::succeeded'


def test_a_name_of_several_lines_is_one_in_mermaid() -> None:
    assert 'n1["a b click n1 x<br/>' in drawn(job(2, "a\nb\r\n click n1 x")).mermaid()


def test_counts_are_told_in_the_order_of_interest() -> None:
    counts = {B: 5, F: 1, JobState.RUNNING: 1, S: 5}

    assert tally(counts) == "5 succeeded, 1 running, 1 failed, 5 blocked"
    assert progress(counts) == "6 of 12 jobs: 5 succeeded, 1 running, 1 failed"
    assert progress({B: 12}) == "0 of 12 jobs"
