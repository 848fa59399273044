"""What the tests of the deployment share."""

from __future__ import annotations

import pytest

from tests.infra.catalogues import (
    adopted_tools,
    batch_tools,
    inline_tools,
    lambda_tools,
    server,
    step_functions_tools,
)
from tests.infra.everything import server as every_kind
from tests.infra.synthesis import (
    ANONYMOUS,
    COGNITO,
    DOMAIN,
    IMAGES,
    JWT,
    LAMBDA,
    NETWORK,
    TOPIC,
    Template,
    synthesize,
)


def pytest_configure(config: pytest.Config) -> None:
    """The mark of these tests: each synthesis takes seconds."""
    config.addinivalue_line("markers", "infra: synthesizes the deployment")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark them all."""
    for item in items:
        if "/tests/infra/" in item.path.as_posix():
            item.add_marker(pytest.mark.infra)
            # The first test of a process waits for the synthesis of all deployments.
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(300))


@pytest.fixture(scope="session")
def templates() -> dict[str, Template]:
    """The templates of all deployments that tests look at, synthesized together."""
    page, mortal = "https://app.example.com", {"removal": "destroy", "deletion_protection": "false"}
    lists = {"most_open": '{"*": 20}', "listen": "hold", "experimental_tasks": "true"}
    slow = {"throttle_rate": "50", "throttle_burst": "100"}
    inline, batch = server(inline_tools()), server(batch_tools())
    return synthesize(
        {
            "everything": (every_kind, {**JWT, **IMAGES, "allowed_origins": page, "event_bus": "default"}),
            "jobs": (server(step_functions_tools()), {**COGNITO, "api": "rest", "allowed_origins": page}),
            "functions": (server(lambda_tools()), {**JWT, "snap_start": "true"}),
            "inline": (inline, {**ANONYMOUS, **mortal}),
            "untraced": (server(step_functions_tools()), {**COGNITO, "api": "rest", "tracing": "false"}),
            "batch": (batch, {**IMAGES, "auth": "iam", "max_vcpus": "8"}),
            "given": (batch, {**IMAGES, "auth": "iam", **NETWORK}),
            "adopted": (
                server(adopted_tools()),
                {"auth": "iam", "iam_owner": "session", **lists},
            ),
            "keys": (inline, {"auth": "api_key", "api": "rest", **slow}),
            "domain": (inline, {**LAMBDA, **DOMAIN, "alarm_topic_arn": TOPIC}),
            "restdomain": (inline, {**COGNITO, **DOMAIN, "api": "rest", "stage": "prod"}),
        }
    )
