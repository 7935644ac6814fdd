"""Templates over the arguments of a job."""

from __future__ import annotations

import pytest

from mainspring.errors import InvalidValue
from mainspring.model.task import Task
from mainspring.model.template import check_template, render


def greet(name: str, tenant: str = "none", *rest: int, retries: int = 3, **more: int) -> None: ...


GREET = Task(name="greet", handler=greet)


def test_arguments_take_their_places_whether_given_by_position_by_name_or_not_at_all() -> None:
    arguments = GREET.named(GREET.encode("Ada", retries=5))

    assert render("{tenant}:{name}:{retries}", "key", arguments) == "none:Ada:5"


@pytest.mark.parametrize(
    ("value", "written"),
    [("a b", "a b"), (7, "7"), (1.5, "1.5"), (True, "true"), (None, "null"), ([1, {"a": 2}], '[1,{"a":2}]')],
)
def test_what_is_no_text_is_written_as_json(value: object, written: str) -> None:
    assert render("k:{value}", "key", {"value": value}) == f"k:{written}"


def test_braces_that_are_meant_are_doubled() -> None:
    assert render("{{{name}}}", "key", {"name": "x"}) == "{x}"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{tenamt}", "did you mean 'tenant'"),
        ("{rest}", "known are name, tenant, retries"),
        ("{name.upper}", "name arguments as in"),
        ("{name[0]}", "name arguments as in"),
        ("{name!r}", "name arguments as in"),
        ("{name:>10}", "name arguments as in"),
        ("{}", "name arguments as in"),
        ("{0}", "name arguments as in"),
        ("{name", "expected key to be a template"),
        (7, "expected key to be text"),
    ],
)
def test_a_template_that_can_not_be_rendered_is_refused(text: str, says: str) -> None:
    with pytest.raises(InvalidValue, match=says.replace("(", r"\(")):
        check_template(text, "key", GREET.parameters)


def test_a_good_one_is_not() -> None:
    check_template("mail:{tenant}:{name}", "key", GREET.parameters)
