"""Which tools this server has: the one list that the Lambdas, the deployment and the local stack import."""

from __future__ import annotations

from taskrail import TaskServer
from tools import documents, migrations, privacy, statistics

server = TaskServer(
    "documents",
    version="1.0.0",
    title="Documents",
    instructions=(
        "Counts, compares and redacts documents. Hand them in as text, or by s3:// URIs under your own input prefix. "
        "Also migrates an invented table, compares row counts and measures lines. "
        "Long work becomes a task: keep its taskId, ask for it again whenever you like."
    ),
    tools=[documents.tools, privacy.tools, migrations.tools, statistics.tools],
)
