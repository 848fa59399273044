"""The command line: `python -m benchmarks [SECTION ...] [--quick]`; the exit code says whether the bars held."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable

from benchmarks import bundles, calls, cold, documents, picture, scale, warm
from benchmarks.bars import bars
from benchmarks.children import ProbeError
from benchmarks.rivals import RIVALS, ROOT
from benchmarks.tables import Table, tables
from infra.bundling import BundlingError
from infra.emulator import EmulatorError

SECTIONS = ("cold", "warm", "calls", "scale", "polls")
DOCUMENT = ROOT / "docs" / "performance.md"
PICTURE = ROOT / "docs" / "performance.svg"
_NAMED = ("pydantic", "mcp", "fastmcp", "aws-lambda-powertools", "boto3")


@dataclass(frozen=True)
class Effort:
    """How often things are done.

    Parameters
    ----------
    starts
        Fresh processes of each kind.
    rounds, answers
        Rounds of warm requests, and answers of each kind in each.
    levels
        Numbers of open tasks.
    operations
        Operations of each kind beside them.
    spare
        By which part more a number to hold may be.
    """

    starts: int
    rounds: int
    answers: int
    levels: tuple[int, ...]
    operations: int
    spare: float = 0


WHOLE = Effort(15, 15, 200, (10, 1_000, 10_000), 200)
QUICK = Effort(3, 9, 150, (10, 200), 30, 0.4)


def parser() -> argparse.ArgumentParser:
    """The command line's grammar."""
    made = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure what the kit costs.")
    made.add_argument("sections", nargs="*", metavar="SECTION", help=f"one of {', '.join(SECTIONS)}; all by default")
    made.add_argument("--quick", action="store_true", help="a short form: fewer rounds, so wider spreads")
    made.add_argument("--rounds", type=int, help="rounds of cold starts and of warm requests")
    made.add_argument("--json", type=Path, default=bundles.FOLDER / "results.json", help="file for the results")
    made.add_argument("--use", type=Path, help="measure nothing: show the results of this file")
    made.add_argument("--write-docs", action="store_true", help="write tables and picture into docs/, too")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, show, write, and say whether the bars held."""
    options = parser().parse_args(arguments)
    unknown = sorted(set(options.sections) - set(SECTIONS))
    if unknown:
        parser().error(f"there is no section {', '.join(unknown)}; choose from {', '.join(SECTIONS)}")
    console = Console(highlight=False)
    if options.use is not None:
        results = json.loads(options.use.read_text(encoding="utf-8"))
    else:
        effort = QUICK if options.quick else WHOLE
        if options.rounds is not None:
            effort = replace(effort, starts=options.rounds, rounds=options.rounds)
        try:
            with bundles.alone():
                results = _measured(options.sections or SECTIONS, effort, console, arguments)
        except (bundles.Busy, BundlingError, EmulatorError, ProbeError) as error:
            console.print(f"[red]{type(error).__name__}[/]: {error}", soft_wrap=True)
            return 2
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        options.json.with_suffix(".svg").write_text(picture.draw(results), encoding="utf-8")
    for table in tables(results):
        _show(console, table)
    if options.write_docs:
        missing = [section for section in SECTIONS if section not in results]
        if missing:
            console.print(f"The docs need every section; this run has no {', '.join(missing)}.")
            return 2
        documents.write(DOCUMENT, results)
        PICTURE.write_text(picture.draw(results), encoding="utf-8")
    if options.use is None:
        console.print(f"Results: {_short(options.json)}; as a picture: {_short(options.json.with_suffix('.svg'))}")
    missed = [bar["what"] for bar in results["bars"] if not bar["holds"]]
    for what in missed:
        console.print(f"[red]Not held[/]: {what}.", soft_wrap=True)
    return 1 if missed else 0


def _measured(
    sections: Sequence[str], effort: Effort, console: Console, arguments: Sequence[str] | None
) -> dict[str, Any]:
    given = sys.argv[1:] if arguments is None else arguments
    results: dict[str, Any] = {"made": _made(" ".join(["python -m benchmarks", *given]))}
    with console.status("") as status:

        def tell(text: str) -> None:
            status.update(text)
            if not console.is_terminal:
                console.print(text)

        if {"cold", "warm"} & set(sections):
            made = {}
            for rival in RIVALS:
                tell(f"bundle of {rival.title}")
                made[rival.name] = bundles.bundle(rival)
            tell("boto3, for all of them")
            aws = bundles.aws()
            results["made"]["versions"] = _versions([*(each.folder for each in made.values()), aws.folder])
        acts: Mapping[str, Callable[[], Any]] = {
            "cold": lambda: cold.measure(made, aws, effort.starts, tell),
            "warm": lambda: warm.measure(
                made, aws, effort.rounds, effort.answers, tell, bundles.FOLDER / "handlers.log"
            ),
            "calls": lambda: calls.measure(tell),
            "scale": lambda: scale.measure(effort.levels, effort.operations, tell),
            "polls": _polls,
        }
        for section in SECTIONS:
            if section in sections:
                results[section] = acts[section]()
    results["bars"] = [bar.as_json() for bar in bars(results, effort.spare)]
    return results


def _polls() -> list[dict[str, Any]]:
    from benchmarks.polls import rows

    return [asdict(row) for row in rows()]


def _made(command: str) -> dict[str, Any]:
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "command": command,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cpus": os.cpu_count(),
        "versions": {},
    }


def _versions(folders: Sequence[Path]) -> dict[str, str]:
    found = {
        each.name.replace("_", "-"): each.version
        for folder in folders
        for each in metadata.distributions(path=[str(folder)])
    }
    return {name: found[name] for name in _NAMED if name in found}


def _short(path: Path) -> str:
    return str(path.resolve().relative_to(ROOT)) if ROOT in path.resolve().parents else str(path)


def _show(console: Console, table: Table) -> None:
    shown = RichTable(title=table.title, title_justify="left", title_style="bold")
    for number, column in enumerate(table.columns):
        shown.add_column(column, overflow="fold", justify="left" if number == 0 else "right")
    for row in table.rows:
        shown.add_row(*row)
    console.print(shown)


if __name__ == "__main__":
    sys.exit(main())
