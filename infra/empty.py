"""`python -m infra.empty STACK`: delete every object in the buckets that are to be deleted with a stack.

CloudFormation deletes no bucket that holds anything. A bucket that outlives its stack (`removal=retain`) is let alone:
the template that is deployed says which are which.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def empty(stack: str, client: Any) -> int:
    """How many objects were deleted.

    Parameters
    ----------
    stack
        Name of the stack.
    client
        Makes a boto3 client of a service.
    """
    formation, s3 = client("cloudformation"), client("s3")
    body = formation.get_template(StackName=stack)["TemplateBody"]
    declared = (json.loads(body) if isinstance(body, str) else body)["Resources"]
    deleted = 0
    for page in formation.get_paginator("list_stack_resources").paginate(StackName=stack):
        for resource in page["StackResourceSummaries"]:
            mortal = declared.get(resource["LogicalResourceId"], {}).get("DeletionPolicy") == "Delete"
            if resource["ResourceType"] == "AWS::S3::Bucket" and mortal:
                deleted += _empty_bucket(s3, resource["PhysicalResourceId"])
    return deleted


def _empty_bucket(s3: Any, bucket: str) -> int:
    deleted = 0
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        keys = [{"Key": item["Key"]} for item in page.get("Contents", ())]
        if keys:
            s3.delete_objects(Bucket=bucket, Delete={"Objects": keys, "Quiet": True})
            deleted += len(keys)
    return deleted


def main(arguments: list[str]) -> int:
    """Empty the buckets of the stack that is named."""
    import boto3

    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    print(f"{empty(arguments[0], boto3.client)} objects deleted")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
