"""When triggers fire, in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.errors import InvalidValue
from mainspring.model.trigger import Trigger, after, at, cron, every
from mainspring.model.wording import cron_words, in_words

MOMENT = datetime(2030, 1, 4, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("0 9 * * mon-fri", "at 09:00 from Monday to Friday"),
        ("@daily", "at 00:00 every day"),
        ("@hourly", "every hour"),
        ("0 0-23 * * *", "every hour"),
        ("* * * * *", "every minute"),
        ("*/5 * * * *", "every 5 minutes"),
        ("*/7 * * * *", "at minutes 0, 7, 14, 21, 28, 35, 42, 49 and 56 of every hour"),
        ("5,10 * * * *", "at minutes 5 and 10 of every hour"),
        ("5 * * * *", "every hour at minute 5"),
        ("0 */2 * * *", "every 2 hours"),
        ("15 */2 * * *", "every 2 hours at minute 15"),
        ("30 9-17 * * mon", "every hour from 09:30 to 17:30 on Monday"),
        ("*/10 9-17 * * *", "every 10 minutes from 09:00 to 17:50"),
        ("0 1,3,7,9,11,13,15 * * *", "at minute 0 of hours 1, 3, 7, 9, 11, 13 and 15"),
        ("30 8,20 * * *", "at 08:30 and 20:30 every day"),
        ("0 0 * * 6,0", "at 00:00 on Saturday and Sunday"),
        ("0 0 * * 6,7,5#3", "at 00:00 on Saturday, Sunday and the third Friday of the month"),
        ("0 0 * * 5L", "at 00:00 on the last Friday of the month"),
        ("0 0 1,15 6-8 *", "at 00:00 on days 1 and 15 of the month, June to August"),
        ("0 0 L * *", "at 00:00 on the last day of the month"),
        ("0 0 LW 3 *", "at 00:00 on the last weekday of the month, in March"),
        ("0 0 13 * 5", "at 00:00 on day 13 of the month, and on Friday"),
        ("0 0 */9 * 1", "at 00:00 on days 1, 10, 19 and 28 of the month, but only on Monday"),
        ("0 0 1-31 * mon", "at 00:00 every day"),
        ("* * * * * *", "every second"),
        ("*/10 * * * * *", "every 10 seconds"),
        ("30 * * * * *", "at second 30 of every minute"),
        ("30 0 9 * * *", "at 09:00:30 every day"),
        ("*/30 * 1 1 * *", "every 30 seconds from 01:00 to 01:59 on day 1 of the month"),
    ],
)
def test_a_cron_expression_is_told_in_words(expression: str, words: str) -> None:
    assert cron_words(expression) == words


@pytest.mark.parametrize(
    ("trigger", "words"),
    [
        (cron("0 9 * * *", "Europe/Berlin"), "at 09:00 every day (Europe/Berlin)"),
        (every("15m"), "every 15 minutes"),
        (every("1m"), "every minute"),
        (every("1h30m"), "every 1 hour 30 minutes"),
        (every("0.5s"), "every 0.5 seconds"),
        (every("1d", MOMENT), "every day, counted from Fri 2030-01-04 09:00 UTC"),
        (after("1m"), "1 minute after its last job has ended"),
        (at(MOMENT + timedelta(seconds=5)), "once, Fri 2030-01-04 09:00:05 UTC"),
    ],
)
def test_every_kind_of_trigger_is_told_in_words(trigger: Trigger, words: str) -> None:
    assert in_words(trigger) == words


FIELD = st.sampled_from(["*", "*/2", "*/7", "1", "1-3", "2-4/2", "1,4", "3,5-6"])


@given(st.lists(FIELD, min_size=5, max_size=6))
def test_whatever_can_be_read_can_be_told(fields: list[str]) -> None:
    try:
        words = cron_words(" ".join(fields))
    except InvalidValue:
        return
    assert words == words.strip()
    assert "  " not in words
