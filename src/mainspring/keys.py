"""Keys: what seals that which is to be kept secret, and opens it again.

A text is sealed with AES-256-GCM for a context, which says where it belongs: it can be opened for that context only,
and not at all when a bit of it was changed. It looks like `v1.<key id>.<nonce>.<ciphertext>`, in base64url.
"""

from __future__ import annotations

import binascii
import hmac
import os
import re
import secrets
import stat
import threading
from base64 import b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from msgspec.structs import replace

from mainspring.clock import SystemClock
from mainspring.errors import InvalidKey, KeyMissing, MainspringError, SealBroken
from mainspring.model.job import Job
from mainspring.model.sealed import (
    closed,
    is_closed,
    payload_context,
    result_context,
    schedule_context,
    sealed_in,
    signal_context,
    step_context,
    undo_context,
)
from mainspring.model.step import SIGNAL, Step
from mainspring.model.text import shortened

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEYS, KEY_FILE = "MAINSPRING_KEYS", "MAINSPRING_KEY_FILE"
"""Variables of the environment that hold the keys, or say in which file they are."""

_VERSION = "v1"
_BYTES, _NONCE_BYTES = 32, 12
_ID = re.compile(r"[A-Za-z0-9_-]{1,32}")
_FEWEST_DIFFERENT = 12
"""Of the bytes of a key that was drawn by chance, more differ from each other."""

_OTHERS, _OTHERS_BUT_READERS_IN_GROUP = 0o077, 0o037
_LARGEST_FILE = 65_536
_FRESH = 1.0
"""Seconds for which it is taken for granted that a file is as it was read."""

_clock = SystemClock()

_EXPECTED = "expected encryption keys as id:base64 of 32 bytes, with a comma or a new line between two"
_WHAT = "what is sealed here"
_MAKE_ONE = "make one with `mainspring secrets new-key`"


def new_key() -> str:
    """Return a new key with its id, as it is kept."""
    return f"{secrets.token_hex(4)}:{b64encode(secrets.token_bytes(_BYTES)).decode()}"


class Keys:
    """Keys by their ids. The first one seals, all of them open: so a new one is put in front, and the old one stays."""

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        if not keys:
            raise InvalidKey(f"{_EXPECTED}, got none; {_MAKE_ONE}")
        for key_id, key in keys.items():
            _check(key_id, key)
        self._keys = dict(keys)
        self.first = next(iter(self._keys))

    @classmethod
    def read(cls, text: str) -> Keys:
        """Return the keys that *text* tells, which is never shown."""
        found: dict[str, bytes] = {}
        lines = [line.partition("#")[0] for line in text.splitlines()]
        for entry in filter(None, map(str.strip, ",".join(lines).split(","))):
            key_id, separator, encoded = entry.partition(":")
            if not separator:
                raise InvalidKey(f"{_EXPECTED}, got one without an id; {_MAKE_ONE}")
            if key_id in found:
                raise InvalidKey(f"expected each encryption key to have an id of its own, got {key_id!r} twice")
            found[key_id] = _decoded(encoded)
        return cls(found)

    def __contains__(self, key_id: str) -> bool:
        return key_id in self._keys

    def seal(self, plain: str, context: str) -> str:
        """Return *plain* sealed for *context*, another text each time."""
        nonce, about = os.urandom(_NONCE_BYTES), context.encode()
        sealed = _cipher(self._keys[self.first], about).encrypt(nonce, plain.encode(), about)
        return f"{_VERSION}.{self.first}.{_text(nonce)}.{_text(sealed)}"

    def unseal(self, sealed: str, context: str, what: str = _WHAT) -> str:
        """Return what was *sealed* for *context*; errors call it *what*."""
        key_id, nonce, ciphertext = _parts(sealed, what)
        if key_id not in self._keys:
            raise KeyMissing(
                f"{what} was sealed with the encryption key {shortened(key_id)}, which this process does not have; add "
                f"it to {KEYS} or the key file, behind the first one"
            )
        about = context.encode()
        cipher = _cipher(self._keys[key_id], about)
        from cryptography.exceptions import InvalidTag

        try:
            return cipher.decrypt(nonce, ciphertext, about).decode()
        except (InvalidTag, ValueError):  # the latter for what is too short to be anything
            raise SealBroken(what) from None


