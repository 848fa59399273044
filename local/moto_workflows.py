"""What moto's interpreter of state machines needs before it can stand in for Step Functions.

Private seams, as in `local.moto_patches`, of the same one version. What moto still does in another way than
Step Functions: it limits neither names nor sizes, publishes no event but the end of an execution, and of the service
integrations it has those that moto itself serves, without ``batch:submitJob`` and ``states:startExecution``.
"""

from __future__ import annotations

import datetime
import hashlib
import importlib
import io
import json
import logging
import re
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from types import ModuleType
from typing import Any

from local.moto_patches import check

LARGEST_OUTPUT = 200_000
"""Characters of an output that an event carries; EventBridge leaves larger ones out."""

STOPPED_WITHIN = 2.0
"""Seconds that an execution may take to come far enough for being stopped."""
_LOOKS = 100

# Keys and numbers only: no wildcard, slice, filter or descent.
_BEHIND_AN_INDEX = re.compile(r"\$(\.\w+|\[\d+\])*\[\d+\](\.\w+)+")

_PARSER = "moto.stepfunctions.parser"

log = logging.getLogger("taskrail.local")

Told = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Invoked:
    """What a function answered.

    Parameters
    ----------
    payload
        JSON: what it returned, or the error that it raised.
    failed
        Whether it raised.
    """

    payload: bytes
    failed: bool = False


class Uninvoked(Exception):
    """A function could not be invoked.

    Parameters
    ----------
    code
        As the Lambda API names it.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


Invoke = Callable[[str, bytes], Invoked]


def apply(invoke: Invoke, ended: Told) -> None:
    """Load the interpreter, which takes about a second, and patch it in this process.

    Parameters
    ----------
    invoke
        Invokes the function of a name or ARN with a payload; raises `Uninvoked`.
    ended
        Takes the ``detail`` of a status change event for each execution that ends.

    Raises
    ------
    WrongMoto
        Another version is installed.
    """
    check()
    with _without_compute():
        _module("moto.stepfunctions.parser.models")
    # It logs every state that fails, with the values in it.
    logging.getLogger("moto.stepfunctions").setLevel(logging.CRITICAL)
    _jsonata()
    _paths()
    _functions_of_our_own(invoke)
    _errors_have_names()
    _one_start_at_a_time()
    _tokens_are_good_once()
    _a_token_for_each_try()
    _ends(ended)
    _module("moto.core.config").default_user_config["stepfunctions"] = {"execute_state_machine": True}


def _module(name: str) -> Any:
    """A module of moto's, or of what it needs: its private names are no part of any types."""
    return importlib.import_module(name)


@contextmanager
def _without_compute() -> Iterator[None]:
    """Batch jobs do not run here, but the import of their states brings all of moto's EC2: 100 MB and a second."""
    package, utils = ModuleType("moto.batch"), ModuleType("moto.batch.utils")
    # All that those states take from there.
    vars(utils)["JobStatus"] = Enum("JobStatus", ["SUCCEEDED", "FAILED"])
    stand_ins = {"moto.batch": package, "moto.batch.utils": utils}
    if any(name in sys.modules for name in stand_ins):
        yield
        return
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for name in stand_ins:
            del sys.modules[name]


def _jsonata() -> None:
    """moto calls a JSONata engine and ships none; it also writes variables into expressions without escaping texts."""
    jsonata, seam = _module("jsonata"), _module(f"{_PARSER}.asl.jsonata.jsonata")
    to_json_str = _module(f"{_PARSER}.asl.utils.encoding").to_json_str

    def digest(value: str, algorithm: str = "SHA-256") -> str:
        return hashlib.new(algorithm.replace("-", "").lower(), value.encode()).hexdigest()

    def evaluate(expression: str) -> Any:
        try:
            program = jsonata.Jsonata(expression)
            program.register_lambda("hash", digest)
            program.register_lambda("uuid", lambda: str(uuid.uuid4()))
            # Through text: the engine's own kinds of list and null become ordinary ones.
            return json.loads(json.dumps(program.evaluate(None)))
        except Exception as error:
            raise seam.JSONataException("States.QueryEvaluationError", str(error)) from error

    def declarations(bindings: dict[str, Any]) -> str:
        return "".join(f"{name}:={to_json_str(value, separators=(',', ':'))};" for name, value in bindings.items())

    seam._eval_jsonata = evaluate
    for name in ("states", "variable_store"):
        _module(f"{_PARSER}.asl.eval.{name}").encode_jsonata_variable_declarations = declarations
    # In their place moto puts functions that say that they are not supported.
    for name in ("$hash", "$uuid"):
        del _module(f"{_PARSER}.asl.component.intrinsic.jsonata")._DECLARATION_BY_VARIABLE_REFERENCE[name]


