"""What was measured, as a table for people and as JSON for programs."""

from __future__ import annotations

import os
import platform
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

import psycopg
from rich import box
from rich.table import Table


@dataclass(frozen=True)
class Operation:
    """One line of the report. `goal` is the least share of the ceiling's rate, or the most times its duration."""

    name: str
    unit: str
    goal: float | None = None

    @property
    def is_rate(self) -> bool:
        return self.unit == "jobs/s"


OPERATIONS = (
    Operation("enqueue, batches", "jobs/s", goal=0.7),
    Operation("claim, batches", "jobs/s"),
    Operation("settle, batches", "jobs/s"),
    Operation("claim + settle, batches", "jobs/s", goal=0.7),
    Operation("enqueue, one job a call", "ms", goal=1.3),
)

Round = Mapping[str, float]
"""What one round of one side gave, by the name of the operation."""


@dataclass(frozen=True)
class Comparison:
    """All rounds of both sides; the n-th round of one ran next to the n-th of the other."""

    operation: Operation
    ceiling: list[float]
    store: list[float]

    @property
    def ratio(self) -> float:
        """Store to ceiling, of the medians."""
        return median(self.store) / median(self.ceiling)

    @property
    def ratio_of_rounds(self) -> float:
        """Store to ceiling, the median over the rounds: noise that lasts longer than a round falls out of it."""
        return median(store / ceiling for store, ceiling in zip(self.store, self.ceiling, strict=True))

    @property
    def reached(self) -> bool | None:
        goal = self.operation.goal
        if goal is None:
            return None
        return self.ratio_of_rounds >= goal if self.operation.is_rate else self.ratio_of_rounds <= goal


def compare(ceiling: list[Round], store: list[Round]) -> list[Comparison]:
    """Put the rounds of both sides next to each other."""
    return [
        Comparison(operation, [r[operation.name] for r in ceiling], [r[operation.name] for r in store])
        for operation in OPERATIONS
    ]


def machine() -> dict[str, Any]:
    """Return what the numbers depend on, and nothing that tells whose machine it is."""
    return {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "psycopg": psycopg.__version__,
    }


def as_json(title: str, comparisons: list[Comparison]) -> dict[str, Any]:
    return {"database": title, "operations": [_operation_as_json(comparison) for comparison in comparisons]}


def as_table(title: str, comparisons: list[Comparison]) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("operation")
    for heading in ("bare SQL", "lowest to highest", "store", "lowest to highest", "ratio", "per round", "goal"):
        table.add_column(heading, justify="right")
    for comparison in comparisons:
        table.add_row(*_cells(comparison))
    return table


def _cells(comparison: Comparison) -> list[str]:
    operation = comparison.operation
    return [
        operation.name,
        _value(operation, median(comparison.ceiling)) + f" {operation.unit}",
        _spread(operation, comparison.ceiling),
        _value(operation, median(comparison.store)) + f" {operation.unit}",
        _spread(operation, comparison.store),
        _ratio(operation, comparison.ratio),
        _ratio(operation, comparison.ratio_of_rounds),
        _goal(comparison),
    ]


def _goal(comparison: Comparison) -> str:
    operation = comparison.operation
    if operation.goal is None:
        return ""
    sign, colour = "≥" if operation.is_rate else "≤", "green" if comparison.reached else "red"
    return f"[{colour}]{sign} {_ratio(operation, operation.goal)}[/]"


def _value(operation: Operation, value: float) -> str:
    return f"{value:,.0f}" if operation.is_rate else f"{value:.2f}"


def _spread(operation: Operation, values: list[float]) -> str:
    return f"{_value(operation, min(values))} to {_value(operation, max(values))}"


def _ratio(operation: Operation, ratio: float) -> str:
    return f"{ratio:.0%}" if operation.is_rate else f"{ratio:.2f} x"


def _operation_as_json(comparison: Comparison) -> dict[str, Any]:
    return {
        "name": comparison.operation.name,
        "unit": comparison.operation.unit,
        "ceiling": comparison.ceiling,
        "ceiling_median": median(comparison.ceiling),
        "store": comparison.store,
        "store_median": median(comparison.store),
        "ratio": comparison.ratio,
        "ratio_of_rounds": comparison.ratio_of_rounds,
        "goal": comparison.operation.goal,
        "reached": comparison.reached,
    }
