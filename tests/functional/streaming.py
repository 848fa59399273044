"""A process whose job attaches a large file; it tells how much memory that took.

`python -m tests.functional.streaming ENDPOINT NAME path|stream FILE`, with moto at the endpoint.
"""

from __future__ import annotations

import filecmp
import json
import sys
import tempfile
import tracemalloc
from pathlib import Path

from taskrail import StepFunctions, TaskContext, TaskServer, Toolset
from taskrail.runtime import build, client
from taskrail.settings import Settings
from taskrail.testing import CountingIds, Kit, QueueEngine, StandingClock

tools = Toolset()


@tools.task(runs_on=StepFunctions())
def attach_path(task: TaskContext, where: str) -> str:
    """Attach a file of this machine."""
    task.attach("large.bin", Path(where))
    return "done"


@tools.task(runs_on=StepFunctions())
def attach_stream(task: TaskContext, where: str) -> str:
    """Attach a document that the caller handed in, as it comes."""
    task.attach("large.bin", task.open_input(where))
    return "done"


def main(endpoint: str, name: str, source: str, file: str) -> None:
    """Run the job once with a small file, so that everything is loaded, and once with the large one."""
    dynamodb, s3 = client("dynamodb", endpoint_url=endpoint), client("s3", endpoint_url=endpoint)
    dynamodb.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
    engine, clock = QueueEngine(), StandingClock()
    runtime = build(
        TaskServer("streaming", version="1", tools=[tools]),
        Settings(table=name, bucket=name, secret="a secret for tests only"),
        dynamodb=dynamodb,
        s3=lambda: s3,
        engines={"step_functions": engine},
        clock=clock,
        ids=CountingIds(),
    )
    kit = Kit(runtime, engine, clock, dynamodb, s3)
    with tempfile.NamedTemporaryFile() as small:
        small.write(b"x" * 12_000_000)
        small.flush()
        for path in (small.name, file):
            where = path
            if source == "stream":
                s3.upload_file(path, name, "inputs/anonymous/large.bin")
                where = f"s3://{name}/inputs/anonymous/large.bin"
            tracemalloc.start()
            task = kit.call(f"attach_{source}", where=where).run()
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
    stored = s3.list_objects_v2(Bucket=name, Prefix=f"tasks/{task.task_id}/")["Contents"]
    with tempfile.NamedTemporaryFile() as copy:
        s3.download_fileobj(name, stored[0]["Key"], copy)
        copy.flush()
        same = filecmp.cmp(copy.name, file, shallow=False)
    print(json.dumps({"status": task.status, "peak": peak, "stored": stored[0]["Size"], "same": same}))


if __name__ == "__main__":
    main(*sys.argv[1:])
