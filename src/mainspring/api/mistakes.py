"""Mistakes in requests, in plain words: what the framework finds, without its names for things of its own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, get_args

import msgspec
from pydantic import BaseModel, RootModel

from mainspring.errors import did_you_mean
from mainspring.model.text import shortened, storable

Place = tuple[int | str, ...]

_CHANNELS = "notify"
"""Under which name requests hold channels, whose addresses and secrets are for nobody to see."""

_NO_SECRETS = frozenset({"on", "kind", "to"})
"""What may be shown of a channel."""

_LONGEST_VALUE = 60
_WORD = re.compile(r"'(\w+)'")


class Mistake(NamedTuple):
    """One mistake in a request: where it is, what was expected, what came, and all that as a sentence."""

    at: str
    expected: str
    got: str
    sentence: str

    def document(self) -> dict[str, str]:
        return {"at": self.at, "expected": self.expected, "got": self.got}


class Asked(NamedTuple):
    """A request in which there are mistakes: its body, what that was to be, and whether nothing of it is shown."""

    body: Any
    model: Any
    veiled: bool


def mistakes(found: Sequence[Mapping[str, Any]], asked: Asked) -> list[Mistake]:
    """Return the mistakes that the framework has *found*, one for each place.

    Where a value may be of several kinds it finds one mistake for each of them: those at the same place are one, and
    those that lie deeper say what was meant.
    """
    by_place: dict[Place, list[Mapping[str, Any]]] = {}
    # A name that is misspelled goes first: what is missing is then often the right one.
    for error in sorted(found, key=lambda error: error["type"] != "extra_forbidden"):
        by_place.setdefault(_place(error, asked.body), []).append(error)
    return [
        _mistake(place, errors, asked)
        for place, errors in by_place.items()
        if not any(len(other) > len(place) and other[: len(place)] == place for other in by_place)
    ]


def unknown_name(at: str, name: str, known: Iterable[str]) -> Mistake:
    """Return the mistake that nothing is called *name*."""
    names = list(known)
    hint = did_you_mean(name, names) or (f"; known are {', '.join(names)}" if names else "; none is known here")
    sentence = storable(f"{at}: there is no such name{hint}")
    return Mistake(storable(at), f"a name that is known{hint}", _as_json(name), sentence)


def plainly(sentence: str) -> str:
    """Return *sentence* with the patterns of text in it in plain words, as far as we have any for them."""
    return _QUOTED_PATTERN.sub(lambda found: _PATTERNS.get(found[1].replace("\\\\", "\\"), found[0]), sentence)


def _mistake(place: Place, errors: Sequence[Mapping[str, Any]], asked: Asked) -> Mistake:
    first = errors[0]
    hidden = (asked.veiled or _CHANNELS in place) and _NO_SECRETS.isdisjoint(place)
    if first["type"] == "extra_forbidden":
        return _unknown(first, place, hidden, asked)
    if first["type"] in ("union_tag_invalid", "union_tag_not_found"):
        return _of_no_kind(first, place, asked)
    expected = " or ".join(dict.fromkeys(map(_expected, errors)))
    if first["type"] == "missing":
        return _told(place, expected, "none")
    if hidden:
        return _told(place, expected, _type(first["input"]))
    words = _WORD.findall(expected) if first["type"] in ("literal_error", "enum") else []
    return _told(place, expected, _as_json(first["input"]), did_you_mean(str(first["input"]), words))


def _unknown(error: Mapping[str, Any], place: Place, hidden: bool, asked: Asked) -> Mistake:
    known = [name for model in _models_at(asked.model, error["loc"][1:-1]) for name in model.model_fields]
    names = list(dict.fromkeys(known))
    if not hidden:
        return unknown_name(_dotted(place), str(place[-1]), names)
    # The name may be a secret that slipped.
    return _told(place[:-1], f"no other names than {', '.join(names)}", "another one")


def _of_no_kind(error: Mapping[str, Any], place: Place, asked: Asked) -> Mistake:
    kinds = [kind for model in _models_at(asked.model, error["loc"][1:]) for kind in _kinds(model)]
    if "kind" not in error["input"]:
        return _told((*place, "kind"), _one_of(kinds), "none")
    kind = error["input"]["kind"]
    return _told((*place, "kind"), _one_of(kinds), _as_json(kind), did_you_mean(str(kind), kinds))


def _told(place: Place, expected: str, got: str, hint: str = "") -> Mistake:
    at = _dotted(place)
    return Mistake(at, expected, got, f"{at}: expected {expected}, got: {got}{hint}")


def _dotted(place: Place) -> str:
    return storable(".".join(map(str, place)))


def _place(error: Mapping[str, Any], body: Any) -> Place:
    """Return where *error* is in the request: of its place in the framework's model what is there in the body, too."""
    where, *rest = error["loc"]
    if where != "body":
        return tuple(error["loc"])
    place, value = [where], body
    for number, part in enumerate(rest, 1):
        last = number == len(rest)
        if isinstance(value, dict):
            if not (last and error["type"] == "missing") and (part not in value or _is_tag(value, part, last=last)):
                continue
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int):
            value = value[part]
        else:
            continue
        place.append(part)
    return tuple(place)


