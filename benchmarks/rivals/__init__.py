"""What is compared: one folder each, which becomes the root of a bundle, as a Lambda function would carry it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
MACHINE = "arn:aws:states:eu-central-1:123456789012:stateMachine:render"

AWS = {
    "AWS_REGION": "eu-central-1",
    "AWS_DEFAULT_REGION": "eu-central-1",
    "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "AWS_SESSION_TOKEN": "IQoJb3JpZ2luX2VjEXAMPLE",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_LAMBDA_FUNCTION_NAME": "bench",
}
"""What Lambda tells every function; the keys are those of AWS's own examples."""

_BY_HAND = {"TABLE": "tasks", "STATE_MACHINE": MACHINE}
_KIT = {
    "TASKRAIL_TABLE": "tasks",
    "TASKRAIL_BUCKET": "payloads",
    "TASKRAIL_SECRET": "a secret for benchmarks only",
    "TASKRAIL_STATE_MACHINES": f'{{"render":"{MACHINE}"}}',
    "TASKRAIL_AUTH": "jwt",
    # The item that the polls read is as old as the run of the benchmark.
    "TASKRAIL_PROBE_AFTER_MS": "86400000",
}


@dataclass(frozen=True)
class Rival:
    """One of those that are compared.

    Parameters
    ----------
    name
        Of its bundle, and in the results.
    title
        In the tables.
    module
        Has ``handler``.
    requirements
        Lists of what is installed, below ``requirements/``; None for the kit's own.
    sources
        Files and folders whose content is copied into the root of the bundle.
    environment
        What its function is told, on top of what Lambda tells every function.
    serves
        Whether it answers requests; what does not is only loaded.
    """

    name: str
    title: str
    module: str
    requirements: str | None
    sources: tuple[Path, ...]
    environment: dict[str, str] = field(default_factory=dict)
    serves: bool = True


_TICKETS = HERE / "shared" / "tickets.py"
_ON_SDK = HERE / "sdk" / "sdk_handler.py"

TASKRAIL = Rival("taskrail", "Taskrail", "handlers.mcp_api", None, (HERE / "taskrail",), _KIT)
SDK = Rival("sdk", "official SDK, lean", "sdk_handler", "bench-sdk.txt", (_ON_SDK, _TICKETS), _BY_HAND)
SDK_USUAL = Rival(
    "sdk_usual",
    "official SDK, as usual",
    "sdk_usual_handler",
    "bench-sdk-usual.txt",
    (HERE / "sdk_usual" / "sdk_usual_handler.py", _ON_SDK, _TICKETS),
    _BY_HAND,
)
FASTMCP = Rival(
    "fastmcp",
    "FastMCP",
    "fastmcp_handler",
    "bench-fastmcp.txt",
    (HERE / "fastmcp" / "fastmcp_handler.py", _TICKETS),
    _BY_HAND,
)
FLOOR = Rival(
    "floor", "the floor", "floor_handler", "bench-floor.txt", (HERE / "floor" / "floor_handler.py",), serves=False
)
FLOOR_BOTOCORE = Rival(
    "floor_botocore",
    "the floor, without boto3",
    "floor_botocore_handler",
    "bench-floor.txt",
    (HERE / "floor" / "floor_botocore_handler.py",),
    serves=False,
)
RIVALS = (TASKRAIL, SDK, SDK_USUAL, FASTMCP, FLOOR, FLOOR_BOTOCORE)
