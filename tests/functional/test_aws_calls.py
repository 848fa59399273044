"""What every operation costs in AWS calls: the first row of design.md, section 9, for Step Functions.

Counted by botocore's own events under the real handlers, with the real engine; DynamoDB, S3 and Step Functions
are moto's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from handlers import job_runner, mcp_api, run_events
from taskrail.clock import minutes
from taskrail.engines.step_functions import StepFunctions
from taskrail.runtime import build, client
from taskrail.settings import Settings
from taskrail.testing import BUCKET, TABLE, VERSION, CountingIds, StandingClock
from tests.functional import sample_tools

GET, PUT, UPDATE, DELETE = "GetItem", "PutItem", "UpdateItem", "DeleteItem"
START, STOP, DESCRIBE = "StartExecution", "StopExecution", "DescribeExecution"
