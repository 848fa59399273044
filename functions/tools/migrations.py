"""Work that is a state machine: a migration with an approval in the middle, and a comparison of row counts."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from taskrail import Toolset, hours, seconds

tools = Toolset()

Table = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,62}$")]


class Migration(BaseModel):
    """Which table is migrated, and in which steps."""

    table: Table = Field(description="The table.")
    rows: int = Field(ge=1, le=100_000, description="How many rows it has.")
    batch_size: int = Field(default=1_000, ge=1, le=10_000, description="Rows of one step.")


class Migrated(BaseModel):
    """What was done, and that it was verified."""

    table: str
    rows: int
    batches: int
    total: str = Field(description="Sum of all amounts: the same before and after.")


class Count(BaseModel):
    """How many rows a table has."""

    table: Table
    rows: int = Field(ge=0)


class Counts(BaseModel):
    """The counts of two databases, or of one at two times."""

    before: list[Count] = Field(min_length=1, max_length=500)
    after: list[Count] = Field(max_length=500)


class Difference(BaseModel):
    """A table that has another count now."""

    table: str
    before: int
    after: int


class Comparison(BaseModel):
    """What was compared; differences in here were expected."""

    tables: int
    differences: list[Difference]


tools.workflow(
    "run_migration",
    title="Run a migration",
    description=(
        "Migrate an invented table in batches, once you approve.\n\n"
        "Plans the batches, asks, applies them one after the other and verifies the sums. "
        "It shows how a state machine becomes a tool: its functions compute, and touch nothing."
    ),
    input=Migration,
    output=Migrated,
    definition="workflows/run_migration.asl.json",
    functions={
        "plan": "workflows.run_migration.plan",
        "apply_batch": "workflows.run_migration.apply_batch",
        "verify": "workflows.run_migration.verify",
    },
    timeout=hours(1),
    keep_result=hours(24),
    poll_interval=seconds(1),
)

tools.workflow(
    "compare_counts",
    title="Compare row counts",
    description="Compare the row counts of tables before and after, and ask about differences.",
    input=Counts,
    output=Comparison,
    definition="workflows/compare_counts.asl.json",
    timeout=hours(1),
    keep_result=hours(24),
    poll_interval=seconds(1),
)
