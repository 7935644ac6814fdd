"""Text as it can be stored, and as it can be shown."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mainspring.model.failure import Failure
from mainspring.model.lifecycle import Asked
from mainspring.model.session import NewSession
from mainspring.model.text import shortened, storable
from tests.support.factories import new_id

ANY_TEXT = st.text(st.characters(exclude_categories=()))


@given(ANY_TEXT)
def test_any_text_can_be_made_storable(text: str) -> None:
    made = storable(text)

    assert "\0" not in made
    assert made.encode().decode() == made


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0")))
def test_text_that_is_storable_stays_as_it_is(text: str) -> None:
    assert storable(text) == text


def test_what_can_not_be_stored_is_still_seen() -> None:
    assert storable("a\0b\udc80c") == "a\\x00b\\udc80c"


def test_what_tells_of_an_outcome_is_made_storable() -> None:
    failure = Failure(type="OSError", message="no file \udcff", traceback="line\0")
    asked = Asked(job_id=new_id(), fence=1, wish=None, reason="\udcff")

    assert (failure.message, failure.traceback) == ("no file \\udcff", "line\\x00")
    assert asked.reason == "\\udcff"
    assert NewSession(id=new_id(), name="\0").name == "\\x00"


class Unspeakable:
    def __repr__(self) -> str:
        raise RuntimeError("no")


def test_a_value_that_can_not_be_shown_is_named_by_its_type() -> None:
    assert shortened(Unspeakable()) == "a value of type Unspeakable"
    assert shortened(10**5000) == "a value of type int"
