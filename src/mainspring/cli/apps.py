"""The app that a user named, found and imported."""

from __future__ import annotations

import importlib
import os
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

import mainspring
from mainspring.app import Mainspring
from mainspring.cli.afar import is_server, server_at
from mainspring.cli.database import existing
from mainspring.errors import InvalidValue, did_you_mean
from mainspring.model.text import shortened

if TYPE_CHECKING:
    from mainspring.remote import Client

App: TypeAlias = "Mainspring | Client"
"""What commands work with: the app on a database, or the app of a server. They use the names that both have."""

_EXPECTED = "expected an app like module:name, package.module or path/to/file.py:name"
_OURS = str(Path(mainspring.__file__).parent)
_LIBRARIES = ("<", *{_OURS, *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))})


@dataclass(frozen=True)
class Place:
    """Where an app is: a module, the folder from which it is imported, and what else the user said of it."""

    module: str
    folder: Path
    name: str | None
    file: Path | None = None


def load_app(text: str, url: str | None = None) -> Mainspring:
    """Import the app that *text* names, and have it use the database at *url* if one is given."""
    place = find_place(text)
    app = _the_app(_imported(place), place)
    if url is not None:
        app.close()  # what its module may have opened while it was imported
        app.client.home.url = url
    return app


def app_or_sender(name: str | None, url: str | None, team: str | None = None) -> Mainspring:
    """Return the app that the user named, or else one without tasks, which may speak of any; bound to a *team*, or not.

    An app that is a team's by its code is so unless another is named.
    """
    app = _app_or_sender(name, url)
    return app if team is None else app.within(team)


def _app_or_sender(name: str | None, url: str | None) -> Mainspring:
    if name:
        return load_app(name, url)
    sender = Mainspring(url)
    if url is not None:
        sender.client.home.url = url  # even an empty one, which is a mistake to be named
    return sender


@contextmanager
def app_at(url: str | None, name: str | None = None, team: str | None = None, *, new: bool = False) -> Iterator[App]:
    """Lend the app that the user named, or one without tasks, on a database that must be there, unless it may be *new*.

    Or that of the server at *url*, which has an app of its own. Either is bound to a *team* if one is named.
    """
    named = None if url is not None and is_server(url) else name
    with closing(app_or_sender(named, url, team)) as app:
        if is_server(app.client.url):
            with server_at(app.client.url, app.client.scope) as client:
                yield client
        else:
            with nullcontext() if new else existing(app.client.url):
                yield app


@contextmanager
def database_at(url: str, team: str | None = None) -> Iterator[Mainspring]:
    """Lend an app on the database at *url*, or that of a *team*, for what no server does in its place."""
    with closing(app_or_sender(None, url, team)) as app, existing(url):
        yield app


def find_place(text: str) -> Place:
    """Return where the app that *text* names is, without importing it."""
    place, colon, name = text.partition(":")
    if colon and not name.isidentifier():
        raise InvalidValue(f"{_EXPECTED}, got: {shortened(text)}")
    if place.endswith(".py") or os.sep in place:
        return _in_file(Path(place), name or None)
    if not all(place.split(".")):
        raise InvalidValue(f"{_EXPECTED}, got: {shortened(text)}")
    return Place(place, Path.cwd(), name or None)


def _in_file(file: Path, name: str | None) -> Place:
    if not os.path.isfile(file):
        siblings = [str(path) for path in sorted(file.parent.glob("*.py"))] if os.path.isdir(file.parent) else []
        hint = did_you_mean(str(file), siblings) or f"; looked in {Path.cwd()}"
        raise InvalidValue(f"there is no file {str(file)!r}{hint}")
    if file.suffix != ".py":
        raise InvalidValue(f"{_EXPECTED}, got: {str(file)!r}")
    # Imported by its whole name, so that whatever else imports it gets the same module.
    folder, parts = file.resolve().parent, [file.stem]
    while os.path.exists(folder / "__init__.py"):
        folder, parts = folder.parent, [folder.name, *parts]
    return Place(".".join(parts).removesuffix(".__init__"), folder, name, file.resolve())


