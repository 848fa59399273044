"""The Lambda functions of the workflow `run_migration`: small, pure steps that can be repeated.

What is migrated is invented, so that the workflow runs anywhere: row `i` of a table holds an amount in cents, and
the migration turns it into an amount with a decimal point. In place of these functions yours would read and write.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, TypedDict

from taskrail import ToolError

MOST_BATCHES = 200
"""Batches of one run: each costs a few state transitions, and an execution has 25,000 events (quotas)."""


class Batch(TypedDict):
    """Some consecutive rows."""

    number: int
    first: int
    last: int


class Applied(TypedDict):
    """What became of a batch."""

    rows: int
    total: str


def plan(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """What is to be done: the batches, and the sum that must be the same afterwards.

    Parameters
    ----------
    event
        ``arguments``: those of the tool.
    context
        Lambda's.

    Raises
    ------
    ToolError
        The batches would be too many.
    """
    table, rows, size = (event["arguments"][key] for key in ("table", "rows", "batch_size"))
    batches = [
        Batch(number=number, first=first, last=min(first + size, rows) - 1)
        for number, first in enumerate(range(0, rows, size), 1)
    ]
    if len(batches) > MOST_BATCHES:
        raise ToolError(
            f"That would be {len(batches)} batches; {MOST_BATCHES} is the most. Choose a larger batch_size."
        )
    return {
        "table": table,
        "rows": rows,
        "batches": batches,
        "total": len(batches),
        "cents": sum(map(cents, range(rows))),
        "question": f"Migrate {rows:,} rows of {table} in {len(batches)} batches?",
    }


def apply_batch(event: dict[str, Any], context: Any) -> Applied:
    """Migrate one batch. Repeated, it does the same again: a state may be retried.

    Parameters
    ----------
    event
        ``batch``.
    context
        Lambda's.
    """
    batch: Batch = event["batch"]
    amounts = [migrated(cents(row)) for row in range(batch["first"], batch["last"] + 1)]
    return Applied(rows=len(amounts), total=str(sum(amounts, Decimal(0))))


def verify(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Compare what was done with the plan; what comes back is the result of the tool.

    Parameters
    ----------
    event
        ``plan`` and ``applied``, the outcome of each batch.
    context
        Lambda's.

    Raises
    ------
    ToolError
        The sums differ.
    """
    planned, applied = event["plan"], event["applied"]
    rows = sum(each["rows"] for each in applied)
    total = sum((Decimal(each["total"]) for each in applied), Decimal(0))
    if rows != planned["rows"] or total != migrated(planned["cents"]):
        raise ToolError(f"The sums of {planned['table']} differ after the migration: look at it before you go on.")
    return {"table": planned["table"], "rows": rows, "batches": len(applied), "total": str(total)}


def cents(row: int) -> int:
    """The amount in a row, before."""
    return row * 7_919 % 100_000


def migrated(amount: int) -> Decimal:
    """An amount, after."""
    return Decimal(amount).scaleb(-2)
