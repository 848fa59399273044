"""`python -m infra.local_deploy`: bootstrap and deploy for real, to MiniStack on this machine.

It deploys the catalogue of ``functions/`` with `cdk deploy`: the real zip, the real state machines. Tools on Batch
are left out. It prints the address and stays until Ctrl-C; with ``--check`` it compares (`cdk diff` has to find
nothing), deletes (`cdk destroy` has to leave nothing) and ends.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from infra.empty import empty
from infra.emulator import ACCOUNT, MINISTACK, REGION, ROOT, Emulator, EmulatorError, running

CONTEXT = {"emulator": "true", "removal": "destroy", "deletion_protection": "false"}
ANONYMOUS = {"auth": "none", "allow_anonymous": "true"}


class DeployError(Exception):
    """A command of CDK's failed; the message holds the end of what it said."""


class Deployment:
    """A deployment of this repository to an emulator.

    Parameters
    ----------
    emulator
        Where to.
    context
        What is chosen, beside what an emulator needs.
    folder
        Where CDK puts what it makes.
    """

    def __init__(self, emulator: Emulator, context: Mapping[str, str], folder: Path) -> None:
        self._emulator = emulator
        self._context = {**CONTEXT, **context}
        self._folder = folder
        self.name = self._context.get("name", "taskrail")

    def deploy(self) -> dict[str, str]:
        """Synthesize, bootstrap and deploy; the stack's outputs, by name."""
        self._cdk("synth", "--quiet", *self._from_sources())
        self._cdk("bootstrap", f"aws://{ACCOUNT}/{REGION}", *self._synthesized)
        outputs = self._folder / "outputs.json"
        self._cdk("deploy", "--require-approval", "never", "--outputs-file", str(outputs), *self._synthesized)
        given: dict[str, str] = json.loads(outputs.read_text())[self.name]
        return given

    def diff(self) -> None:
        """Synthesize anew, and compare what is deployed with that.

        Raises
        ------
        DeployError
            There is a difference.
        """
        self._cdk("diff", "--fail", *self._from_sources("again"))

    def destroy(self) -> None:
        """Empty the bucket and delete the stack."""
        empty(self.name, self.client)
        self._cdk("destroy", "--force", *self._synthesized)

    def left(self) -> list[str]:
        """What is still there of the deployment, beside what bootstrapping made."""
        kinds = {
            "lambda": ("list_functions", "Functions"),
            "dynamodb": ("list_tables", "TableNames"),
            "s3": ("list_buckets", "Buckets"),
            "stepfunctions": ("list_state_machines", "stateMachines"),
            "logs": ("describe_log_groups", "logGroups"),
            "iam": ("list_roles", "Roles"),
            "events": ("list_rules", "Rules"),
            "apigatewayv2": ("get_apis", "Items"),
            "apigateway": ("get_rest_apis", "items"),
            "secretsmanager": ("list_secrets", "SecretList"),
            "cloudwatch": ("describe_alarms", "MetricAlarms"),
            "sqs": ("list_queues", "QueueUrls"),
        }
        found = [
            f"{service}: {item if isinstance(item, str) else json.dumps(item, default=str)}"
            for service, (operation, key) in kinds.items()
            for item in getattr(self.client(service), operation)().get(key, ())
        ]
        return [text for text in found if "cdk-hnb659fds-" not in text]

    def client(self, service: str) -> Any:
        """A boto3 client of the emulator."""
        import boto3

        make: Any = boto3.client
        return make(
            service,
            endpoint_url=self._emulator.endpoint,
            region_name=REGION,
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )

    def _from_sources(self, output: str = "assembly") -> list[str]:
        context = [part for key, value in self._context.items() for part in ("--context", f"{key}={value}")]
        return ["--app", f"{sys.executable} app.py", "--output", str(self._folder / output), *context]

    @property
    def _synthesized(self) -> list[str]:
        return ["--app", str(self._folder / "assembly")]

    def _cdk(self, command: str, *options: str) -> None:
        quiet = {"CDK_DISABLE_CLI_TELEMETRY": "1", "NO_COLOR": "1", "JSII_NODE": _node()}
        done = subprocess.run(
            [_node(), str(ROOT / "node_modules" / "aws-cdk" / "bin" / "cdk"), command, *options],
            cwd=ROOT,
            env={**os.environ, **self._emulator.environment, **quiet},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if done.returncode:
            raise DeployError(f"cdk {command} failed:\n{done.stdout[-6000:]}")


def _node() -> str:
    own = Path(sys.executable).with_name("node")
    found = str(own) if own.exists() else shutil.which("node")
    if found is None:
        raise DeployError("CDK runs on Node; `make deploy-local` installs it")
    return found


def main(arguments: Sequence[str]) -> int:
    """Deploy as the arguments say."""
    parser = argparse.ArgumentParser(prog="python -m infra.local_deploy", description=__doc__)
    parser.add_argument("--api", choices=("http", "rest"), default="http")
    parser.add_argument("--port", type=int, help="where MiniStack listens; a free port by default")
    parser.add_argument("--context", action="append", default=[], metavar="KEY=VALUE", help="as -c of cdk")
    parser.add_argument("--check", action="store_true", help="compare, delete, and end")
    parser.add_argument("--ministack", type=Path, default=MINISTACK, help="its program")
    given = parser.parse_args(arguments)
    chosen = dict(pair.partition("=")[::2] for pair in given.context)
    context = {"api": given.api, **({} if "auth" in chosen else ANONYMOUS), **chosen}
    try:
        with tempfile.TemporaryDirectory() as folder, running(given.port, given.ministack) as emulator:
            deployment = Deployment(emulator, context, Path(folder))
            print("deploying to MiniStack (about a minute) ...", flush=True)
            outputs = deployment.deploy()
            print(emulator.local_url(outputs["Endpoint"]), flush=True)
            if given.check:
                return _check(deployment)
            print("Ctrl-C ends it", flush=True)
            signal.sigwait({signal.SIGINT, signal.SIGTERM})
    except (EmulatorError, DeployError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _check(deployment: Deployment) -> int:
    deployment.diff()
    print("cdk diff finds nothing", flush=True)
    deployment.destroy()
    left = deployment.left()
    print("\n".join(["left behind:", *left]) if left else "cdk destroy leaves nothing")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
