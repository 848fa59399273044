"""The bundles as code of Lambda functions: each made once, however many functions have it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aws_cdk as cdk
import jsii
from aws_cdk import aws_lambda as lambda_

from infra.bundling import FUNCTIONS, Bundle, Target


@jsii.implements(cdk.ILocalBundling)
class _Local:
    """Makes a bundle in this process; Docker is never asked."""

    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle

    def try_bundle(self, output_dir: str, options: Any = None, **more: Any) -> bool:
        """Write the bundle where CDK wants it; errors end the synthesis."""
        self._bundle.make(Path(output_dir))
        return True


class Codes:
    """The code assets of a stack.

    Parameters
    ----------
    target
        Where the code is to run.
    functions
        The import root.
    """

    def __init__(self, target: Target, functions: Path = FUNCTIONS) -> None:
        self._target = target
        self._functions = functions
        self._made: dict[str | None, lambda_.Code] = {}

    @property
    def functions(self) -> Path:
        """The import root."""
        return self._functions

    def of(self, job: str | None = None) -> lambda_.Code:
        """The code with the package of a heavy job; without one: what the API and the light jobs share."""
        if job not in self._made:
            bundle = Bundle(self._target, job, self._functions)
            self._made[job] = lambda_.Code.from_asset(
                str(self._functions),
                asset_hash=bundle.fingerprint,
                asset_hash_type=cdk.AssetHashType.CUSTOM,
                bundling=cdk.BundlingOptions(
                    image=lambda_.Runtime.PYTHON_3_13.bundling_image,
                    local=_Local(bundle),
                ),
            )
        return self._made[job]
