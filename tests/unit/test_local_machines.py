"""What becomes of a workflow's declaration on this machine, and the process that has its functions."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local.functions import LARGEST, Functions
from local.machines import Registry, Unusable, filled, function_arn, function_of, machine_of, workflows_of
from taskrail import ToolError
from taskrail.work import ExistingStateMachine, Workflow

ARN = "arn:aws:states:eu-central-1:123456789012:stateMachine:reports"


@pytest.fixture
def definition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that is found where a definition is looked for."""
    monkeypatch.syspath_prepend(str(tmp_path))
    path = tmp_path / "workflows" / "made_up.asl.json"
    path.parent.mkdir()
    return path


def workflow(**functions: str) -> Workflow:
    return Workflow("workflows/made_up.asl.json", functions)


def test_the_functions_arns_are_filled_in_and_nothing_else(definition: Path) -> None:
    definition.write_text('{"a": "${plan}", "b": "${report}", "c.$": "$.x", "d": "$$.Task.Token", "e": "{% $x %}"}')
    machine = machine_of("made_up", workflow(plan="json.loads"))
    assert json.loads(machine.definition) == {
        "a": function_arn("made_up-plan"),
        "b": function_arn("report"),
        "c.$": "$.x",
        "d": "$$.Task.Token",
        "e": "{% $x %}",
    }
    assert (machine.name, machine.functions) == ("made_up", {"made_up-plan": "json.loads"})


@pytest.mark.parametrize("tool", ["with.a.dot", "x" * 128])
def test_any_tool_has_a_name_for_its_state_machine(definition: Path, tool: str) -> None:
    definition.write_text("{}")
    name = machine_of(tool, workflow()).name
    assert len(name) <= 80 and name.replace("-", "").replace("_", "").isalnum()
    assert name != machine_of(f"{tool[:-1]}y", workflow()).name


def test_what_cannot_be_used_is_told(definition: Path) -> None:
    with pytest.raises(Unusable, match=r"made_up: there is no file workflows/made_up\.asl\.json below functions/"):
        machine_of("made_up", workflow())
    definition.write_text('{"a": "${plan}"}')
    with pytest.raises(Unusable, match=r"names \$\{plan\}, which functions= lacks"):
        machine_of("made_up", workflow())
    definition.write_text("{")
    with pytest.raises(Unusable, match="is no JSON"):
        machine_of("made_up", workflow())
    with pytest.raises(Unusable, match=r"in AWS \(existing=\.\.\.\)"):
        machine_of("made_up", Workflow(existing=ExistingStateMachine(arn=ARN)))


def test_a_function_that_is_not_there_is_told(definition: Path) -> None:
    with pytest.raises(Unusable, match=r"there is no function json\.no_such_function"):
        function_of("json.no_such_function")
    with pytest.raises(Unusable, match=r"no_such_module cannot be imported for no_such_module\.plan"):
        function_of("no_such_module.plan")
    (definition.parents[1] / "broken_module_of_a_test.py").write_text("1 / 0")
    with pytest.raises(Unusable, match="ZeroDivisionError"):
        function_of("broken_module_of_a_test.plan")


def test_a_registry_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    path = tmp_path / "machines.json"
    assert Registry.load(path) is None
    registry = Registry({"a": ARN}, {"b": "why"})
    registry.save(path)
    assert Registry.load(path) == registry


def test_substitutions_are_for_names_only() -> None:
    assert filled("${a} $a ${1} $${b", {"a": "x"}) == "x $a ${1} $${b"


def test_only_workflows_have_machines() -> None:
    assert workflows_of([]) == {}


def shout(event: Any, context: Any) -> Any:
    if event == "refuse":
        raise ToolError("no")
    if event == "fail":
        raise ValueError("a fault")
    if event == "odd":
        return object()
    return {"got": event, "left": context.get_remaining_time_in_millis() > 0}


@pytest.fixture
def served() -> Iterator[Functions]:
    server = Functions(socket.create_server(("127.0.0.1", 0)), {"shout": shout})
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def post(server: Functions, name: str, body: bytes, **headers: str) -> tuple[int, str | None, Any]:
    connection = http.client.HTTPConnection(server.host, timeout=10)
    connection.request("POST", f"/2015-03-31/functions/{name}/invocations", body, headers)
    answer = connection.getresponse()
    told = answer.status, answer.headers.get("X-Amz-Function-Error"), json.loads(answer.read())
    connection.close()
    return told


@pytest.mark.parametrize("name", ["shout", function_arn("shout")])
def test_a_function_is_invoked_by_name_or_arn(served: Functions, name: str) -> None:
    assert post(served, name, b'"hello"') == (200, None, {"got": "hello", "left": True})


@pytest.mark.parametrize(
    ("event", "error", "message"), [("refuse", "ToolError", "no"), ("fail", "ValueError", "a fault")]
)
def test_what_a_function_raises_is_an_error_of_its_state(
    served: Functions, event: str, error: str, message: str
) -> None:
    status, failed, told = post(served, "shout", json.dumps(event).encode())
    assert (status, failed) == (200, "Unhandled")
    assert told == {"errorMessage": message, "errorType": error, "stackTrace": []}


def test_what_json_cannot_carry_is_an_error_too(served: Functions) -> None:
    assert post(served, "shout", b'"odd"')[1:] == (
        "Unhandled",
        {"errorMessage": "Object of type object is not JSON serializable", "errorType": "TypeError", "stackTrace": []},
    )


def test_what_is_no_invocation_is_refused(served: Functions) -> None:
    assert post(served, "nobody", b"{}")[0] == 404
    assert post(served, "shout", b"{}", Origin="http://127.0.0.1")[0] == 403
    assert post(served, "shout", b"{}", Host="evil.example.com")[0] == 403
    connection = http.client.HTTPConnection(served.host, timeout=10)
    connection.putrequest("POST", "/2015-03-31/functions/shout/invocations")
    connection.putheader("Content-Length", str(LARGEST + 1))
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()
