"""Keys: where they come from, which are refused, and what can be opened with them."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring import keys as module
from mainspring.errors import InvalidKey, KeyMissing, MainspringError, SealBroken
from mainspring.keys import Keyring, Keys, key_id_of, new_key

OLD, NEW = new_key(), new_key()
KEYS = Keys.read(OLD)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@pytest.fixture(autouse=True)
def _without_keys_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MAINSPRING_KEYS", raising=False)
    monkeypatch.delenv("MAINSPRING_KEY_FILE", raising=False)


def refusal(kind: type[MainspringError], call: Callable[[], object]) -> str:
    with pytest.raises(kind) as refused:
        call()
    return str(refused.value)


def key_of(data: bytes) -> str:
    return f"k1:{b64encode(data).decode()}"


@given(TEXTS, TEXTS)
def test_what_is_sealed_can_be_opened_for_its_context(plain: str, context: str) -> None:
    sealed = KEYS.seal(plain, context)

    assert KEYS.unseal(sealed, context) == plain


@given(TEXTS, TEXTS, TEXTS)
def test_it_can_be_opened_for_no_other_context(plain: str, context: str, other: str) -> None:
    sealed = KEYS.seal(plain, context)

    if other != context:
        with pytest.raises(SealBroken):
            KEYS.unseal(sealed, other)


@given(TEXTS, st.data())
def test_it_can_not_be_opened_when_anything_of_it_was_changed(plain: str, data: st.DataObject) -> None:
    sealed = KEYS.seal(plain, "here")
    place = data.draw(st.integers(0, len(sealed) - 1))
    other = data.draw(st.sampled_from("abcABC019-_.=\n").filter(lambda sign: sign != sealed[place]))
    changed = sealed[:place] + other + sealed[place + 1 :]

    with pytest.raises((SealBroken, KeyMissing)):
        KEYS.unseal(changed, "here")


@given(st.text())
def test_what_was_never_sealed_is_refused_in_one_way(text: str) -> None:
    with pytest.raises((SealBroken, KeyMissing)):
        KEYS.unseal(text, "here")


def test_the_same_text_is_sealed_differently_each_time_and_says_nothing() -> None:
    sealed = {KEYS.seal("canary", "here") for _ in range(100)}

    assert len(sealed) == 100
    assert not any("canary" in one for one in sealed)
    assert {key_id_of(one) for one in sealed} == {KEYS.first}


def test_the_first_key_seals_and_all_open() -> None:
    before = Keys.read(OLD).seal("x", "here")
    changed = Keys.read(f"{NEW},{OLD}")

    assert changed.unseal(before, "here") == "x"
    assert key_id_of(changed.seal("x", "here")) == NEW.partition(":")[0]


def test_what_was_sealed_with_a_key_that_is_gone_names_it() -> None:
    sealed = Keys.read(NEW).seal("x", "here")

    assert NEW.partition(":")[0] in refusal(KeyMissing, lambda: KEYS.unseal(sealed, "here"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "k1",
        "k1:",
        "k1:#",
        "k1:not base64!",
        key_of(bytes(16)),
        key_of(bytes(32)),
        key_of(b"\xff" * 32),
        key_of(bytes(range(32))),
        key_of(bytes(range(0, 224, 7))),
        key_of(b"0123456789abcdef0123456789abcdef"),
        key_of(b"correct horse battery staple 123"),
        key_of(os.urandom(31)),
        key_of(os.urandom(33)),
        f"a key:{OLD.partition(':')[2]}",
        f"k.1:{OLD.partition(':')[2]}",
        f"{OLD},{OLD}",
    ],
    ids=lambda text: f"{len(text)}-characters",
)
def test_keys_that_are_none_or_can_be_guessed_are_refused_and_not_shown(text: str) -> None:
    told = refusal(InvalidKey, lambda: Keys.read(text))

    assert len(text.partition(":")[2]) < 20 or text.partition(":")[2][:20] not in told


def test_keys_may_stand_on_lines_with_remarks() -> None:
    keys = Keys.read(f"# made in spring\n{NEW}\n\n{OLD}  # until summer\n")

    assert keys.first == NEW.partition(":")[0]
    assert OLD.partition(":")[0] in keys


def test_a_sqlite_database_gets_a_file_of_its_own_with_the_first_thing_that_is_sealed(tmp_path: Path) -> None:
    file = tmp_path / "mainspring.db.keys"
    ring = Keyring(file)
    assert not file.exists()

    sealed = ring.seal("x", "here")

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert Keyring(file).unseal(sealed, "here") == "x"
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_opening_makes_no_key(tmp_path: Path) -> None:
    file = tmp_path / "mainspring.db.keys"

    assert str(file) in refusal(KeyMissing, lambda: Keyring(file).unseal(KEYS.seal("x", "here"), "here"))
    assert not file.exists()


def test_processes_that_make_the_file_at_the_same_time_agree(tmp_path: Path) -> None:
    file = tmp_path / "mainspring.db.keys"
    program = (
        "import sys; from pathlib import Path; from mainspring.keys import Keyring;"
        "sys.stdin.read(); print(Keyring(Path(sys.argv[1])).seal('x', 'here'))"
    )
    command = [sys.executable, "-c", program, str(file)]
    started = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(4)]

    for process in started:
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
    sealed = [process.communicate()[0].strip() for process in started]

    assert [Keyring(file).unseal(one, "here") for one in sealed] == ["x"] * 4


def test_whoever_comes_second_leaves_the_file_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "mainspring.db.keys"
    first, second = Keyring(file), Keyring(file)
    look = Path.exists
    sealed: list[str] = []

    def while_the_other_makes_it(path: Path) -> bool:
        found = look(path)
        monkeypatch.setattr(Path, "exists", look)
        sealed.append(first.seal("x", "here"))
        return found

    monkeypatch.setattr(Path, "exists", while_the_other_makes_it)
    sealed.append(second.seal("y", "here"))

    assert [Keyring(file).unseal(one, "here") for one in sealed] == ["x", "y"]
    assert second.first == first.first


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o606, 0o610])
def test_a_file_of_our_own_that_is_open_to_others_is_refused(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "mainspring.db.keys"
    Keyring(file).seal("x", "here")
    file.chmod(mode)

    told = refusal(InvalidKey, lambda: Keyring(file).seal("x", "here"))

    assert str(file) in told
    assert "chmod" in told


def test_a_file_that_is_named_may_be_read_by_its_group_but_by_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "keys"
    file.write_text(OLD)
    monkeypatch.setenv("MAINSPRING_KEY_FILE", str(file))

    file.chmod(0o440)
    assert Keyring(None).first == KEYS.first
    file.chmod(0o444)
    with pytest.raises(InvalidKey):
        Keyring(None).seal("x", "here")


def test_a_key_that_is_added_to_the_file_later_is_found(tmp_path: Path) -> None:
    file = tmp_path / "mainspring.db.keys"
    ring = Keyring(file)
    ring.seal("x", "here")

    file.write_text(f"{NEW}\n{file.read_text()}")

    assert ring.unseal(Keyring(file).seal("y", "here"), "here") == "y"


class Clock:
    """A steady clock that goes on when it is told to."""

    seconds = 100.0

    def steady(self) -> float:
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "_clock", clock)
    return clock


def replace_in_place(file: Path, text: str) -> None:
    file.write_text(text)


def replace_by_another(file: Path, text: str) -> None:
    other = file.with_name("other")
    other.touch(0o600)
    other.write_text(text)
    os.utime(other, ns=(file.stat().st_mtime_ns, file.stat().st_mtime_ns))
    other.replace(file)


@pytest.mark.parametrize("change", [replace_in_place, replace_by_another])
@pytest.mark.parametrize("named", [False, True])
def test_a_key_that_is_put_in_front_seals_from_a_second_later_on(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path, str], None], named: bool
) -> None:
    file = tmp_path / "mainspring.db.keys"
    replace_in_place(file, f"{OLD}\n{NEW}\n")
    file.chmod(0o600)
    if named:
        monkeypatch.setenv("MAINSPRING_KEY_FILE", str(file))
    ring = Keyring(None if named else file)
    sealed = ring.seal("x", "here")
    assert key_id_of(sealed) == OLD.partition(":")[0]

    change(file, f"{NEW}\n{OLD}\n")
    clock.seconds += 1.1

    assert key_id_of(ring.seal("x", "here")) == ring.first == NEW.partition(":")[0]
    assert ring.unseal(sealed, "here") == "x"


def test_a_key_that_is_taken_away_opens_nothing_from_a_second_later_on(tmp_path: Path, clock: Clock) -> None:
    file = tmp_path / "mainspring.db.keys"
    ring = Keyring(file)
    sealed = ring.seal("x", "here")

    file.write_text(NEW)
    clock.seconds += 1.1

    with pytest.raises(KeyMissing):
        ring.unseal(sealed, "here")


def test_a_file_is_not_looked_at_for_everything_that_is_sealed(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    ring = Keyring(tmp_path / "mainspring.db.keys")
    ring.seal("x", "here")
    looks: list[Path] = []
    stamp_of = module._stamp_of

    def look(file: Path) -> object:
        looks.append(file)
        return stamp_of(file)

    monkeypatch.setattr(module, "_stamp_of", look)
    for _ in range(100):
        ring.unseal(ring.seal("x", "here"), "here")
        clock.seconds += 0.02

    assert 1 <= len(looks) <= 2


def test_a_file_that_is_gone_for_a_while_is_waited_for(tmp_path: Path, clock: Clock) -> None:
    file = tmp_path / "mainspring.db.keys"
    ring = Keyring(file, lambda: True)
    replace_in_place(file, OLD)
    file.chmod(0o600)
    ring.seal("x", "here")

    away = file.rename(tmp_path / "away")
    clock.seconds += 1.1
    assert ring.first == OLD.partition(":")[0]
    assert "which this process does not have" in refusal(
        KeyMissing, lambda: ring.unseal(Keys.read(NEW).seal("x", "here"), "here")
    )
    assert ring.first == OLD.partition(":")[0]
    replace_in_place(away, f"{NEW}\n{OLD}")
    away.rename(file)
    clock.seconds += 1.1

    assert ring.first == NEW.partition(":")[0]


def test_a_file_that_has_become_useless_is_refused_until_it_is_mended(tmp_path: Path, clock: Clock) -> None:
    file = tmp_path / "mainspring.db.keys"
    ring = Keyring(file)
    ring.seal("x", "here")

    file.write_text("nothing")
    clock.seconds += 1.1
    for _ in range(2):
        with pytest.raises(InvalidKey):
            ring.seal("x", "here")
    file.write_text(NEW)

    assert ring.first == NEW.partition(":")[0]


def test_no_key_is_made_where_something_is_sealed_with_one_that_is_lost(tmp_path: Path) -> None:
    file = tmp_path / "mainspring.db.keys"

    told = refusal(KeyMissing, lambda: Keyring(file, lambda: True).seal("x", "here"))

    assert f"the file {file} is gone" in told
    assert list(tmp_path.iterdir()) == []


def test_a_key_with_which_another_has_sealed_something_just_now_is_found(tmp_path: Path) -> None:
    file = tmp_path / "mainspring.db.keys"
    other = Keyring(file)

    def seal_elsewhere() -> bool:
        other.seal("x", "here")
        return True

    assert Keyring(file, seal_elsewhere).first == other.first


def test_the_environment_comes_before_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAINSPRING_KEYS", OLD)

    ring = Keyring(tmp_path / "mainspring.db.keys")

    assert ring.first == KEYS.first
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("named", [{"MAINSPRING_KEYS": ""}, {"MAINSPRING_KEYS": OLD, "MAINSPRING_KEY_FILE": "/x"}])
def test_an_environment_that_says_nothing_or_two_things_is_refused(
    named: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in named.items():
        monkeypatch.setenv(name, value)

    with pytest.raises(InvalidKey):
        Keyring(tmp_path / "mainspring.db.keys").seal("x", "here")


def test_a_server_has_no_keys_unless_they_are_given() -> None:
    told = refusal(KeyMissing, lambda: Keyring(None).seal("x", "here"))

    assert "MAINSPRING_KEYS" in told
    assert "mainspring secrets new-key" in told


def test_a_named_file_that_is_not_there_is_said_to_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAINSPRING_KEY_FILE", "/nowhere/keys")

    assert "/nowhere/keys" in refusal(KeyMissing, lambda: Keyring(None).seal("x", "here"))


def test_without_the_library_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)

    assert "pip install 'mainspring[secrets]'" in refusal(MainspringError, lambda: KEYS.seal("x", "here"))
