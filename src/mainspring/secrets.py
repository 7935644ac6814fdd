"""Secrets of an app: set, listed and removed, never given back. Jobs name them, and workers give them to handlers."""

from __future__ import annotations

import builtins

from mainspring.client import Client
from mainspring.errors import KeyMissing, SealBroken, SecretNotFound
from mainspring.model.sealed import secret_context
from mainspring.model.secret import SealedSecret, Secret, check_secret_name, check_secret_value
from mainspring.model.team import DEFAULT_TEAM
from mainspring.service import person
from mainspring.twin import twin


class Secrets:
    """The secrets of the app's team, or of the default one. An argument `secret://name` stands for one of them.

    No call returns a value: it is opened by the worker that runs a job of the team. Each call has an awaitable twin
    whose name begins with `a`.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    @property
    def _team(self) -> str:
        return self._client.scope or DEFAULT_TEAM

    def set(self, name: str, value: str, *, by: str | None = None) -> None:
        """Keep *value* under *name*, in place of what was kept there; jobs that start some seconds later get it.

        *by* is who says so: the user of this process and its host, unless told.
        """
        check_secret_name(name)
        check_secret_value(value)
        keys = self._client.keys
        sealed = keys.seal(value, secret_context(self._team, name))
        self._client.store.put_secret(SealedSecret(self._team, name, sealed), by or person())

    def list(self) -> builtins.list[Secret]:
        """Return what may be known of the team's secrets, by name; an app that is bound to no team sees all teams'."""
        return self._client.store.secrets(self._client.scope)

    def remove(self, name: str) -> None:
        """Remove a secret; jobs that name it fail from some seconds later on."""
        check_secret_name(name)
        if not self._client.store.remove_secret(self._team, name):
            raise SecretNotFound(name, self._team)

    def rotate(self) -> int:
        """Seal anew, with the first key, what was sealed with another, and return how many that were.

        One that can't be opened is left as it is, and the first such error is raised when all others are done.
        """
        keys, store = self._client.keys, self._client.store
        refused: KeyMissing | SealBroken | None = None
        done = 0
        for secret in store.outdated_secrets(keys.first, self._client.scope):
            context = secret_context(secret.team, secret.name)
            try:
                plain = keys.unseal(secret.sealed, context, secret.described)
            except (KeyMissing, SealBroken) as error:
                refused = refused or error
                continue
            store.reseal_secret(secret, keys.seal(plain, context))
            done += 1
        if refused is not None:
            raise refused
        return done

    aset = twin(set)  # noqa: A003 - the method above
    alist = twin(list)  # noqa: A003 - the method above
    aremove = twin(remove)
    arotate = twin(rotate)
