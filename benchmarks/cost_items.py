"""How much of DynamoDB's units a task takes: from items as the store writes them, measured as DynamoDB measures."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from taskrail.access import owner_key
from taskrail.payloads import SMALL
from taskrail.store.items import Item, to_item
from taskrail.task import Status, Task

WRITE_UNIT = 1_024
READ_UNIT = 4_096
"""Bytes of an item that one request unit pays for, strongly consistent reads (DynamoDB Developer Guide, "Read/write
capacity")."""

INDEXING = 100
"""Bytes that storage counts beside each item (the same guide, "Item sizes and formats")."""

_ID = "9f81038d99ae71ef077185bbd306ef36"
_NOW = 1_780_000_000_000
_POINTER = f"s3:tasks/{_ID}/1-1-9f81038d99ae71ef/result.json"


@dataclass(frozen=True)
class Sizes:
    """Bytes of a task's item: as it is made, while a worker has it, and after its end."""

    made: int
    claimed: int
    ended: int

    @property
    def create_units(self) -> int:
        """Write units of its creation."""
        return units(self.made, WRITE_UNIT)

    @property
    def change_units(self) -> int:
        """Write units of a change while it is open: a claim, a probe, a renewal of a lease."""
        return units(self.claimed, WRITE_UNIT)

    @property
    def end_units(self) -> int:
        """Write units of its last write: the larger of the item before and after counts."""
        return units(max(self.claimed, self.ended), WRITE_UNIT)

    @property
    def read_units(self) -> int:
        """Read units of a look at it while it is open."""
        return units(self.claimed, READ_UNIT)

    @property
    def last_read_units(self) -> int:
        """Read units of the read that finds the result."""
        return units(self.ended, READ_UNIT)


def units(size: int, unit: int) -> int:
    """Request units of an item of that many bytes."""
    return max(1, math.ceil(size / unit))


def item_bytes(item: Item) -> int:
    """Bytes of an item as DynamoDB counts them (DynamoDB Developer Guide, "Item sizes and formats")."""
    return sum(len(name.encode()) + _value_bytes(value) for name, value in item.items())


def sizes(
    *, engine: str, tool: str, argument_bytes: int, result_bytes: int, run_id: str, inline_arguments: bool = True
) -> Sizes:
    """The sizes of a typical task's item.

    Parameters
    ----------
    engine, tool
        What runs it, and the name of its tool.
    argument_bytes, result_bytes
        Bytes of the JSON of its arguments and of its result. What is too large for the item is a pointer in it.
    run_id
        How its engine names runs.
    inline_arguments
        Whether small arguments stay in the item; those of containers never do.
    """
    small = inline_arguments and argument_bytes <= SMALL
    made = Task(
        task_id=_ID,
        owner=owner_key("jwt", "an issuer", "a subject"),
        tool=tool,
        engine=engine,
        created_at=_NOW,
        updated_at=_NOW,
        ttl_ms=86_760_000,
        keep_ms=86_400_000,
        poll_ms=5_000,
        run_started_at=_NOW,
        run_deadline=_NOW + 360_000,
        arguments="a" * argument_bytes if small else _POINTER,
        client={"elicitation": {}},
        caller={"subject": "a-subject-of-36-characters-or-so-----"},
        nonce=_ID[:16],
    )
    claimed = replace(
        made, run_id=run_id, attempt=1, claim=_ID[:16], probed_at=_NOW, status_message="12 of 100", rev=20
    )
    result = "r" * result_bytes if result_bytes <= 32_768 else _POINTER
    ended = claimed.ended(Status.COMPLETED, _NOW + 60_000, message="Completed.", result=result)
    return Sizes(*(item_bytes(to_item(task)) for task in (made, claimed, ended)))


def _value_bytes(value: dict[str, object]) -> int:
    ((kind, content),) = value.items()
    if kind == "S":
        return len(str(content).encode())
    if kind == "N":
        return math.ceil(len(str(content).strip("-").strip("0")) / 2) + 1
    if kind == "BOOL":
        return 1
    raise ValueError(f"items of the kit hold no {kind}")
