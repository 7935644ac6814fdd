"""Labels: which names may stand in a metric. Whoever reads metrics is to learn nothing of what a team is doing."""

from __future__ import annotations

from collections.abc import Collection, Iterable

OTHER = "other"
MOST = 200
"""Names that each get a series of their own; whoever stores metrics pays for each of them."""


class Labels:
    """Names of one kind. One that has got its series keeps it for as long as the process lives.

    So a queue does not lose its series just when its last worker dies. One that becomes a team's own does.
    """

    def __init__(self) -> None:
        self._known: set[str] = set()

    def learn(self, names: Iterable[str], hidden: Collection[str] = ()) -> None:
        """Let *names* stand in metrics, as far as there is room, except those that are *hidden* from now on."""
        self._known.difference_update(hidden)
        for name in sorted(names):
            if len(self._known) < MOST and name not in hidden:
                self._known.add(name)

    def of(self, name: str) -> str:
        """Return *name*, or what stands for all those that may not be told."""
        return name if name in self._known else OTHER