def _is_tag(value: Mapping[str, Any], part: object, *, last: bool) -> bool:
    """Return whether *part* of a place is no name in *value*, but says of which kind that is."""
    return not last and value.get("kind") == part


def _models_at(model: Any, loc: Iterable[int | str]) -> list[type[BaseModel]]:
    """Return what may be at this place of *model*."""
    found = _models(model)
    for part in loc:
        if isinstance(part, str):
            named = [one for one in found if part == one.__name__ or [part] == _kinds(one)]
            fields = [one.model_fields[part] for one in found if part in one.model_fields]
            found = named or [inner for field in fields for inner in _models(field.annotation)] or found
    return found


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, RootModel):
        return _models(annotation.model_fields["root"].annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models(part)]


def _kinds(model: type[BaseModel]) -> list[str]:
    return list(get_args(model.model_fields["kind"].annotation)) if "kind" in model.model_fields else []


def _one_of(words: Sequence[str]) -> str:
    quoted = [repr(word) for word in words]
    return " or ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)


def _as_json(value: object) -> str:
    """Return *value* as whoever sent it has written it, cut short."""
    try:
        text = storable(msgspec.json.encode(value).decode())
    except (TypeError, ValueError, RecursionError):
        return shortened(value, _LONGEST_VALUE)
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"


def _type(value: object) -> str:
    words = {str: "text", bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return f"{words.get(type(value), 'nothing')} that is not shown"


def _expected(error: Mapping[str, Any]) -> str:
    """Return what was expected where *error* is, in our words, or the framework's where we have none."""
    kind, facts = error["type"], error.get("ctx", {})
    if kind in _PHRASES:
        return _PHRASES[kind]
    if kind == "string_too_short" and facts["min_length"] == 1:
        return "text that is not empty"
    if kind in _BOUNDS:
        return _BOUNDS[kind].format(**facts)
    if kind in ("literal_error", "enum"):
        return str(facts["expected"])
    if kind == "string_pattern_mismatch":
        return _PATTERNS.get(facts["pattern"], f"text that matches {facts['pattern']}")
    if kind.startswith(("datetime_", "timezone_")):
        return "an instant with a time zone, such as 2026-11-15T09:00:00Z"
    said = str(error["msg"]).removeprefix("Input should be ").removeprefix("Value error, ")
    return storable(f"{said[:1].lower()}{said[1:]}")


_PHRASES = {
    "missing": "a value",
    **dict.fromkeys(("string_type", "string_sub_type"), "text"),
    "string_unicode": "text that is valid Unicode",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float", "int_parsing_size"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    "finite_number": "a number that is finite",
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    "list_type": "a list",
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "an object"),
    **dict.fromkeys(
        ("uuid_type", "uuid_parsing", "uuid_version"), "an id such as 019a8e2c-6d1b-7c3e-8f4a-2b5d6e7f8091"
    ),
}
_BOUNDS = {
    "string_too_short": "text of at least {min_length:,} characters",
    "string_too_long": "text of at most {max_length:,} characters",
    "too_short": "at least {min_length:,} of them",
    "too_long": "at most {max_length:,} of them",
    "greater_than": "a number above {gt}",
    "greater_than_equal": "a number from {ge} on",
    "less_than": "a number below {lt}",
    "less_than_equal": "a number up to {le}",
}
_A_NAME = "1 to 128 ASCII letters, digits or any of _.:/- (beginning with a letter, digit or _)"
_A_TEAM = "1 to 40 lower-case letters, digits or hyphens (beginning with a letter or digit)"
_PATTERNS = {
    r"^[^\x00]*$": "text without NUL",
    r"^[A-Za-z0-9_][A-Za-z0-9_.:/-]*$": _A_NAME,
    r"^[A-Za-z0-9_][A-Za-z0-9_.\-]{0,127}$": "1 to 128 ASCII letters, digits or any of _.-",
    r"^[!-~]+@[!-~]+$": "an address such as ops@example.org",
    r"^[Hh][Tt][Tt][Pp][Ss]?://[^\x00-\x20]+$": "a URL that begins with https:// or http:// and has no spaces",
    r"^[a-z0-9][a-z0-9-]*$": _A_TEAM,
    r"^(\*|[a-z0-9][a-z0-9-]*)$": f"* or {_A_TEAM}",
    r"^[a-z2-7]{12}$": "the id of a token, which is 12 letters a-z or digits 2-7",
    r"^[0-9]{1,9}\.[0-9]{1,9}$": "a fence and a number, such as 2.17",
    # Those of the arguments of our own tasks.
    r"^\s*(\d+(\.\d+)?\s*(ms|[smhdw])\s*)+$": "a number of seconds, or a length of time such as '90s' or '1h30m'",
    r"^[A-Za-z_][A-Za-z0-9_]*$": "a name of ASCII letters, digits and _",
    r"^/": "a path that begins with /",
}
_QUOTED_PATTERN = re.compile(r"`str` matching regex '(.*?)'(?=, got| - at `)")