def _paths() -> None:
    """moto makes a list of what a path finds behind an index, as in ``$.rows[0].name``; Step Functions makes one
    only for paths that may find several things."""
    seam = _module(f"{_PARSER}.asl.utils.json_path")
    original = seam.extract_json

    def extract_json(path: str, data: Any) -> Any:
        if not _BEHIND_AN_INDEX.fullmatch(path):
            return original(path, data)
        found = seam.parse(path).find(data)
        return found[0].value if len(found) == 1 else original(path, data)

    for name, module in list(sys.modules.items()):
        if name.startswith(_PARSER) and getattr(module, "extract_json", None) is original:
            module.extract_json = extract_json  # type: ignore[attr-defined]


def _functions_of_our_own(invoke: Invoke) -> None:
    """moto runs functions in Docker, or echoes what they are sent: ours are in a process of their own."""
    from botocore.exceptions import ClientError

    class Functions:
        """The part of a Lambda client that the interpreter uses."""

        def invoke(self, FunctionName: str, Payload: bytes = b"{}", **_: Any) -> dict[str, Any]:
            try:
                answer = invoke(FunctionName, Payload)
            except Uninvoked as problem:
                status = 404 if problem.code == "ResourceNotFoundException" else 500
                raise ClientError(
                    {
                        "Error": {"Code": problem.code, "Message": str(problem)},
                        "ResponseMetadata": {
                            "HTTPStatusCode": status,
                            "RequestId": str(uuid.uuid4()),
                            "HostId": "",
                            "HTTPHeaders": {},
                            "RetryAttempts": 0,
                        },
                    },
                    "Invoke",
                ) from problem
            return {
                "StatusCode": 200,
                "ExecutedVersion": "$LATEST",
                "Payload": io.BytesIO(answer.payload),
                **({"FunctionError": "Unhandled"} if answer.failed else {}),
            }

    seam = _module(f"{_PARSER}.asl.component.state.exec.state_task.lambda_eval_utils")
    seam.boto_client_for = lambda **_: Functions()


def _errors_have_names() -> None:
    """moto gives the errors of its interpreter a code and sends another attribute, which they lack."""
    api = _module(f"{_PARSER}.api")
    for error in vars(api).values():
        if isinstance(error, type) and issubclass(error, api.ServiceException) and "code" in vars(error):
            error.TYPE, error.STATUS = error.code, 400  # type: ignore[attr-defined]


def _one_start_at_a_time() -> None:
    """moto looks for the name and then adds the execution: two requests could both add one."""
    backend = _module(f"{_PARSER}.models").StepFunctionsParserBackend
    lock = threading.Lock()
    original = backend.start_execution

    def start_execution(self: Any, *args: Any, **more: Any) -> Any:
        with lock:
            return original(self, *args, **more)

    backend.start_execution = start_execution


def _tokens_are_good_once() -> None:
    """moto takes a token again after it was used or its state has gone, and fails on executions that just begin."""
    api, callback = _module(f"{_PARSER}.api"), _module(f"{_PARSER}.asl.eval.callback.callback")
    responses = _module("moto.stepfunctions.responses")
    lock = threading.Lock()

    def settle(backend: Any, token: str, outcome: Any) -> None:
        with lock:
            for machine in list(backend.state_machines):
                for execution in list(machine.executions):
                    env = _environment(execution)
                    endpoint = None if env is None else env.callback_pool_manager.get(token)
                    if endpoint is None:
                        continue
                    if endpoint._notify_event.is_set() or endpoint.consumer_error is not None:
                        raise api.TaskTimedOut("The task of this token waits no more.")
                    endpoint.notify(outcome)
                    return
        raise api.TaskDoesNotExist("No task waits with this token.")

    def send_task_success(self: Any, task_token: str, outcome: str) -> None:
        settle(self, task_token, callback.CallbackOutcomeSuccess(task_token, outcome))

    def send_task_failure(self: Any) -> Any:
        # Here and not in the backend: what serves the request drops the cause.
        token = self._get_param("taskToken")
        error, cause = self._get_param("error"), self._get_param("cause")
        settle(self.stepfunction_backend, token, callback.CallbackOutcomeFailure(token, error, cause))
        return responses.EmptyResult()

    _module(f"{_PARSER}.models").StepFunctionsParserBackend.send_task_success = send_task_success
    responses.StepFunctionResponse.send_task_failure = send_task_failure


