"""Loads one bundle in a fresh interpreter and measures it; run by path, isolated, with nothing but the bundle.

``probe.py cold ORDER`` answers one event and tells what that took since the process began.
``probe.py record ORDER`` answers one event and tells which item it put into the table.
``probe.py warm ORDER`` takes lines from standard input, each an operation and a count, and tells the CPU time.

An order is a file of JSON: ``path``, ``environment``, ``module``, ``event``, ``answers`` (of AWS, by target).
Only modules that Lambda's own runtime has loaded before a handler is imported are used up to the measurement.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def main() -> None:
    """Do what the command line says."""
    begun = time.process_time()
    # What handlers print goes where their logs go; the measurements have a way of their own.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    mode, file = sys.argv[1:3]
    with open(file, encoding="utf-8") as source:
        order = json.load(source)
    os.environ.update(order["environment"])
    sys.path[:0] = order["path"]
    if mode == "cold":
        cold(order, begun, out)
    elif mode == "record":
        record(order, out)
    else:
        warm(order, out)
    out.flush()


def cold(order: Any, begun: float, out: Any) -> None:
    """Load the handler, build the DynamoDB client if it has none yet, answer, and tell the times."""
    before = time.process_time()
    handler = load(order)
    if order.get("client") and "botocore.client" not in sys.modules:
        importlib.import_module("taskrail.runtime").client("dynamodb")
    loaded, modules = time.process_time(), len(sys.modules)
    answer, calls = None, []
    if order.get("event") is not None:
        if order["answers"]:
            below_botocore(order["answers"], lambda target, body: calls.append(target))
        answer = handler(order["event"], None)
    answered, at = time.process_time(), time.monotonic()
    told = {
        "start": begun,
        "load": loaded - before,
        "loaded_modules": modules,
        "cpu": answered,
        "at": at,
        "modules": len(sys.modules),
        "peak_kb": peak_kb(),
        "answer": answer,
        "calls": calls,
    }
    out.write(json.dumps(told))


def record(order: Any, out: Any) -> None:
    """Answer one event with AWS listening in; tell the item that was put, and the answer."""
    handler = load(order)
    heard: dict[str, Any] = {}
    below_botocore(order["answers"], heard.__setitem__)
    answer = handler(order["event"], None)
    put = json.loads(heard["DynamoDB.PutItem"])
    out.write(json.dumps({"item": put["Item"], "answer": answer}))


def warm(order: Any, out: Any) -> None:
    """Answer events over and over, as often as a line says."""
    handler = load(order)
    below_botocore({})
    client: Any = importlib.import_module("botocore.client").BaseClient
    session: Any = importlib.import_module("botocore.httpsession").URLLib3Session
    beneath, whole = session.send, client._make_api_call
    for line in sys.stdin:
        operation, count, outside = json.loads(line)
        event, answers = order["events"][operation], order["answers"][operation]
        session.send, client._make_api_call = beneath, whole
        if outside:
            parsed = {target.partition(".")[2]: json.loads(body) for target, body in answers.items()}
            client._make_api_call = lambda mine, name, given, parsed=parsed: parsed[name]
        else:
            below_botocore(answers)
        answer = handler(event, None)
        begun, wall = time.process_time(), time.perf_counter()
        for _ in range(count):
            handler(event, None)
        cpu, wall = time.process_time() - begun, time.perf_counter() - wall
        out.write(json.dumps({"cpu": cpu / count, "wall": wall / count, "answer": answer}) + "\n")
        out.flush()


def load(order: Any) -> Any:
    """The handler, or nothing where only the interpreter counts."""
    if order["module"] is None:
        return None
    return importlib.import_module(order["module"]).handler


def below_botocore(answers: Any, heard: Any = None) -> None:
    """Let AWS give constant answers from beneath botocore, which builds, signs, sends and parses as ever.

    `heard` is told of every call: its target and its body. What comes back is read through the interface of urllib3's
    responses; connections and TLS are what is left out.
    """
    response: Any = importlib.import_module("botocore.awsrequest").AWSResponse
    sessions: Any = importlib.import_module("botocore.httpsession").URLLib3Session

    class Raw:
        def __init__(self, body: bytes) -> None:
            self._body = body

        def stream(self, *_: Any, **__: Any) -> Any:
            yield self._body

    encoded = {target: body.encode() for target, body in answers.items()}

    def send(session: Any, request: Any) -> Any:
        target = request.headers["X-Amz-Target"]
        target = (target.decode() if isinstance(target, bytes) else target).partition(".")
        target = f"{target[0].partition('_')[0]}.{target[2]}"
        if heard is not None:
            heard(target, request.body)
        headers = {"content-type": "application/x-amz-json-1.0", "x-amzn-requestid": "0123456789"}
        return response(request.url, 200, headers, Raw(encoded[target]))

    sessions.send = send


def peak_kb() -> int:
    """The most memory that this process had, in KiB.

    Linux counts the parent's memory into what `getrusage` says of a child, hence /proc where there is one.
    """
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
    except OSError:
        import resource

        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most // 1024 if sys.platform == "darwin" else most


if __name__ == "__main__":
    main()
