"""The overview: charts of what became of jobs, and of what waits."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from mainspring import Mainspring
from mainspring.model.history import SCALES, History, Sample
from mainspring.store import inspect
from mainspring.tally import Counts
from mainspring.testing import drain
from mainspring.web.charts import draw, marks
from tests.web.conftest import Visitor

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def history(*samples: Sample) -> History:
    return History(over="1h", span=timedelta(minutes=1), samples=samples)


def sample(minute: int, **known: object) -> Sample:
    return Sample(since=NOON + timedelta(minutes=minute), **known)  # type: ignore[arg-type]


def counts(succeeded: int, failed: int = 0, waited: float = 0.02) -> Counts:
    made = Counts()
    made.succeeded, made.failed = succeeded, failed
    made.waits.add(waited, succeeded + failed)
    return made


def drawn(page: str) -> list[str]:
    return re.findall(r'role="img" aria-label="([^"]*)"', page)


def test_before_anything_is_known_it_says_what_to_do(visitor: Visitor) -> None:
    page = visitor().get("/").text

    assert "Nothing to draw yet" in page
    assert "Start a worker" in page
    assert drawn(page) == []


def test_what_was_counted_is_drawn_and_told_in_words(visitor: Visitor, app: Mainspring) -> None:
    app.client.store.add_counts({(None, "mail"): counts(7, 2)})
    app.enqueue("greet", ["Ada"])
    app.client.store.sample()
    page = visitor().get("/").text

    throughput, failures, backlog, lag = drawn(page)
    assert throughput.startswith("Throughput over the last 1h: ")
    assert "7 succeeded and 2 failed in all" in throughput
    assert "2 jobs failed for good, and 0 attempts failed and were made again" in failures
    assert "1 ready" in backlog
    assert "99 % within 25ms" in lag
    assert "7 succeeded, 2 failed</title>" in page
    assert 'style="' not in page


@pytest.mark.parametrize("over", SCALES)
def test_one_chooses_how_far_to_look_back_without_script(visitor: Visitor, app: Mainspring, over: str) -> None:
    app.client.store.add_counts({(None, "mail"): counts(7)})
    browser = visitor()
    page = browser.get("/", params={"over": over}).text

    assert re.findall(r'href="/\?over=(\w+)"', page) == list(SCALES)
    assert f'href="/?over={over}" aria-current="true"' in page
    assert [about.split(": ")[0].split()[-1] for about in drawn(page)] == [over] * 4
    assert page.count('class="spot"') == 4 * (SCALES[over].back // SCALES[over].span)


def test_a_length_of_time_that_is_not_kept_is_refused_in_words(visitor: Visitor) -> None:
    refused = visitor().get("/", params={"over": "<2h>"})

    assert refused.status_code == 422
    assert "expected over to be one of 1h, 24h, 7d, got: &#39;&lt;2h&gt;&#39;" in refused.text


def test_what_failed_long_ago_is_not_looked_for_whenever_something_happens(
    visitor: Visitor, app: Mainspring, monkeypatch: pytest.MonkeyPatch
) -> None:
    acme = app.within("acme")
    old = acme.enqueue("fail")
    for _ in range(9):
        acme.enqueue("greet", ["Ada"])
    drain(app)
    browser = visitor(acme="viewer")

    assert f"/jobs/{old.id}" in browser.get("/").text
    monkeypatch.setattr(inspect, "LOOKED", 5)
    page = browser.get("/").text
    assert (f"/jobs/{old.id}" in page, "Nothing has failed lately" in page) == (False, True)


def test_a_team_sees_what_became_of_its_own_jobs(visitor: Visitor, app: Mainspring) -> None:
    app.client.store.add_counts({(None, "mail"): counts(7), ("acme", "mail"): counts(5)})

    assert "5 succeeded and 0 failed in all" in visitor(acme="viewer").get("/").text
    assert "7 succeeded and 0 failed in all" in visitor(default="viewer").get("/").text


def test_the_charts_follow_by_themselves(visitor: Visitor) -> None:
    """Time moves on where no event tells of it, and what is focussed in them keeps nothing else from being renewed."""
    page = visitor().get("/").text

    assert '<section class="card" id="history" data-live="history" data-tick="30">' in page
    assert re.findall(r'id="(\w+)" data-live', page) == ["overview", "history", "more"]


def test_all_is_drawn_where_all_is_nothing() -> None:
    charts = draw(history(*(sample(minute, ready=0, oldest=timedelta(0)) for minute in range(3))))

    assert [chart.bars for chart in charts] == [[], [], [], []]
    assert [chart.now for chart in charts] == [
        *("0 a minute", "0 failed, 0 tried again", "none ready", "no job started lately"),
    ]


def test_how_it_stands_is_that_of_the_last_whole_minute_and_not_of_long_ago() -> None:
    quick = {"wait_p50": timedelta(milliseconds=2), "wait_p99": timedelta(milliseconds=40)}
    known = sample(0, succeeded=30, ready=4, oldest=timedelta(seconds=9), **quick)

    charts = draw(history(known, sample(1, succeeded=1)))
    assert [chart.now for chart in charts] == [
        *("30 a minute", "0 failed, 0 tried again", "4 ready, the oldest for 9s", "half within 2ms, 99 % within 40ms"),
    ]
    charts = draw(history(known, sample(1), sample(2)))
    assert [chart.now for chart in charts] == [
        *("0 a minute", "0 failed, 0 tried again", "nobody looked lately", "no job started lately"),
    ]


def test_a_longer_span_is_told_by_the_minute() -> None:
    quarters = History(
        over="24h", span=timedelta(minutes=15), samples=[sample(0, succeeded=150, failed=3), sample(15, succeeded=1)]
    )
    throughput = draw(quarters)[0]

    assert throughput.now == "10 a minute"
    assert throughput.spots[0].words == "2030-01-01 12:00 UTC, 15m: 150 succeeded, 3 failed"


def test_where_nobody_looked_the_line_is_broken() -> None:
    backlog = draw(history(sample(0, ready=1, oldest=timedelta(seconds=1)), sample(1), sample(2, ready=0)))[2]

    assert backlog.path.count("M") == 1
    assert backlog.spots[1].words.endswith(": nobody looked")


def test_the_axis_of_time_says_how_long_ago_that_was() -> None:
    told = {over: [mark.words.replace("\N{MINUS SIGN}", "-") for mark in marks(over)] for over in SCALES}

    assert told == {
        "1h": ["-60m", "-45m", "-30m", "-15m", "now"],
        "24h": ["-24h", "-18h", "-12h", "-6h", "now"],
        "7d": ["-6d", "-4d", "-2d", "now"],
    }
    assert [mark.left for mark in marks("24h")] == [0, 25, 50, 75, 100]
