"""`subscriptions/listen` for tasks: what is acknowledged, what is told and when, what it costs, and how it ends."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any, cast

import pytest

from taskrail.errors import StoreUnavailable
from taskrail.questions import form_question
from taskrail.settings import Settings, SettingsError
from taskrail.task import Progress, Status, Task
from taskrail.wire import listen
from taskrail.wire.app import App
from tests.unit.wire.stubs import NOW, SERVER, SETTINGS, TASKS, VERSION, Answer, Clock, Kit, Name, Runtime, event

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
UNKNOWN = "f" * 32


def held(**settings: Any) -> Kit:
    return Kit(**{"listen": "hold", **settings})


def hang(kit: Kit, owner: str = "anonymous", number: int | None = None) -> str:
    """A ticket that hangs on the rail; its id."""
    task_id = kit.rail.new_task_id() if number is None else f"{number:032x}"
    now = kit.clock.now()
    kit.rail.tasks[task_id] = Task(
        task_id, owner, "slow", "stub", now, now, 60_000, 60_000, 5_000, now, now + 60_000, progress=Progress(0)
    )
    return task_id


def later(kit: Kit, milliseconds: int, change: Callable[[], Any]) -> None:
    """Let something happen while the request sleeps."""
    due = [kit.clock.now() + milliseconds]

    def meanwhile() -> None:
        if due and kit.clock.now() >= due[0]:
            due.clear()
            change()

    kit.clock.meanwhile = meanwhile


def end(kit: Kit, task_id: str, result: Any = None, status: Status = Status.COMPLETED) -> None:
    kit.rail.results[task_id] = {"content": []} if result is None else result
    kit.rail.tasks[task_id] = kit.rail.tasks[task_id].ended(status, kit.clock.now(), message="Done.")


def tell(kit: Kit, task_id: str, done: int) -> None:
    kit.rail.tasks[task_id] = kit.rail.tasks[task_id].reported(Progress(done), None, kit.clock.now())


def ask(kit: Kit, task_id: str) -> None:
    question = form_question("who", "Who?", Name)
    task = kit.rail.tasks[task_id]
    kit.rail.tasks[task_id] = task.asked(
        {"who": question}, kit.clock.now(), answer_within_ms=9, budget_ms=9, hold=False
    )


def parsed(text: str) -> list[dict[str, Any]]:
    events = text.split("\n\n")
    assert events.pop() == ""
    assert all(one.startswith("data: ") and "\n" not in one for one in events)
    return [json.loads(one.removeprefix("data: ")) for one in events]


def listened(kit: Kit, *task_ids: str, request_id: Any = 7) -> list[dict[str, Any]]:
    """The messages of an answer in one piece: the acknowledged ids, what was told, and the end is checked."""
    answer = kit.request(
        "subscriptions/listen",
        {"notifications": {"taskIds": list(task_ids)}},
        capabilities=TASKS,
        request_id=request_id,
    )
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/event-stream")
    acknowledged, *told, ending = parsed(answer.text)
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert ending["id"] == request_id and ending["result"]["resultType"] == "complete"
    metas = [acknowledged["params"]["_meta"], *(one["params"]["_meta"] for one in told), ending["result"]["_meta"]]
    for meta in metas:
        assert meta[SUBSCRIPTION] == request_id and type(meta[SUBSCRIPTION]) is type(request_id)
    assert all(one["method"] == "notifications/tasks" and "resultType" not in one["params"] for one in told)
    return [acknowledged["params"]["notifications"], *(one["params"] for one in told)]


# --- what is acknowledged


def test_only_what_the_caller_owns_and_what_is_there_is_acknowledged() -> None:
    kit = held()
    first, foreign, second = hang(kit), hang(kit, owner="somebody else"), hang(kit)
    assert listened(kit, second, UNKNOWN, first, foreign, "no id", second) == [{"taskIds": [second, first]}]


def test_unknown_foreign_and_malformed_ids_are_told_apart_by_nothing() -> None:
    answers = set()
    for wanted in ("x", UNKNOWN, "foreign", "../" * 3):
        kit = held()
        task_id = hang(kit, owner="somebody else") if wanted == "foreign" else wanted
        answer = kit.request("subscriptions/listen", {"notifications": {"taskIds": [task_id]}}, capabilities=TASKS)
        answers.add((answer.status, answer.text, tuple(kit.clock.slept)))
        assert parsed(answer.text)[0]["params"]["notifications"] == {}
    assert len(answers) == 1


def test_off_asks_neither_the_table_nor_who_is_calling() -> None:
    kit = Kit()
    kit.app._identify = None  # type: ignore[assignment]
    assert listened(kit, hang(kit)) == [{}]
    assert kit.rail.looks == []


def test_a_filter_without_tasks_needs_no_caller_and_no_time() -> None:
    kit = held()
    kit.app._identify = None  # type: ignore[assignment]
    answer = kit.request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    assert parsed(answer.text)[0]["params"]["notifications"] == {}
    assert (kit.rail.looks, kit.clock.slept) == ([], [])


def test_more_tasks_than_one_request_may_name() -> None:
    kit = held()
    for count, code in ((listen.MOST_TASKS, None), (listen.MOST_TASKS + 1, -32602)):
        params = {"notifications": {"taskIds": [f"{n:032x}" for n in range(count)]}}
        answer = kit.request("subscriptions/listen", params, capabilities=TASKS)
        assert (answer.status, code) == (200, None) or (answer.status, answer.code) == (400, code)


@pytest.mark.parametrize("mode", ["off", "hold", "stream"])
def test_without_the_extension_nothing_is_read(mode: str) -> None:
    kit = Kit(listen=mode)
    answer = kit.request("subscriptions/listen", {"notifications": {"taskIds": [hang(kit)]}})
    assert (answer.code, kit.rail.looks) == (-32021, [])


# --- a held answer


@pytest.mark.parametrize("request_id", [0, 7, "seven"])
def test_a_held_answer_ends_at_the_first_change(request_id: Any) -> None:
    kit = held()
    quiet, task_id = hang(kit), hang(kit)
    later(kit, 2_000, lambda: end(kit, task_id))
    acknowledged, told = listened(kit, quiet, task_id, request_id=request_id)
    assert acknowledged == {"taskIds": [quiet, task_id]}
    got = kit.request("tasks/get", {"taskId": task_id}, capabilities=TASKS).result
    for fields in (told, got):
        del fields["_meta"]
    assert got.pop("resultType") == "complete"
    assert told == got and told["status"] == "completed"
    assert sum(kit.clock.slept) <= 2_500


def test_what_changes_at_once_is_told_together_and_progress_travels() -> None:
    kit = held()
    first, second = hang(kit), hang(kit)

    def both() -> None:
        tell(kit, first, 3)
        ask(kit, second)

    later(kit, 900, both)
    _, one, other = listened(kit, first, second)
    assert one["_meta"] == {"io.taskrail/progress": {"done": 3}, SUBSCRIPTION: 7}
    assert other["inputRequests"].keys() == {"who"}


def test_what_only_the_kit_sees_is_no_change() -> None:
    kit = held()
    task_id = hang(kit)

    def claim() -> None:
        kit.rail.tasks[task_id] = replace(kit.rail.tasks[task_id], attempt=1, rev=9, nonce="x", probed_at=5)

    later(kit, 900, claim)
    assert listened(kit, task_id) == [{"taskIds": [task_id]}]


def test_an_end_that_came_before_is_told_at_once() -> None:
    kit = held()
    working, task_id = hang(kit), hang(kit)
    end(kit, task_id)
    assert [told["taskId"] for told in listened(kit, working, task_id)[1:]] == [task_id]
    assert kit.clock.slept == []


def test_a_question_that_is_open_is_told_but_ends_nothing() -> None:
    """Whoever waits for a person would otherwise come back at once, again and again."""
    kit = held()
    task_id = hang(kit)
    ask(kit, task_id)
    assert [told["status"] for told in listened(kit, task_id)[1:]] == ["input_required"]
    assert sum(kit.clock.slept) == 15_000


def test_looks_are_rare_and_rarer() -> None:
    kit = held(listen_seconds=60, wait_budget_ms=25_000)
    task_id = hang(kit)
    listened(kit, task_id)
    slept = kit.clock.slept
    assert sum(slept) == 25_000
    assert slept[0] >= 1_000 and slept[:-1] == sorted(slept[:-1]) and max(slept) <= 5_000
    assert len(kit.rail.looks) == len(slept) + 1 <= 9


@pytest.mark.parametrize(
    ("settings", "left", "held_ms"),
    [
        ({"listen_seconds": 5}, None, 5_000),
        ({"listen_seconds": 60, "wait_budget_ms": 8_000}, None, 8_000),
        ({"listen_seconds": 60}, 6_000, 4_000),
        ({"listen_seconds": 60}, 1_000, 0),
    ],
)
def test_it_holds_no_longer_than_there_is_time(settings: dict[str, Any], left: int | None, held_ms: int) -> None:
    kit = held(**settings)
    kit.remaining_ms = None if left is None else lambda: left
    assert listened(kit, task_id := hang(kit)) == [{"taskIds": [task_id]}]
    assert sum(kit.clock.slept) == held_ms


def test_the_engine_is_asked_as_often_as_polls_would() -> None:
    kit = held(listen_seconds=25, wait_budget_ms=25_000)
    task_id = hang(kit)
    listened(kit, task_id)
    moments = [NOW]
    for pause in kit.clock.slept:
        moments.append(moments[-1] + pause)
    asked = [moment for moment, (_, repair) in zip(moments, kit.rail.looks, strict=True) if repair]
    assert asked[0] == NOW and 3 <= len(asked) <= 6
    assert all(later - before >= 5_000 for before, later in pairwise(asked))


def test_an_engine_that_answers_slowly_is_not_asked_past_the_time() -> None:
    kit = held()
    kit.rail.repair_ms = 4_000
    task_ids = [hang(kit) for _ in range(10)]
    assert listened(kit, *task_ids) == [{"taskIds": task_ids}]
    assert [len(repaired) for _, repaired in kit.rail.looks] == [4]
    assert kit.clock.now() - NOW == 16_000


def test_a_task_that_is_gone_is_listened_to_no_more() -> None:
    kit = held()
    task_id = hang(kit)
    later(kit, 900, lambda: kit.rail.tasks.clear())
    assert listened(kit, task_id) == [{"taskIds": [task_id]}]
    assert sum(kit.clock.slept) < 2_000


def test_a_table_that_is_away_for_a_while_is_ridden_out() -> None:
    kit = held()
    task_id = hang(kit)
    later(kit, 900, lambda: (setattr(kit.rail, "broken", 1), end(kit, task_id)))
    assert [told["status"] for told in listened(kit, task_id)[1:]] == ["completed"]
    kit.rail.broken = 1
    answer = kit.request("subscriptions/listen", {"notifications": {"taskIds": [task_id]}}, capabilities=TASKS)
    assert (answer.status, answer.code) == (500, -32603)


def test_a_result_that_cannot_be_read_is_told_when_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    kit = held()
    task_id = hang(kit)
    later(kit, 900, lambda: end(kit, task_id))
    detail, failures = kit.rail.detail, [1]

    def failing(task: Task) -> dict[str, Any]:
        if failures:
            failures.clear()
            raise StoreUnavailable("the bucket is away")
        return detail(task)

    monkeypatch.setattr(kit.rail, "detail", failing)
    assert [told["status"] for told in listened(kit, task_id)[1:]] == ["completed"]


def test_more_results_than_one_answer_carries_are_left_to_polls() -> None:
    kit = held()
    large = {"content": [{"type": "text", "text": "x" * 3_000_000}]}
    task_ids = [hang(kit) for _ in range(3)]
    for task_id, result in zip(task_ids, (large, large, None), strict=True):
        end(kit, task_id, result)
    assert [told["taskId"] for told in listened(kit, *task_ids)[1:]] == [task_ids[0], task_ids[2]]


def test_an_error_of_a_code_that_may_not_be_sent_is_sent_as_tasks_get_sends_it() -> None:
    kit = held()
    task_id = hang(kit)
    end(kit, task_id, {"code": -32099, "message": "No."}, Status.FAILED)
    assert listened(kit, task_id)[1]["error"]["code"] == -32603


# --- a stream


class Streaming:
    """An app whose door can stream, and one stream of it."""

    def __init__(self, **settings: Any) -> None:
        self.kit = Kit()
        self.clock = self.kit.clock = Clock()
        self.kit.rail.clock = self.clock
        runtime = Runtime(
            SERVER,
            self.kit.rail,
            replace(SETTINGS, **{"listen": "stream", "listen_seconds": 600, **settings}),
            self.clock,
        )
        self.kit.app = App(cast("Any", runtime), streams=True)

    def open(self, *task_ids: str) -> Iterator[str]:
        """The parts of the answer, as they come."""
        meta = {
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientCapabilities": TASKS,
        }
        params = {"notifications": {"taskIds": list(task_ids)}, "_meta": meta}
        body = {"jsonrpc": "2.0", "id": "s", "method": "subscriptions/listen", "params": params}
        headers = {"mcp-protocol-version": VERSION, "mcp-method": "subscriptions/listen"}
        response = self.kit.app.handle(event(json.dumps(body), headers))
        assert (response["statusCode"], response["headers"]["Content-Type"]) == (200, "text/event-stream")
        assert response["headers"]["X-Accel-Buffering"] == "no"
        assert not isinstance(response["body"], str)
        return cast("Iterator[str]", response["body"])


def test_a_stream_tells_each_change_as_it_comes_and_ends_with_the_last_task() -> None:
    streaming = Streaming()
    kit = streaming.kit
    first, second = hang(kit), hang(kit)
    parts = streaming.open(first, second)
    (acknowledged,) = parsed(next(parts))
    assert acknowledged["params"] == {"_meta": {SUBSCRIPTION: "s"}, "notifications": {"taskIds": [first, second]}}
    assert kit.clock.slept == [], "the acknowledgement waited for something"
    seen = []
    for change in (
        lambda: tell(kit, first, 1),
        lambda: end(kit, first),
        lambda: ask(kit, second),
        lambda: end(kit, second),
    ):
        change()
        part = next(part for part in parts if part)
        (told,) = parsed(part)
        seen.append((told["params"]["taskId"], told["params"]["status"]))
    assert seen == [(first, "working"), (first, "completed"), (second, "input_required"), (second, "completed")]
    (ending,) = parsed("".join(parts))
    assert ending["id"] == "s" and ending["result"]["_meta"][SUBSCRIPTION] == "s"


def test_a_quiet_stream_is_kept_alive_and_ends_when_its_time_is_over() -> None:
    streaming = Streaming(listen_seconds=50)
    parts = list(streaming.open(hang(streaming.kit)))
    assert parts[0].startswith("data: ") and parts[-1].startswith("data: ")
    assert [part for part in parts[1:-1] if part] == [": nothing new\n\n"] * 3
    assert sum(streaming.clock.slept) == 50_000
    assert max(streaming.clock.slept) <= 1_000


def test_whoever_sends_it_can_look_for_the_client_at_every_look() -> None:
    streaming = Streaming()
    parts = streaming.open(hang(streaming.kit))
    next(parts)
    assert [next(parts) for _ in range(3)] == ["", "", ""]


def test_a_stream_that_breaks_off_says_so_and_tells_nothing_more(caplog: pytest.LogCaptureFixture) -> None:
    streaming = Streaming()
    task_id = hang(streaming.kit)
    parts = streaming.open(task_id)
    next(parts)
    streaming.kit.rail.tasks[task_id] = cast("Task", "a secret")
    (ending,) = parsed("".join(parts))
    assert ending == {"jsonrpc": "2.0", "id": "s", "error": {"code": -32603, "message": "Internal error."}}
    assert "Traceback" in caplog.text


def test_a_door_that_cannot_stream_holds() -> None:
    kit = Kit(listen="stream")
    task_id = hang(kit)
    later(kit, 900, lambda: end(kit, task_id))
    assert [told["status"] for told in listened(kit, task_id)[1:]] == ["completed"]


def test_nothing_to_stream_is_answered_whole() -> None:
    streaming = Streaming()
    answer = streaming.kit.request(
        "subscriptions/listen", {"notifications": {"taskIds": [UNKNOWN]}}, capabilities=TASKS
    )
    assert isinstance(answer, Answer) and len(parsed(answer.text)) == 2


# --- its settings


def test_the_environment_says_how_to_listen() -> None:
    base = {"TASKRAIL_TABLE": "t", "TASKRAIL_BUCKET": "b", "TASKRAIL_SECRET": "0123456789abcdef"}
    bare = Settings.from_environment(base)
    assert (bare.listen, bare.listen_seconds, bare.experimental_tasks) == ("off", 15, False)
    more = {"TASKRAIL_LISTEN": "hold", "TASKRAIL_LISTEN_SECONDS": "9", "TASKRAIL_EXPERIMENTAL_TASKS": "true"}
    told = Settings.from_environment({**base, **more})
    assert (told.listen, told.listen_seconds, told.experimental_tasks) == ("hold", 9, True)
    for wrong in ({"TASKRAIL_LISTEN": "on"}, {"TASKRAIL_EXPERIMENTAL_TASKS": "yes"}, {"TASKRAIL_LISTEN_SECONDS": "0"}):
        with pytest.raises(SettingsError, match=next(iter(wrong))):
            Settings.from_environment({**base, **wrong})
