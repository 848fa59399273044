"""What DynamoDB bills for a call, by its own rules, from the items before and after it.

Counted rather than asked for: emulators answer ``ReturnConsumedCapacity`` with constants. The rules are those of the
DynamoDB Developer Guide, "DynamoDB read and write operations" and "Item sizes and formats".
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.cost_items import READ_UNIT, WRITE_UNIT, item_bytes, units
from taskrail.store.items import Item

WRITES = frozenset({"PutItem", "UpdateItem", "DeleteItem"})


@dataclass(frozen=True)
class Units:
    """Read and write request units of one call, or of several."""

    read: float = 0
    write: float = 0

    def __add__(self, other: Units) -> Units:
        return Units(self.read + other.read, self.write + other.write)


def of_call(operation: str, before: Item | None, after: Item | None, *, consistent: bool = True) -> Units:
    """The units of one call about one item.

    A write takes the larger of the item before and after it, a refused one as much as if it had been made of what is
    there; a read takes what it found, at least one unit, half of it when it is not strongly consistent.

    Parameters
    ----------
    operation
        ``GetItem``, ``PutItem``, ``UpdateItem`` or ``DeleteItem``.
    before, after
        The item; None when there is none.
    consistent
        Whether a read is strongly consistent.

    Raises
    ------
    ValueError
        Another operation, which nothing here uses.
    """
    sizes = [item_bytes(item) for item in (before, after) if item is not None]
    if operation == "GetItem":
        return Units(read=units(max(sizes, default=0), READ_UNIT) * (1 if consistent else 0.5))
    if operation in WRITES:
        return Units(write=units(max(sizes, default=0), WRITE_UNIT))
    raise ValueError(f"{operation} is not counted: benchmarks/units.py knows calls about one item only")