class Keyring:
    """The keys of an installation, read when they are first needed; safe from any thread.

    They are in MAINSPRING_KEYS, or in the file that MAINSPRING_KEY_FILE names. A SQLite database needs neither: its
    keys are in a file *beside* it, which whoever first seals anything makes. A file that has changed is read again.
    """

    def __init__(self, beside: Path | None, used: Callable[[], bool] = lambda: False) -> None:
        """*used* returns whether the database holds anything sealed, so that its keys are somewhere, or were."""
        self.beside = beside
        self._used = used
        self._known: _Found | None = None
        self._look_at = 0.0
        self._reading = threading.Lock()

    @property
    def first(self) -> str:
        """The id of the key that seals."""
        return self._needed().first

    def seal(self, plain: str, context: str) -> str:
        """See `Keys.seal`."""
        return self._needed().seal(plain, context)

    def unseal(self, sealed: str, context: str, what: str = _WHAT) -> str:
        """See `Keys.unseal`. A key that was added to a file just now is found."""
        keys = self._current()
        if keys is None or key_id_of(sealed, what) not in keys:
            keys = self._read() or keys
        if keys is None:
            raise self._missing()
        return keys.unseal(sealed, context, what)

    def seal_document(self, document: str, context: str) -> str:
        """Return the JSON document that stands for *document*, sealed for *context*."""
        return closed(self.seal(document, context))

    def open_document(self, document: str, context: str, what: str = _WHAT) -> str:
        """Return the JSON *document*, opened if it stands for a sealed one."""
        return self.unseal(sealed_in(document), context, what) if is_closed(document) else document

    def _needed(self) -> Keys:
        """Return the keys, made if they are to be in a file of our own and nothing was ever sealed with others."""
        keys = self._current()
        if keys is None and self.beside is not None:
            # Not in place of one that was lost: nobody would notice while it can still be found again.
            if not self._used():
                _make(self.beside)
            keys = self._read()  # another may have made it, and used it, while we looked
        if keys is None:
            raise self._missing()
        return keys

    def _current(self) -> Keys | None:
        """Return the keys as they are now, or were a moment ago; None if there are none.

        Those of a file that is gone are used as they were: it may be about to be replaced.
        """
        known = self._known
        if known is None:
            return self._read()
        if known.file is None or (now := _clock.steady()) < self._look_at:
            return known.keys
        if _stamp_of(known.file) in (known.stamp, None):
            self._look_at = now + _FRESH
            return known.keys
        return self._read() or known.keys

    def _read(self) -> Keys | None:
        with self._reading:
            look_at = _clock.steady() + _FRESH
            found = self._find()
            if found is None:
                return None
            self._known, self._look_at = found, look_at
            return found.keys

    def _find(self) -> _Found | None:
        named, text = os.environ.get(KEY_FILE), os.environ.get(KEYS)
        if named is not None and text is not None:
            raise InvalidKey(f"expected {KEYS} or {KEY_FILE}, got both; unset one of them")
        if text is not None:
            return _Found(Keys.read(text))
        if named is not None:
            return _found_in(Path(named), _OTHERS_BUT_READERS_IN_GROUP)
        if self.beside is not None and self.beside.exists():
            return _found_in(self.beside, _OTHERS)
        return None

    def _missing(self) -> KeyMissing:
        if self.beside is not None:
            return KeyMissing(
                f"there are no encryption keys: the file {self.beside} is gone; restore it, or set {KEYS}"
            )
        return KeyMissing(f"there are no encryption keys; {_MAKE_ONE}, and set {KEYS} to it in every process")


class _Stamp(NamedTuple):
    """What tells a file from what it was before."""

    changed: int
    inode: int
    size: int


class _Found(NamedTuple):
    """Keys, and where they were found, if that is a file."""

    keys: Keys
    file: Path | None = None
    stamp: _Stamp | None = None


def payload_closer(keys: Keyring | None, task: str) -> Callable[[UUID, str], str]:
    """Return what seals the payloads of jobs of *task*, each for the id of its job; without *keys*, they stay."""
    if keys is None:
        return lambda _, payload: payload
    return lambda job_id, payload: keys.seal_document(payload, payload_context(job_id, task))


def open_payload(keys: Keyring, job: Job) -> str:
    """Return the payload of *job*, opened if it is sealed.

    It is sealed for the job itself; or for the schedule that has made it, or the workflow that undoes something with
    it, because neither has the keys at hand when it makes jobs of what it was given.
    """
    what = f"the payload of job {job.id}"
    contexts = [payload_context(job.id, job.task)]
    contexts += [] if job.schedule is None else [schedule_context(job.schedule, job.task)]
    contexts += [] if job.workflow is None else [undo_context(job.workflow, job.task)]
    for context in contexts[:-1]:
        with suppress(SealBroken):
            return keys.open_document(job.payload, context, what)
    return keys.open_document(job.payload, contexts[-1], what)


def open_result(keys: Keyring, job: Job) -> str:
    """Return the result of *job*, which has succeeded, opened if it is sealed."""
    return keys.open_document(job.result or "null", result_context(job.id, job.task), f"the result of job {job.id}")


