"""One server with every kind of work, for `python -m infra.check`."""

from __future__ import annotations

from tests.infra.catalogues import (
    adopted_tools,
    batch_tools,
    inline_tools,
    lambda_tools,
    server,
    step_functions_tools,
    workflow_tools,
)

server = server(
    inline_tools(), step_functions_tools(), lambda_tools(), batch_tools(), workflow_tools(), adopted_tools()
)
