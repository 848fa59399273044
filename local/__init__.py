"""The whole kit on one machine: `python -m local`, without an AWS account, Docker or Node.

Five processes, each with one duty (the map is in `local.launcher`):

``launcher`` starts, watches and ends the others; ``aws`` is moto for DynamoDB and S3; ``supervisor``
starts, stops and remembers job processes; ``front`` is the API: HTTP in, `handlers.mcp_api` behind it;
``events`` tells `handlers.run_events` how runs ended, as EventBridge does.
"""
