"""When a job on Batch is tried again."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import aws_batch as batch


def retries(codes: Sequence[int]) -> list[batch.RetryStrategy]:
    """A lost machine is tried again, and what asked for it; code that fails would fail again."""
    again = batch.Action.RETRY
    told = [batch.Reason.custom(on_exit_code=str(code)) for code in codes]
    lost = [batch.Reason.custom(on_status_reason=text) for text in ("Your Spot Task was interrupted*", "Host EC2*")]
    ends = batch.RetryStrategy.of(batch.Action.EXIT, batch.Reason.custom(on_reason="*"))
    return [*(batch.RetryStrategy.of(again, reason) for reason in (*told, *lost)), ends]
