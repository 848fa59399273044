"""What all tests share: no test ever finds real credentials or a real network of AWS.

`functions/` and the root are import roots through `pythonpath` in pyproject.toml, as they are in a
Lambda and in the local stack.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import signal

from hypothesis import HealthCheck, settings

from tests.counts import SAME_EVERY_TIME, pytest_sessionfinish, pytest_terminal_summary, pytest_testnodedown

__all__ = ["pytest_sessionfinish", "pytest_terminal_summary", "pytest_testnodedown"]

# The tests of the deployment need CDK, which `make test` does without.
collect_ignore = [] if importlib.util.find_spec("aws_cdk") else ["infra"]

# moto answers the sessions that are made after its import, and `taskrail.clients` keeps one for the process.
if importlib.util.find_spec("moto"):
    importlib.import_module("moto.core.models")

# Set while pytest loads, before any test module can build a client.
os.environ.update(
    AWS_ACCESS_KEY_ID="testing",
    AWS_SECRET_ACCESS_KEY="testing",
    AWS_SESSION_TOKEN="testing",
    AWS_DEFAULT_REGION="eu-central-1",
    AWS_REGION="eu-central-1",
    AWS_EC2_METADATA_DISABLED="true",
)
for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
    os.environ.pop(name, None)

# Started in the background or under nohup, this process ignores these signals, and so would every process that it
# starts: the tests that end a stack as Ctrl-C or a closed terminal does need them heard.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Examples are judged by what they show, not by how long a shared machine took for one.
settings.register_profile(
    "taskrail", deadline=None, derandomize=SAME_EVERY_TIME, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("taskrail")
