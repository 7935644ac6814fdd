"""Handlers whose annotations are text, and partly can't be resolved: imported for type checkers alone, or not yet."""

from __future__ import annotations

import decimal
from typing import TYPE_CHECKING, Annotated, Optional

import mainspring
from mainspring import Context as Ctx

if TYPE_CHECKING:
    from collections.abc import Sized as Later

    from mainspring import Context


def plain(ctx: Context, n: int) -> int:
    return n


def optional(ctx: Context | None = None) -> None: ...


def old_optional(ctx: Optional[Context] = None) -> None: ...  # noqa: UP045


def renamed(ctx: Ctx, n: int) -> int:
    return n


def renamed_optional(n: int, *, ctx: Ctx | None = None) -> None: ...


def by_module(ctx: mainspring.Context) -> None: ...


def extra(ctx: Annotated[Ctx, "of the attempt"]) -> None: ...


def before_a_later_name(ctx: Ctx, later: Later) -> None: ...


def of_another_kind(c: decimal.Context) -> None: ...


def returns_a_later_name() -> Later:
    return "text"


CONTEXT = [plain, optional, old_optional, renamed, renamed_optional, by_module, extra, before_a_later_name]
