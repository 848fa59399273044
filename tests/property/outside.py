"""The outside of one process, with trouble in it: the table, the bucket and the engine behind one counter.

Every call of the process is counted. A trouble that is planned for a call strikes there, whichever
outside thing the call goes to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from botocore.exceptions import ClientError, ReadTimeoutError

from taskrail.engines import RunReport, RunState, parse_run_name
from taskrail.errors import EngineUnavailable, StartRefused
from taskrail.testing import StandingClock


class Died(BaseException):
    """The process is gone. Nothing that it goes on to do has any effect."""


class Trouble(Enum):
    """What may befall a call."""

    DIES_BEFORE = "dies before"
    DIES_AFTER = "dies after"
    UNKNOWN_BEFORE = "no answer, no effect"
    UNKNOWN_AFTER = "no answer, but it took effect"
    REPEATED = "the SDK repeats it, since the first answer was lost"
    REFUSED = "the engine refuses (other calls: no answer, no effect)"


class Outside:
    """Where all calls of the process pass.

    Parameters
    ----------
    observe
        Called after every call that may have changed the table, with the key of the item.
    """

    def __init__(self, observe: Callable[[str], None]) -> None:
        self._observe = observe
        self._plan: Mapping[int, Trouble] = {}
        self._count = 0
        self._dead = False
        self.struck = False
        """Whether some trouble has come in this process."""

    def new_process(self, plan: Mapping[int, Trouble] | None = None) -> None:
        """A process begins, with the troubles that it will meet by number of the call, from 0."""
        self._plan, self._count, self._dead, self.struck = plan or {}, 0, False, False

    @property
    def calls(self) -> int:
        """How many calls the process has made."""
        return self._count

    def call(self, act: Callable[[], Any], unknown: Callable[[], Exception], key: str | None = None) -> Any:
        """Perform a call, or what is planned in its place."""
        if self._dead:
            raise Died
        trouble = self._plan.get(self._count)
        self._count += 1
        if trouble is not None:
            self.struck = True
        if trouble is Trouble.DIES_BEFORE:
            self._dead = True
            raise Died
        if trouble in (Trouble.UNKNOWN_BEFORE, Trouble.REFUSED):
            raise unknown()
        if trouble is Trouble.REPEATED:
            self._act(act, key, ignore=True)
        answer = self._act(act, key, ignore=trouble is not None and trouble is not Trouble.REPEATED)
        if trouble is Trouble.DIES_AFTER:
            self._dead = True
            raise Died
        if trouble is Trouble.UNKNOWN_AFTER:
            raise unknown()
        return answer

    def refuses(self) -> bool:
        """Whether the next call meets a refusal."""
        return not self._dead and self._plan.get(self._count) is Trouble.REFUSED

    def _act(self, act: Callable[[], Any], key: str | None, *, ignore: bool) -> Any:
        answer = None
        try:
            answer = act()
        except ClientError:
            if not ignore:
                raise
        if key is not None:
            self._observe(key)
        return answer


class TroubledTable:
    """A DynamoDB client, as far as the store uses it."""

    def __init__(self, outside: Outside, client: Any) -> None:
        self._outside = outside
        self._client = client

    def get_item(self, **parameters: Any) -> Any:
        """Read."""
        return self._outside.call(lambda: self._client.get_item(**parameters), _timeout)

    def put_item(self, **parameters: Any) -> Any:
        """Create."""
        return self._change(self._client.put_item, parameters, parameters["Item"]["pk"]["S"])

    def update_item(self, **parameters: Any) -> Any:
        """Change."""
        return self._change(self._client.update_item, parameters, parameters["Key"]["pk"]["S"])

    def delete_item(self, **parameters: Any) -> Any:
        """Take back."""
        return self._change(self._client.delete_item, parameters, parameters["Key"]["pk"]["S"])

    def _change(self, method: Callable[..., Any], parameters: dict[str, Any], key: str) -> Any:
        return self._outside.call(lambda: method(**parameters), _timeout, key)


class TroubledBucket:
    """An S3 client, as far as payloads use it, that never lets an object be overwritten."""

    def __init__(self, outside: Outside, client: Any) -> None:
        self._outside = outside
        self._client = client
        self._keys: set[str] = set()

    def put_object(self, **parameters: Any) -> Any:
        """Store an object; every key is new."""
        assert parameters["Key"] not in self._keys, "an object was overwritten"
        self._keys.add(parameters["Key"])
        return self._outside.call(lambda: self._client.put_object(**parameters), _timeout)

    def get_object(self, **parameters: Any) -> Any:
        """Read an object."""
        return self._outside.call(lambda: self._client.get_object(**parameters), _timeout)


class TroubledEngine:
    """An engine whose runs live until the test ends them, and whose answers lag after a start.

    Parameters
    ----------
    outside, clock
        Where its calls pass, and the time.
    check_start, check_stop
        Called with the name of a run when it is really started, or really stopped.
    """

    LAG_MS = 20_000
    """For how long after its start a run may still be unknown: longer than the first look of a repair takes."""

    def __init__(
        self,
        outside: Outside,
        clock: StandingClock,
        check_start: Callable[[str, int], None],
        check_stop: Callable[[str, int], None],
    ) -> None:
        self._outside = outside
        self._clock = clock
        self._check_start = check_start
        self._check_stop = check_stop
        self.lags = False
        self.runs: dict[str, RunReport] = {}
        self._started: dict[str, int] = {}
        self._lagging: dict[str, int] = {}

    def start(self, tool: str, name: str, payload: dict[str, object], timeout_ms: int) -> str:
        """As `Engine.start`."""
        refused = self._outside.refuses()
        unknown = (lambda: StartRefused("refused")) if refused else _unavailable
        answer: str = self._outside.call(lambda: self._start(name, payload), unknown)
        return answer

    def _start(self, name: str, payload: dict[str, object]) -> str:
        parsed = parse_run_name(name)
        assert parsed is not None and payload == {"taskId": parsed[0], "run": parsed[1]}
        if name not in self.runs:
            self._check_start(*parsed)
            self.runs[name] = RunReport(RunState.RUNNING)
            self._started[name] = self._clock.now()
            self._lagging[name] = self.LAG_MS if self.lags else 0
        return f"run:{name}"

    def stop(self, tool: str, name: str) -> bool:
        """As `Engine.stop`."""
        answer: bool = self._outside.call(lambda: self._stop(name), _unavailable)
        return answer

    def _stop(self, name: str) -> bool:
        parsed = parse_run_name(name)
        assert parsed is not None
        if name in self.runs and not self.runs[name].ended:
            self._check_stop(*parsed)
            self.runs[name] = RunReport(RunState.STOPPED)
        return True

    def describe(self, tool: str, name: str) -> RunReport:
        """As `Engine.describe`."""
        report: RunReport = self._outside.call(lambda: self._describe(name), _unavailable)
        return report

    def _describe(self, name: str) -> RunReport:
        if name not in self.runs or self._clock.now() < self._started[name] + self._lagging[name]:
            return RunReport(RunState.NOT_FOUND)
        return self.runs[name]

    def lives(self, name: str) -> bool:
        """Whether the run was started and is not over."""
        return name in self.runs and not self.runs[name].ended


def _timeout() -> Exception:
    return ReadTimeoutError(endpoint_url="https://aws.invalid")


def _unavailable() -> Exception:
    return EngineUnavailable("no answer")
