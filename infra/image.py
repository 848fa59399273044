"""The image of a job on Batch: given by its URI, or built from ``functions/`` by the deploying machine."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_ecr_assets as assets
from aws_cdk import aws_ecs as ecs
from constructs import Construct

from infra.bundling import CONSTRAINTS, ROOT, Bundle, Target
from infra.configuration import Configuration
from infra.plan import job_package
from taskrail.compute import Batch
from taskrail.tools import Tool

DOCKERFILE = Path(__file__).with_name("batch.Dockerfile")

_ECR = re.compile(r"(\d{12})\.dkr\.ecr\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?/([^:@]+)([:@].+)?")
_PLATFORMS = {"arm64": assets.Platform.LINUX_ARM64, "x86_64": assets.Platform.LINUX_AMD64}
_BOTO3 = re.compile(r"^boto(3|core)==\S+$", re.MULTILINE)


def image_of(scope: Construct, *, configuration: Configuration, tool: Tool, uri: str | None) -> ecs.ContainerImage:
    """A tool's image; whoever runs it may pull it from where it lies in ECR.

    Parameters
    ----------
    uri
        Of the image; None for building one, for which the deploying machine needs Docker, Finch or Podman.
    """
    if uri is not None:
        found = _ECR.fullmatch(uri)
        if found is not None:
            account, region, name, version = found.groups()
            arn = f"arn:{cdk.Stack.of(scope).partition}:ecr:{region}:{account}:repository/{name}"
            repository = ecr.Repository.from_repository_attributes(
                scope, "Repository", repository_arn=arn, repository_name=name
            )
            return ecs.ContainerImage.from_ecr_repository(repository, (version or ":latest")[1:])
        return ecs.ContainerImage.from_registry(uri)
    runs_on = tool.runs_on
    assert isinstance(runs_on, Batch)
    with tempfile.TemporaryDirectory() as folder:
        stage(Path(folder), Bundle(Target(configuration.python, runs_on.architecture), job_package(tool)))
        asset = assets.DockerImageAsset(
            scope,
            "Image",
            directory=folder,
            display_name=tool.name,
            platform=_PLATFORMS[runs_on.architecture],
            build_args={"PYTHON": configuration.python},
        )
    return ecs.ContainerImage.from_docker_image_asset(asset)


def stage(folder: Path, bundle: Bundle) -> None:
    """Lay out what the image is built from: our code, and the lists of what pip installs into it."""
    (folder / "functions").mkdir()
    bundle.copy_sources(folder / "functions")
    shutil.copy(DOCKERFILE, folder / "Dockerfile")
    # An image has no runtime that would bring boto3 along.
    pinned = [match[0] for match in _BOTO3.finditer((ROOT / "requirements" / "constraints.txt").read_text())]
    texts = [path.read_text() for path in bundle.requirements]
    (folder / "requirements.txt").write_text("\n".join([*texts, *pinned, ""]))
    shutil.copy(CONSTRAINTS, folder / "constraints.txt")
