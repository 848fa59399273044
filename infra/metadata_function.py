"""The well-known document of an HTTP API, which cannot answer by itself."""

from __future__ import annotations

import aws_cdk as cdk
from constructs import Construct

from infra.edge import metadata
from infra.foundation import Foundation
from infra.function import KitFunction


class MetadataFunction(Construct):
    """Answers with a text that was made at the deployment; it may do nothing but log.

    Parameters
    ----------
    foundation
        Its code.
    url
        The API's address.
    """

    def __init__(self, scope: Construct, name: str, *, foundation: Foundation, url: str) -> None:
        super().__init__(scope, name)
        made = KitFunction(
            self,
            "Document",
            configuration=foundation.configuration,
            code=foundation.codes.of(),
            handler="handlers.metadata.handler",
            description="OAuth protected resource metadata",
            timeout_seconds=10,
            memory_mb=256,
            environment={"RESOURCE_METADATA": metadata(foundation.configuration, url, cdk.Stack.of(self))},
        )
        self.function = made.function
