"""What a deployment says of itself: its address, and how each client is pointed at it."""

from __future__ import annotations

import aws_cdk as cdk
from constructs import Construct

from infra.configuration import Configuration

_HEADERS = {"api_key": "x-api-key: YOUR_KEY", "lambda": "Authorization: YOUR_CREDENTIAL"}


class ClientConfiguration(Construct):
    """Outputs to copy from.

    Parameters
    ----------
    configuration
        How callers prove who they are.
    url
        The API's address.
    report_arn
        ARN of `report`, which adopted state machines invoke; None without it.
    """

    def __init__(
        self, scope: Construct, name: str, *, configuration: Configuration, url: str, report_arn: str | None
    ) -> None:
        super().__init__(scope, name)
        endpoint = f"{url}/mcp"
        for key, value in commands(configuration, endpoint).items():
            self._output(key, value)
        if report_arn is not None:
            self._output("ReportFunction", report_arn)

    def _output(self, key: str, value: str) -> None:
        output = cdk.CfnOutput(self, key, value=value)
        output.override_logical_id(key)


def commands(configuration: Configuration, endpoint: str) -> dict[str, str]:
    """What to type or to paste, by client."""
    name = configuration.name
    if configuration.auth == "iam":
        # Clients sign nothing by themselves; this proxy of AWS's runs beside them and signs (mcp-proxy-for-aws, PyPI).
        proxy = f"uvx mcp-proxy-for-aws@latest {endpoint} --service execute-api"
        arguments = proxy.split()[1:]
        process = f"StdioServerParameters(command='uvx', args={arguments})"
        return {
            "Endpoint": endpoint,
            "ClaudeCode": f"claude mcp add {name} -- {proxy}",
            "FastMCP": f"Client(StdioTransport('uvx', {arguments}))",
            "Strands": f"MCPClient(lambda: stdio_client({process}))",
            "Inspector": f"npx @modelcontextprotocol/inspector {proxy}",
        }
    header = _HEADERS.get(configuration.auth)
    flag = "" if header is None else f' --header "{header}"'
    given = "" if header is None else f", headers={dict([header.split(': ')])}"
    inspected = f"npx @modelcontextprotocol/inspector --cli {endpoint} --transport http --method tools/list{flag}"
    oauth = ", auth='oauth'" if configuration.auth == "jwt" else ""
    return {
        "Endpoint": endpoint,
        "ClaudeCode": f"claude mcp add --transport http {name} {endpoint}{flag}",
        "FastMCP": f"Client(StreamableHttpTransport('{endpoint}'{given}{oauth}))",
        "Strands": f"MCPClient(lambda: streamablehttp_client('{endpoint}'{given}), tasks_config={{}})",
        "Inspector": inspected,
    }
