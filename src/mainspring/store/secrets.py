"""Secrets, as they are kept: sealed by whoever sets them, and opened by workers only."""

from __future__ import annotations

from collections.abc import Collection

from mainspring.keys import key_id_of
from mainspring.model.secret import SealedSecret, Secret
from mainspring.store import rows
from mainspring.store.database import Database, Row, Runner
from mainspring.store.teams import check_room


def put(db: Database, secret: SealedSecret, by: str) -> None:
    """See `protocol.Secrets.put_secret`."""
    given = {"team": secret.team, "name": secret.name, "sealed": secret.sealed, "key_id": key_id_of(secret.sealed)}

    def work(tx: Runner) -> None:
        check_room(tx, "secret", secret.team, secret.name)
        tx.run("put_secret", **given, by=by)

    db.transact(work)


def secrets(db: Database, team: str | None) -> list[Secret]:
    """See `protocol.Secrets.secrets`."""
    return [Secret(*row) for row in db.read("secrets", team=team)]


def sealed(db: Database, names: Collection[tuple[str, str]]) -> list[SealedSecret]:
    """See `protocol.Secrets.sealed_secrets`."""
    found = db.read("sealed_secrets", names=rows.document(names)) if names else []
    return [SealedSecret(*row) for row in found]


def outdated(db: Database, key_id: str, team: str | None) -> list[SealedSecret]:
    """See `protocol.Secrets.outdated_secrets`."""
    return [SealedSecret(*row) for row in db.read("outdated_secrets", key_id=key_id, team=team)]


def reseal(db: Database, before: SealedSecret, sealed: str) -> None:
    """See `protocol.Secrets.reseal_secret`."""
    db.run(
        "reseal_secret",
        team=before.team,
        name=before.name,
        before=before.sealed,
        sealed=sealed,
        key_id=key_id_of(sealed),
    )


def remove(db: Database, team: str, name: str) -> bool:
    """See `protocol.Secrets.remove_secret`."""
    found: list[Row] = []  # kept from try to try: after a lost reply it is gone
    db.transact(lambda tx: found.extend(tx.run("remove_secret", team=team, name=name)))
    return bool(found)
