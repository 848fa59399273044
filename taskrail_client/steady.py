"""Asks until there is an answer to believe."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from mcp import MCPError
from pydantic import ValidationError

from taskrail_client.errors import NoAnswer, Refused
from taskrail_client.pace import Pace
from taskrail_client.trouble import SURE_AFTER, Kind, Trouble, judge

T = TypeVar("T")

OnTrouble = Callable[[Trouble, float], Awaitable[None]]
"""Told of each failure, and of the seconds until the next try."""


async def _silently(trouble: Trouble, seconds: float) -> None:
    pass


def _never() -> bool:
    return False


@dataclass(frozen=True)
class Steady:
    """Repeats requests.

    Parameters
    ----------
    pace
        Pauses between tries.
    now
        Milliseconds since the epoch.
    """

    pace: Pace
    now: Callable[[], int]

    async def ask(
        self,
        send: Callable[[], Awaitable[T]],
        *,
        interval_ms: int | None = None,
        patience_ms: int | None = None,
        sure: Callable[[], bool] = _never,
        repeatable: Callable[[Trouble], bool] | None = None,
        on_trouble: OnTrouble = _silently,
    ) -> T:
        """Send a request until it is answered.

        Parameters
        ----------
        send
            Sends it once.
        interval_ms
            The first pause, in milliseconds; it doubles with each failure.
        patience_ms
            How long passing trouble is ridden out, in milliseconds; None for as long as it takes.
        sure
            Whether a final word is believed at once, not only when it repeats itself.
        repeatable
            Whether the request may be sent again after such trouble; by default after any.
        on_trouble
            Told of each failure that is followed by another try.

        Raises
        ------
        Refused
            The server said a final word, or the same doubtful one several times.
        NoAnswer
            Patience is over, or the request must not be sent again.
        """
        began = self.now()
        failures = doubts = 0
        while True:
            try:
                return await send()
            except (MCPError, ValidationError) as error:
                trouble, code = judge(error), error.code if isinstance(error, MCPError) else None
            failures += 1
            doubts += trouble.kind is Kind.DOUBTFUL
            if trouble.kind is Kind.DENIED or (trouble.kind is Kind.DOUBTFUL and (doubts >= SURE_AFTER or sure())):
                raise Refused(_sentence(trouble.reason), code)
            if repeatable is not None and not repeatable(trouble):
                raise NoAnswer(_sentence(trouble.reason))
            pause = self.pace.after_failure(failures, interval_ms, trouble.retry_after_ms)
            if patience_ms is not None and self.now() + pause * 1000 > began + patience_ms:
                raise NoAnswer(_sentence(trouble.reason))
            await on_trouble(trouble, pause)
            await self.pace.sleep(pause)


def _sentence(reason: str) -> str:
    return f"{reason[:1].upper()}{reason[1:].rstrip('.')}."