def open_step(keys: Keyring, job: Job, step: Step) -> Step:
    """Return *step* of *job* with its result opened if it is sealed; a signal that was taken is sealed as such."""
    if step.result is None:
        return step
    context = step_context(job.id, job.task, step.name)
    if step.name.startswith(SIGNAL):  # with a number behind the signal's name, if it was taken more than once
        context = signal_context(job.id, job.task, step.name.split()[1])
    return replace(step, result=keys.open_document(step.result, context, f"the result of step {step.name!r}"))


def key_id_of(sealed: str, what: str = _WHAT) -> str:
    """Return the id of the key with which this was *sealed*."""
    try:
        return sealed.split(".", 2)[1]
    except IndexError:
        raise SealBroken(what) from None


def _check(key_id: str, key: bytes) -> None:
    if not _ID.fullmatch(key_id):
        raise InvalidKey("expected the id of an encryption key to be 1 to 32 ASCII letters, digits or any of _-")
    if len(key) != _BYTES:
        raise InvalidKey(f"expected encryption key {key_id!r} to be {_BYTES} bytes, got {len(key)}; {_MAKE_ONE}")
    # Text, a pattern or zeros: what stands in examples, or was thought of by a person, others know or can guess.
    steps = {(after - before) % 256 for before, after in pairwise(key)}
    if len(set(key)) < _FEWEST_DIFFERENT or len(steps) == 1 or all(32 <= byte < 127 for byte in key):
        raise InvalidKey(f"encryption key {key_id!r} was not drawn by chance, so that it can be guessed; {_MAKE_ONE}")


def _decoded(encoded: str) -> bytes:
    try:
        data = encoded.strip().rstrip("=").translate(str.maketrans("+/", "-_"))
        return urlsafe_b64decode(data + "=" * (-len(data) % 4))
    except (binascii.Error, ValueError):
        raise InvalidKey(f"{_EXPECTED}, got one that is not base64; {_MAKE_ONE}") from None


def _cipher(key: bytes, context: bytes) -> AESGCM:
    """Return the cipher for *context*, which has a key of its own.

    Nonces are drawn by chance, and one key may not seal more than some billion texts with such; for one context there
    are never that many.
    """
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ModuleNotFoundError:
        raise MainspringError("encryption needs a library; run `pip install 'mainspring[secrets]'`") from None
    return AESGCM(hmac.digest(key, b"mainspring " + context, "sha256"))


def _parts(sealed: str, what: str) -> tuple[str, bytes, bytes]:
    try:
        version, key_id, nonce, ciphertext = sealed.split(".")
        parts = key_id, _bytes(nonce), _bytes(ciphertext)
    except ValueError:
        raise SealBroken(what) from None
    if version != _VERSION or len(parts[1]) != _NONCE_BYTES:
        raise SealBroken(what)
    return parts


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    data = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if _text(data) != text:
        raise ValueError("not the one way to write it")
    return data


def _found_in(file: Path, forbidden: int) -> _Found:
    """Return the keys in *file*, if nobody has rights to it that are *forbidden*."""
    try:
        with file.open("rb") as opened:
            status = os.fstat(opened.fileno())
            mode = stat.S_IMODE(status.st_mode)
            if mode & forbidden:
                raise InvalidKey(
                    f"the encryption keys in {file} are open to others (mode {mode:04o}); run `chmod 600 {file}`, and "
                    "replace the keys if others may have read them"
                )
            text = opened.read(_LARGEST_FILE).decode()
    except UnicodeDecodeError:
        raise InvalidKey(f"{_EXPECTED}, got no text in {file}") from None
    except OSError as error:
        raise KeyMissing(f"the encryption keys in {file} can't be read: {error.strerror}") from None
    return _Found(Keys.read(text), file, _stamped(status))


def _stamp_of(file: Path) -> _Stamp | None:
    """Return what tells *file* from what it was before; None if it is gone."""
    try:
        return _stamped(file.stat())
    except OSError:
        return None


def _stamped(status: os.stat_result) -> _Stamp:
    return _Stamp(status.st_mtime_ns, status.st_ino, status.st_size)


def _make(file: Path) -> None:
    """Put a new key into *file*, unless another process is quicker: then its key stands.

    The file gets its name when it is complete and on the disk. Nobody can read half of it, and nothing is sealed
    with a key that a power loss takes away.
    """
    unnamed = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    try:
        opened = os.open(unnamed, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(opened, "w") as out:
                out.write(f"{new_key()}\n")
                out.flush()
                os.fsync(out.fileno())
            with suppress(FileExistsError):
                os.link(unnamed, file)
        finally:
            unnamed.unlink()
        _sync(file.parent)
    except OSError as error:
        raise KeyMissing(f"the encryption key can't be kept in {file}: {error.strerror}; set {KEYS}") from None


def _sync(directory: Path) -> None:
    opened = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
