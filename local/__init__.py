"""The whole kit on one machine: `python -m local`, without an AWS account, Docker or Node.

Five or six processes, each with one duty (the map is in `local.launcher`):

``launcher`` starts, watches and ends the others; ``aws`` is moto for DynamoDB, S3 and the executions of
workflows; ``supervisor`` starts, stops and remembers the processes of jobs and containers; ``front`` is the
API: HTTP in, `handlers.mcp_api` and `handlers.report` behind it; ``events`` tells `handlers.run_events` how
runs ended, as EventBridge and Lambda do; ``functions`` runs the Lambda functions of workflows, if there are any.

What AWS does and this does not: items never expire by themselves and the table has no stream, so `handlers.expired`
and `handlers.task_events` do not run; a container has no image, no limits and no user of its own; a job that is told
to end has 5 seconds for it, not 30; an execution has no time-out but those of its definition; an invocation waits in
no queue, and its next attempt comes after 45.5 seconds, not after one minute and then two.
"""