def _a_token_for_each_try() -> None:
    """moto makes a token when a state is entered, and none when it is retried."""
    state = _module(f"{_PARSER}.asl.component.state.exec.state_task.service.state_task_service_callback")
    waiting = _module(f"{_PARSER}.asl.component.state.exec.state_task.service.resource").ResourceCondition
    base = state.StateTaskServiceCallback
    original = base._evaluate_with_timeout

    def evaluate_with_timeout(self: Any, env: Any) -> None:
        context = env.states.context_object
        if self.resource.condition == waiting.WaitForTaskToken and context.context_object_data["State"]["RetryCount"]:
            env.callback_pool_manager.add(context.update_task_token())
        original(self, env)

    base._evaluate_with_timeout = evaluate_with_timeout


def _ends(ended: Told) -> None:
    """moto leaves an execution that waits for a token running when it is stopped, and tells nobody of any end."""
    status = _module(f"{_PARSER}.api").ExecutionStatus
    callback = _module(f"{_PARSER}.asl.eval.callback.callback")
    communication = _module(f"{_PARSER}.backend.execution").BaseExecutionWorkerCommunication
    worker = _module(f"{_PARSER}.backend.execution_worker").ExecutionWorker
    responses = _module("moto.stepfunctions.responses")
    lock = threading.Lock()
    reflect, run = communication._reflect_execution_status, worker._execution_logic

    def terminated(self: Any) -> None:
        with lock:
            if self.execution.exec_status is not status.RUNNING:
                # It was stopped, and its thread comes to an end only now.
                return
            reflect(self)
        ended(detail_of(self.execution))

    def execution_logic(self: Any) -> None:
        try:
            run(self)
        except Exception as error:
            # A fault of the interpreter: without this the execution would run for ever. Its words quote values.
            log.error("the interpreter of state machines failed (%s)", type(error).__name__)
            fail(self._execution_communication.execution)

    def fail(execution: Any) -> None:
        with lock:
            if execution.exec_status is not status.RUNNING:
                return
            execution.error, execution.cause = "States.Runtime", "The interpreter failed."
            execution.stop_date = _now()
            execution.exec_status = status.FAILED
        ended(detail_of(execution))

    def stop_execution(self: Any) -> Any:
        execution = self.stepfunction_backend.describe_execution(self._get_param("executionArn"))
        error, cause = self._get_param("error"), self._get_param("cause")
        pause = threading.Event()
        for _ in range(_LOOKS):
            if _environment(execution) is not None:
                break
            # It was started a moment ago.
            pause.wait(STOPPED_WITHIN / _LOOKS)
        env = _environment(execution)
        with lock:
            running = execution.exec_status is status.RUNNING
            if running:
                execution.error, execution.cause, execution.stop_date = error, cause, _now()
                execution.exec_status = status.ABORTED
        if running:
            if env is not None:
                env.set_stop(stop_date=execution.stop_date, error=error, cause=cause)
                for endpoint in list(env.callback_pool_manager._pool.values()):
                    endpoint.report(callback.CallbackConsumerTimeout())
                    endpoint.interrupt_all()
            ended(detail_of(execution))
        return responses.ActionResult({"stopDate": execution.stop_date})

    communication.terminated = terminated
    worker._execution_logic = execution_logic
    responses.StepFunctionResponse.stop_execution = stop_execution


def _environment(execution: Any) -> Any:
    """What an execution runs in; None while it is being started."""
    return None if execution.exec_worker is None else execution.exec_worker.env


def detail_of(execution: Any) -> dict[str, Any]:
    """The ``detail`` of the event that an execution of moto's has ended."""
    succeeded = execution.status == "SUCCEEDED"
    output = json.dumps(execution.output, separators=(",", ":")) if succeeded else None
    included = output is None or len(output) <= LARGEST_OUTPUT
    return {
        "executionArn": execution.exec_arn,
        "stateMachineArn": execution.state_machine.arn,
        "name": execution.name,
        "status": execution.status,
        "startDate": _milliseconds(execution.start_date),
        "stopDate": _milliseconds(execution.stop_date),
        "input": json.dumps(execution.input_data, separators=(",", ":")),
        "output": output if included else None,
        "inputDetails": {"included": True},
        "outputDetails": {"included": included} if succeeded else None,
        "error": execution.error,
        "cause": execution.cause,
    }


def _milliseconds(moment: datetime.datetime) -> int:
    return int(moment.timestamp() * 1000)


def _now() -> datetime.datetime:
    return datetime.datetime.now(tz=datetime.UTC)
