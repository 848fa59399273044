"""How a function's asynchronous invocations are tried again, and who is told of one that is given up."""

from __future__ import annotations

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.function import KitFunction


class Invocations(Construct):
    """The settings of Lambda's queue before a function.

    Parameters
    ----------
    of
        The function. Its role has to reach `given_up_to`: Lambda sends the record with its rights (Lambda Developer
        Guide, "Capturing records of Lambda asynchronous invocations").
    retries
        How often an invocation is tried again whose function failed, 0 to 2.
    seconds
        How old an invocation may become in the queue, 60 to 21600.
    given_up_to
        ARN of the function or the queue that gets a record of what is given up.
    """

    def __init__(
        self, scope: Construct, name: str, *, of: KitFunction, retries: int, seconds: int, given_up_to: str
    ) -> None:
        super().__init__(scope, name)
        given_up = lambda_.CfnEventInvokeConfig.OnFailureProperty(destination=given_up_to)
        settings = lambda_.CfnEventInvokeConfig(
            self,
            "Settings",
            function_name=of.function.function_name,
            qualifier="$LATEST",
            maximum_retry_attempts=retries,
            maximum_event_age_in_seconds=seconds,
            destination_config=lambda_.CfnEventInvokeConfig.DestinationConfigProperty(on_failure=given_up),
        )
        # They are refused while the role may not reach the destination yet.
        settings.node.add_dependency(of.role)
