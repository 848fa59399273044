"""`make cost`, or `python -m benchmarks.cost`: what a million tasks of each tool of a catalogue cost, line by line."""

from __future__ import annotations

import argparse
import contextlib
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace

from benchmarks import cost_page
from benchmarks.cost_assumptions import ASSUMED, Assumptions
from benchmarks.cost_catalogue import INLINE_S, UnknownEngine, work_of
from benchmarks.cost_model import Bill, bill, monthly, rounded
from benchmarks.cost_prices import prices
from benchmarks.cost_requests import APIS, Entry
from benchmarks.polls import CLIENTS
from local.assemble import CatalogueError, server_of

DEFAULT_RUNTIME_S = 60.0


def parser() -> argparse.ArgumentParser:
    """The command's arguments."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.cost", description=__doc__)
    made.add_argument("--catalogue", default="catalogue", help="module that has the server (default: %(default)s)")
    made.add_argument(
        "--runtime",
        action="append",
        default=[],
        metavar="[TOOL=]SECONDS",
        help=f"how long a task works: of all task tools (at most its time-out), or of one tool; may be repeated "
        f"(default: {DEFAULT_RUNTIME_S:g})",
    )
    made.add_argument("--polls-as", choices=tuple(CLIENTS), default="fastmcp", help="who polls (default: %(default)s)")
    made.add_argument("--api", choices=APIS, default="http", help="kind of API (default: %(default)s)")
    made.add_argument("--lines", action="store_true", help="print every line of each bill, with its amount")
    made.add_argument("--page", action="store_true", help="print the tables of docs/cost.md instead")
    made.add_argument(
        "--assume",
        action="append",
        default=[],
        metavar="NAME=NUMBER",
        help="another assumption than the one printed, such as poll_ms=12; may be repeated",
    )
    return made


def runtimes(given: Sequence[str], tools: Sequence[str]) -> tuple[float | None, dict[str, float]]:
    """The default runtime, None where none was given, and those of single tools.

    Raises
    ------
    ValueError
        One is no number of seconds, or names no tool; the text says which.
    """
    default, single = None, {}
    for text in given:
        name, equals, number = text.rpartition("=")
        seconds = _number("--runtime", text, number)
        if not equals:
            default = seconds
        elif name in tools:
            single[name] = seconds
        else:
            raise ValueError(f"--runtime {text}: the catalogue has no tool {name!r}; it has {', '.join(tools)}")
    return default, single


def assumptions(given: Sequence[str]) -> Assumptions:
    """The assumptions, some of them told otherwise.

    Raises
    ------
    ValueError
        There is no such assumption, or it cannot be that; the text says which.
    """
    names = {field.name: type(getattr(ASSUMED, field.name)) for field in fields(Assumptions)}
    told = {}
    for text in given:
        name, _, number = text.partition("=")
        if name not in names:
            raise ValueError(f"--assume {text}: there is no {name!r}; there are {', '.join(names)}")
        told[name] = names[name](_number("--assume", text, number))
    return replace(ASSUMED, **told)


def report(bills: Sequence[Bill], assumed: Assumptions, *, lines: bool = False) -> Iterator[str]:
    """What is printed.

    Parameters
    ----------
    bills
        One for each tool.
    assumed
        What they take for granted.
    lines
        Whether every line is told.
    """
    known = prices()
    first = bills[0]
    yield f"Dollars for a million tasks: AWS's list prices of {known.region}, free tiers not counted."
    yield f"API: {first.api}. Polls as of {CLIENTS[first.client].about}."
    for made in bills:
        yield ""
        yield f"{made.work.name}: {made.work.engine}, works {made.work.runtime_s:g} s, {made.polls} polls"
        if lines:
            yield from (_line(entry) for entry in made.entries)
        else:
            yield from (f"  {rounded(dollars):>10}  {group}" for group, dollars in made.groups.items())
        overhead = rounded(made.overhead_per_million)
        yield f"  {rounded(made.per_million):>10}  together, {overhead} of it not the work itself"
    tasks = sum(made.work.engine != "inline" for made in bills)
    yield ""
    yield f"Beside that, in a month in which every kind of thing happens in every hour ({tasks} task tools):"
    yield from (f"  {rounded(entry.dollars):>10}  {entry.what} ({entry.amount:g})" for entry in monthly(tasks))
    yield ""
    yield "Taken for granted (--assume NAME=NUMBER):"
    yield from (f"  {field.name} = {getattr(assumed, field.name):g}" for field in fields(Assumptions))
    unchecked = [name for name, price in known.prices.items() if price.evidence == "unchecked"]
    yield ""
    yield f"Prices that nobody could check: {', '.join(unchecked)}. Sources: benchmarks/prices.json."


def _line(entry: Entry) -> str:
    return f"  {entry.per_million:>10,.2f}  {entry.group}: {entry.what} ({entry.amount:.6g} {entry.unit})"


def _number(option: str, text: str, number: str) -> float:
    try:
        value = float(number)
    except ValueError:
        raise ValueError(f"{option} {text}: {number!r} is no number") from None
    if not 0 <= value < 10**9:
        raise ValueError(f"{option} {text}: {number} is out of range")
    return value


def bills_of(options: argparse.Namespace, assumed: Assumptions) -> list[Bill]:
    """A bill for each tool of the catalogue.

    Raises
    ------
    ValueError, CatalogueError, UnknownEngine
        What was asked for cannot be told; the text says why.
    """
    tools = server_of(options.catalogue).tools
    default, single = runtimes(options.runtime, tuple(tools))
    bills = []
    for tool in tools.values():
        usual = INLINE_S if tool.policy is None else DEFAULT_RUNTIME_S if default is None else default
        longest = math.inf if tool.policy is None else tool.policy.timeout_ms / 1_000
        runtime = single.get(tool.name, min(usual, longest))
        if runtime > longest:
            raise ValueError(f"--runtime {tool.name}={runtime:g}: the tool's time-out ends it after {longest:g} s")
        work = work_of(tool, runtime)
        bills.append(bill(work, options.api, CLIENTS[options.polls_as], assumed))
    if not bills:
        raise ValueError(f"the catalogue {options.catalogue!r} has no tools")
    return bills


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what was asked for; the exit code."""
    options = parser().parse_args(arguments)
    if options.page:
        print(cost_page.page(), end="")
        return 0
    try:
        assumed = assumptions(options.assume)
        told = "\n".join(report(bills_of(options, assumed), assumed, lines=options.lines))
    except (ValueError, CatalogueError, UnknownEngine) as error:
        print(f"benchmarks.cost: {error}", file=sys.stderr)
        return 2
    with contextlib.suppress(BrokenPipeError):
        print(told, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
