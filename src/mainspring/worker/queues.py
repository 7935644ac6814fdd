"""Which queue to claim from next, so that busy queues share a worker by weight."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from mainspring.errors import InvalidValue
from mainspring.model.job import check_name


class Queues:
    """Weighted turns among the queues that may have jobs.

    A queue's turn comes when it has had the least for its weight. One that was empty starts level with the others:
    it has no claim to what it did not need.
    """

    def __init__(self, weights: Mapping[str, int]) -> None:
        for name, weight in weights.items():
            check_name(name, "queue")
            if isinstance(weight, bool) or not isinstance(weight, int) or weight < 1:
                raise InvalidValue(
                    f"expected the weight of queue {name!r} to be a whole number from 1 on, got: {weight!r}"
                )
        self._weights = dict(weights)
        self._had = dict.fromkeys(weights, 0.0)
        self._level = 0.0  # what the queue whose turn it was last has had for its weight
        self._promising = set(weights)

    @property
    def names(self) -> Collection[str]:
        return self._weights.keys()

    def heard(self, names: Iterable[str]) -> None:
        """Take note that these may have jobs. Called by any thread."""
        self._promising.update(self._weights.keys() & names)

    def turn(self, room: int) -> tuple[str, int] | None:
        """Return the queue to claim from and how many to ask for; None when no queue may have jobs.

        The queue counts as empty from here on, until `got` or `heard` says otherwise: what is heard while the claim
        is under way must not be forgotten.
        """
        names = [name for name in self._weights if name in self._promising]
        if not names:
            return None
        name = min(names, key=lambda name: self._had[name])
        self._level = max(self._level, self._had[name])
        self._promising.discard(name)
        share = self._weights[name] / sum(self._weights[other] for other in names)
        return name, max(1, round(room * share))

    def got(self, name: str, asked: int, got: int) -> None:
        """Take note of what a turn brought."""
        self._had[name] = max(self._had[name], self._level) + got / self._weights[name]
        if got == asked:
            self._promising.add(name)
