"""A Python job on Step Functions: a state machine with one state, and the function that it invokes."""

from __future__ import annotations

import json

import aws_cdk as cdk
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra.foundation import Foundation
from infra.python_job import SPARE_SECONDS, PythonJob
from infra.state_machine import LoggedMachine
from taskrail.compute import STEP_FUNCTIONS_QUEUE_MS
from taskrail.tools import Tool

# Lambda's own errors: the function was not run, or nobody knows whether it was. The worker's claim tells attempts
# apart, so that a second one is safe. What the job itself raises never gets here.
_RETRIED = [
    "Lambda.ClientExecutionTimeoutException",
    "Lambda.ServiceException",
    "Lambda.AWSLambdaException",
    "Lambda.SdkClientException",
    "Lambda.TooManyRequestsException",
]


class JobMachine(Construct):
    """Runs one tool.

    Parameters
    ----------
    foundation
        What it works on.
    tool
        A Python job on Step Functions.
    """

    def __init__(self, scope: Construct, name: str, *, foundation: Foundation, tool: Tool) -> None:
        super().__init__(scope, name)
        self.job = PythonJob(self, "Job", foundation=foundation, tool=tool, handler="handlers.job_runner.handler")
        function = self.job.function.function_arn
        self.runs = LoggedMachine(
            self,
            "Runs",
            configuration=foundation.configuration,
            definition=sfn.DefinitionBody.from_string(
                _definition(tool.name, self.job.seconds, cdk.Stack.of(self).partition)
            ),
            substitutions={"function": function},
            invokes=[function],
        )


def _definition(tool: str, seconds: int, partition: str) -> str:
    payload = {"input.$": "$", "retryCount.$": "$$.State.RetryCount", "execution.$": "$$.Execution.Id"}
    retry = {
        "ErrorEquals": _RETRIED,
        "IntervalSeconds": 1,
        "MaxAttempts": 5,
        "BackoffRate": 2,
        "JitterStrategy": "FULL",
    }
    state = {
        "Type": "Task",
        "Resource": f"arn:{partition}:states:::lambda:invoke",
        "Parameters": {"FunctionName": "${function}", "Payload": payload},
        "OutputPath": "$.Payload",
        "TimeoutSeconds": seconds + SPARE_SECONDS,
        "Retry": [retry],
        "End": True,
    }
    return json.dumps(
        {
            "Comment": f"One execution is one run of {tool}",
            "StartAt": "Job",
            "TimeoutSeconds": seconds + STEP_FUNCTIONS_QUEUE_MS // 1000,
            "States": {"Job": state},
        }
    )
