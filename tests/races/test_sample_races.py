"""Many who add to the history at once: none waits for another in a circle, and nothing is left out."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

from mainspring.model.job import Job
from mainspring.store import open_store, samples
from mainspring.store.sql import SqlStore
from mainspring.tally import Counts, Place
from tests.support.databases import execute
from tests.support.factories import new_job, stored

STORES = 4
ROUNDS = 10
PLACES: list[Place] = [(f"t{n % 3}", f"q{n:03}") for n in range(150)]


def shuffled(chance: random.Random) -> dict[Place, Counts]:
    """Return one success of each place, in whatever order somebody may have come across them."""
    counted: dict[Place, Counts] = {}
    for place in chance.sample(PLACES, len(PLACES)):
        counted[place] = Counts()
        counted[place].succeeded = 1
        counted[place].waits.add(0.01)
    return counted


def test_those_that_add_the_same_places_in_another_order_do_not_wait(url: str) -> None:
    stores = [open_store(url) for _ in range(STORES)]

    def work(number: int) -> None:
        chance = random.Random(number)
        for _ in range(ROUNDS):
            stores[number].add_counts(shuffled(chance))

    with ThreadPoolExecutor(STORES) as pool:
        list(pool.map(work, range(STORES)))

    assert sum(one.succeeded for one in stores[0].history("24h").samples) == STORES * ROUNDS * len(PLACES)
    for store in stores:
        store.close()
    assert deadlocks(url) == 0


def test_nor_do_those_that_add_what_their_reapers_have_failed(url: str) -> None:
    stores = [open_store(url) for _ in range(STORES)]
    made = [new_job(team=team, queue=queue) for team, queue in PLACES]
    stores[0].enqueue(made)
    failed = [stored(stores[0], job.id) for job in made]

    def work(number: int) -> None:
        chance = random.Random(number)
        for _ in range(ROUNDS):
            add_failed(stores[number], chance.sample(failed, len(failed)))

    with ThreadPoolExecutor(STORES) as pool:
        list(pool.map(work, range(STORES)))

    assert sum(one.failed for one in stores[0].history("24h").samples) == STORES * ROUNDS * len(PLACES)
    for store in stores:
        store.close()
    assert deadlocks(url) == 0


def add_failed(store: SqlStore, jobs: list[Job]) -> None:
    store._db.transact(lambda tx: samples.add_failed(tx, jobs))


def deadlocks(url: str) -> int:
    """Return how often PostgreSQL has ended one who waited in a circle, which another try may hide."""
    if not url.startswith("postgres"):
        return 0
    ((found,),) = execute(url, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
    return int(found)
