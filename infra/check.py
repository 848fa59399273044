"""`python -m infra.check`: what is synthesized passes cdk-nag (AwsSolutions) and cfn-lint, for every API and caller.

The catalogue of ``functions/`` is taken, or that of another module: ``python -m infra.check tests.infra.everything``.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from cdk_nag import AwsSolutionsChecks

from infra.app import build
from infra.bundling import ROOT
from infra.configuration import APIS, AUTHS, Api, Auth, Configuration
from infra.context import ConfigurationError
from taskrail.server import TaskServer

_NEEDED: Mapping[Auth, dict[str, str]] = {
    "jwt": {
        # The only kind of issuer that both kinds of API take.
        "issuer": "https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_Example",
        "audience": "example",
        "scopes": "tasks/use",
        "allowed_origins": "https://app.example.com",
    },
    "iam": {
        "event_bus": "default",
        "listen": "hold",
        "experimental_tasks": "true",
        "snap_start": "true",
        "tracing": "false",
    },
    "lambda": {
        "authorizer_arn": "arn:aws:lambda:eu-central-1:111122223333:function:authorizer",
        "owner_key": "sub",
        "domain_name": "tasks.example.com",
        "certificate_arn": "arn:aws:acm:eu-central-1:111122223333:certificate/example",
        "hosted_zone_id": "Z0123456789ABC",
        "hosted_zone_name": "example.com",
    },
    "api_key": {"alarm_topic_arn": "arn:aws:sns:eu-central-1:111122223333:alarms"},
    "none": {"allow_anonymous": "true", "removal": "destroy", "deletion_protection": "false"},
}

_CFN_LINT = "import sys; from cfnlint.runner.cli import main; sys.exit(main())"

_LEFT_OUT = {
    "W3005": "CDK names dependencies that a reference implies as well",
}
"""Rules of cfn-lint that say nothing about this stack, and why."""


def variants() -> Iterator[tuple[Api, Auth, dict[str, str]]]:
    """Every API with every kind of caller that it knows, and with options spread over them."""
    for api in APIS:
        for auth in AUTHS:
            if (api, auth) != ("http", "api_key"):
                yield api, auth, {"api": api, "auth": auth, **_NEEDED[auth]}


def synthesize(server: TaskServer, output: Path) -> list[Path]:
    """The templates of all variants; findings of cdk-nag end it.

    Parameters
    ----------
    server
        The catalogue.
    output
        Where the templates go.
    """
    flags: dict[str, Any] = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))["context"]
    app = cdk.App(context={**flags, "aws:cdk:bundling-stacks": []}, outdir=str(output))
    for api, auth, context in variants():
        try:
            name = f"{api}-{auth}".replace("_", "-")
            build(app, server, Configuration.from_context({"name": name, **context}), name)
        except ConfigurationError as error:
            # A catalogue may refuse a kind of caller: dedupe= needs to know them.
            print(f"{api} with {auth}: {error}")
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    app.synth()
    return sorted(output.glob("*.template.json"))


def main(arguments: list[str]) -> int:
    """Check the catalogue; 0 when nothing was found."""
    server: TaskServer = importlib.import_module(arguments[0] if arguments else "catalogue").server
    with tempfile.TemporaryDirectory() as folder:
        try:
            templates = synthesize(server, Path(folder))
        except RuntimeError as error:
            print(error, file=sys.stderr)
            return 1
        rules = [option for rule in _LEFT_OUT for option in ("--ignore-checks", rule)]
        command = [sys.executable, "-c", _CFN_LINT, *rules, "--template", *map(str, templates)]
        found = subprocess.run(command).returncode
    print(f"cdk-nag and cfn-lint: {len(templates)} templates{'' if found else ', nothing found'}")
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
