"""Secrecy: what an attempt keeps to itself, whatever it says and whatever it comes to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from mainspring.errors import InvalidPayload
from mainspring.keys import Keyring
from mainspring.model.job import NewJob
from mainspring.model.payload import encode_details
from mainspring.model.redact import redactor
from mainspring.model.sealed import result_context, signal_context, step_context


class Secrecy:
    """The values of the secrets that an attempt was given, and, if its job is sealed, the keys for what comes of it.

    All that is kept of an attempt goes through here, in whatever process it is made.
    """

    __slots__ = ("_job_id", "_keys", "_task", "redact", "values")

    def __init__(
        self, job_id: UUID = UUID(int=0), task: str = "", values: Sequence[str] = (), keys: Keyring | None = None
    ) -> None:
        """With *keys*, what comes of the attempt is sealed."""
        self._job_id = job_id
        self._task = task
        self._keys = keys
        self.values = tuple(values)
        self.redact = redactor(values)

    @property
    def sealed(self) -> bool:
        """Whether what comes of the attempt is sealed."""
        return self._keys is not None

    def knowing(self, values: Sequence[str]) -> Secrecy:
        """Return the same of an attempt that was given secrets with these *values*."""
        return Secrecy(self._job_id, self._task, values, self._keys)

    def result(self, document: str) -> str:
        """Return the result of the attempt, as JSON, as it is kept."""
        shown = self.shown(document)
        if self._keys is None:
            return shown
        return self._keys.seal_document(shown, result_context(self._job_id, self._task))

    def shown(self, document: str) -> str:
        """Return a JSON document without the values of secrets."""
        return self.redact.document(document) if self.values else document

    def details(self, details: Mapping[str, object]) -> str | None:
        """Return what the attempt says of itself, as it is kept; None if that is nothing."""
        text = encode_details(details)
        return None if text is None else self.shown(text)

    def check_jobs(self, jobs: Iterable[NewJob]) -> None:
        """Refuse *jobs* that come of the attempt and hold the value of a secret, which would be stored with them."""
        for job in jobs if self.values else ():
            if self.redact(job.payload) != job.payload:
                raise InvalidPayload(
                    f"expected the jobs that are added to hold no secrets, got a job of {job.task!r} that does; pass "
                    "secret://name on instead"
                )

    def closed_step(self, name: str, document: str) -> str:
        """Return the result of a step, as JSON without values, as it is kept."""
        if self._keys is None:
            return document
        return self._keys.seal_document(document, step_context(self._job_id, self._task, name))

    def opened_step(self, name: str, document: str) -> str:
        """Return the result of a step, as JSON, that was kept as *document*."""
        return self._opened(document, step_context(self._job_id, self._task, name), f"the result of step {name!r}")

    def opened_signal(self, name: str, document: str) -> str:
        """Return the value of a signal, as JSON, that was kept as *document*."""
        return self._opened(document, signal_context(self._job_id, self._task, name), f"the value of signal {name!r}")

    def _opened(self, document: str, context: str, what: str) -> str:
        # Without keys it is a document that nobody has sealed, and stays as it is.
        return (self._keys or _NO_KEYS).open_document(document, context, what)


_NO_KEYS = Keyring(None)

OPEN = Secrecy()
"""Of attempts that have nothing to keep to themselves."""