def _imported(place: Place) -> ModuleType:
    for folder in dict.fromkeys((os.getcwd(), str(place.folder))):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    try:
        module = importlib.import_module(place.module)
    except ModuleNotFoundError as error:
        name = error.name or ""
        missing = _is_or_holds(name, place.module)
        raise InvalidValue(_not_found(name, place) if missing else _broken(error, place)) from None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a user's module may raise
        raise InvalidValue(_broken(error, place)) from None
    if place.file is not None and Path(module.__file__ or "").resolve() != place.file:
        raise InvalidValue(
            f"{shown_path(str(place.file))} can't be imported, because another module is named {place.module!r}; "
            "give the file another name"
        )
    return module


def _is_or_holds(name: str, module: str) -> bool:
    return module == name or module.startswith(f"{name}.")


def _not_found(name: str, place: Place) -> str:
    parent, _, last = name.rpartition(".")
    if parent and not hasattr(sys.modules.get(parent), "__path__"):
        return f"{parent!r} is a module and holds no module {last!r}, did you mean '{parent}:{last}'?"
    folder = place.folder.joinpath(*parent.split(".")) if parent else place.folder
    near = [f"{parent}.{stem}" if parent else stem for stem in _modules_in(folder)]
    hint = did_you_mean(name, near) or "; run this in the folder that holds it, or name a file, as in path/to/file.py"
    return f"no module named {name!r} was found in {folder}{hint}"


def _modules_in(folder: Path) -> list[str]:
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return []
    names = [entry.name.removesuffix(".py") for entry in entries if entry.is_dir() or entry.name.endswith(".py")]
    return sorted(name for name in names if name.isidentifier())


def _broken(error: BaseException, place: Place) -> str:
    """Return in one sentence what went wrong in the user's own code, and where."""
    if isinstance(error, SystemExit):
        what = f"it ended the program with exit code {error.code}"
    elif isinstance(error, SyntaxError):
        what = f"{type(error).__name__}: {error.msg}"
    else:
        what = f"{type(error).__name__}: {error}"
    return f"can't import {place.module!r}: {_where(error)}{what}"


def _where(error: BaseException) -> str:
    if isinstance(error, SyntaxError) and error.filename:
        return f"{shown_path(error.filename)}, line {error.lineno}: "
    frames = traceback.extract_tb(error.__traceback__)
    # A library's place says little; the user's own line that led there is what he can change.
    own = [frame for frame in frames if not frame.filename.startswith(_LIBRARIES)] or frames[-1:]
    return f"{shown_path(own[-1].filename)}, line {own[-1].lineno}: " if own else ""


def shown_path(file: str) -> str:
    """Return the path of *file* as its user would write it: from the present folder, if it is below that."""
    return os.path.relpath(file) if file.startswith(os.getcwd() + os.sep) else file


def _the_app(module: ModuleType, place: Place) -> Mainspring:
    apps = {name: value for name, value in vars(module).items() if isinstance(value, Mainspring)}
    if place.name is None:
        return _only(apps, place.module)
    found = getattr(module, place.name, None)
    if isinstance(found, Mainspring):
        return found
    hint = did_you_mean(place.name, apps) or (f"; {_listed(apps)}" if apps else "")
    if not hasattr(module, place.name):
        raise InvalidValue(f"module {place.module!r} has nothing named {place.name!r}{hint}")
    kind = type(found).__name__
    raise InvalidValue(f"expected {place.module}:{place.name} to be a Mainspring object, got one of type {kind}{hint}")


def _only(apps: dict[str, Mainspring], module: str) -> Mainspring:
    distinct = {id(app): name for name, app in reversed(apps.items())}
    if not distinct:
        raise InvalidValue(f"module {module!r} has no Mainspring object; make one with `app = Mainspring()`")
    if len(distinct) > 1:
        names = ", ".join(f"{module}:{name}" for name in reversed(distinct.values()))
        raise InvalidValue(f"module {module!r} has {len(distinct)} Mainspring objects; name one of {names}")
    return next(iter(apps.values()))


def _listed(apps: dict[str, Mainspring]) -> str:
    return f"its Mainspring objects: {', '.join(apps)}"
