"""The handler on the official SDK as it is usually written: a loop for each request, Powertools' log and metrics.

The other one is leaner than most are: it keeps a loop between requests, writes one plain line and counts nothing.
The kit's own handler counts requests and durations, so this one is nearer to it in what it does.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

import sdk_handler

logger = Logger(service="bench")
metrics = Metrics(namespace="Bench", service="bench")


class Loops:
    """A new event loop for each request."""

    def run_until_complete(self, answer: Coroutine[Any, Any, Any]) -> Any:
        """Run it to its end."""
        return asyncio.run(answer)


sdk_handler.loop = Loops()
sdk_handler.log.disabled = True


@metrics.log_metrics
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answer one event of an HTTP API, and tell of it."""
    began = time.perf_counter()
    response = sdk_handler.handler(event, context)
    method = event["headers"].get("mcp-method", "unknown")
    metrics.add_dimension(name="method", value=method)
    metrics.add_metric(name="Requests", unit=MetricUnit.Count, value=1)
    metrics.add_metric(name="Duration", unit=MetricUnit.Milliseconds, value=(time.perf_counter() - began) * 1_000)
    logger.info("request", extra={"method": method, "status": response["statusCode"]})
    return response
