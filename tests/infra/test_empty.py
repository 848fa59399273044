"""Before a stack is deleted, the buckets that go with it are emptied; those that stay are not touched."""

from __future__ import annotations

import json
from typing import Any

import boto3
import pytest
from moto import mock_aws

from infra.empty import empty


@pytest.mark.parametrize(("policy", "left"), [("Delete", 0), ("Retain", 3)])
def test_only_a_bucket_that_goes_with_its_stack_is_emptied(policy: str, left: int) -> None:
    template = {"Resources": {"Payloads": {"Type": "AWS::S3::Bucket", "DeletionPolicy": policy}}}
    with mock_aws():

        def client(service: str) -> Any:
            return boto3.client(service, region_name="us-east-1")  # type: ignore[call-overload]

        client("cloudformation").create_stack(StackName="taskrail", TemplateBody=json.dumps(template))
        s3 = client("s3")
        (bucket,) = (each["Name"] for each in s3.list_buckets()["Buckets"])
        for number in range(3):
            s3.put_object(Bucket=bucket, Key=f"tasks/{number}", Body=b"x")
        assert empty("taskrail", client) == 3 - left
        assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == left
