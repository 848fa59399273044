"""Imports only go downhill, each outside thing has one owner, and every public name says what it is.

All of it is read from the source with `ast`: imports inside functions and under `TYPE_CHECKING` count as well.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FUNCTIONS = ROOT / "functions"

# The house, ground floor first. A module may import what lies on a floor below its own; a package that is a
# floor's unit (rail, wire, engines, handlers, local) may import inside itself, but never in a circle.
FLOORS: tuple[tuple[str, ...], ...] = (
    (
        "taskrail.errors",
        "taskrail.caller",
        "taskrail.clients",
        "taskrail.clock",
        "taskrail.ids",
        "taskrail.loading",
        "taskrail.docstrings",
        "taskrail.calling",
        "taskrail.pydantic_schemas",
    ),
    ("taskrail.settings", "taskrail.signing", "taskrail.schemas", "taskrail.hints", "taskrail.texts"),
    ("taskrail.forms", "taskrail.schema_headers", "taskrail.handwritten", "taskrail.content"),
    ("taskrail.questions", "taskrail.compute", "taskrail.results", "taskrail.arguments", "taskrail.inputs"),
    ("taskrail.task", "taskrail.call", "taskrail.work", "taskrail.approval_page"),
    ("taskrail.context", "taskrail.telemetry"),
    ("taskrail.signature",),
    ("taskrail.tools",),
    ("taskrail.work_tools", "taskrail.uploads"),
    ("taskrail.toolset",),
    ("taskrail.server",),
    ("taskrail.store", "taskrail.payloads", "taskrail.engines", "taskrail.access"),
    ("taskrail.rail",),
    ("taskrail.worker",),
    ("taskrail.runtime",),
    ("taskrail.wire",),
    ("taskrail",),
    ("tools", "jobs", "workflows"),
    ("catalogue",),
    ("handlers", "taskrail.testing", "taskrail.worker.__main__"),
    ("taskrail.pytest_plugin", "local", "infra", "taskrail_client"),
)
OURS = {unit.partition(".")[0] for floor in FLOORS for unit in floor}
HEIGHT = {unit: height for height, floor in enumerate(FLOORS) for unit in floor}

MAX_LINES = 500


def sources(*folders: str) -> Iterator[Path]:
    """Every Python file under folders of the repository that exist."""
    for folder in folders:
        path = ROOT / folder
        yield from sorted(path.rglob("*.py")) if path.is_dir() else [path] if path.exists() else []


def name_of(path: Path) -> str:
    """The name by which a file is imported."""
    base = FUNCTIONS if FUNCTIONS in path.parents else ROOT
    parts = path.relative_to(base).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def tree_of(path: Path) -> ast.Module:
    """A file's syntax tree."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def modules() -> dict[str, Path]:
    """Our own modules by name."""
    return {name_of(path): path for path in sources("functions", "local", "infra", "taskrail_client")}


def imports_of(path: Path) -> Iterator[tuple[str, int]]:
    """Every module that a file imports, wherever in it, with the line."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield (whole if whole in modules() else node.module), node.lineno


def unit_of(module: str) -> str:
    """The entry of the table that a module belongs to: the longest one that it is, or lies in."""
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        unit = ".".join(parts[:length])
        # The package `taskrail` itself is the list of public names; its other modules have entries of their own.
        if unit in HEIGHT and (unit != "taskrail" or module == "taskrail"):
            return unit
    raise LookupError(f"{module} stands on no floor: give it a place in FLOORS.")


OWN = sorted(modules().items())
LIBRARY = [(name, path) for name, path in OWN if name.partition(".")[0] in ("taskrail", "handlers")]


def ids(pairs: list[tuple[str, Path]]) -> list[str]:
    """Names of parameters."""
    return [name for name, _ in pairs]


def uphill(name: str, imports: Iterable[tuple[str, int]]) -> list[str]:
    """Which of a module's imports lie on its own floor, or above it."""
    unit = unit_of(name)
    return [
        f"{name}:{line} imports {target}"
        for target, line in imports
        if target.partition(".")[0] in OURS
        and (other := unit_of(target)) != unit
        and HEIGHT[other] >= HEIGHT[unit]
        # Tools and jobs lean on each other: a job's types are those of its declaration.
        and {other, unit} != {"tools", "jobs"}
    ]


@pytest.mark.parametrize(("name", "path"), OWN, ids=ids(OWN))
def test_imports_go_downhill(name: str, path: Path) -> None:
    """No module imports from its own floor or from above it."""
    assert not uphill(name, imports_of(path))


def test_the_table_catches_what_it_should() -> None:
    """Up, sideways and into the unknown are found; down and inside one's own package are not."""
    assert uphill("taskrail.task", [("taskrail.rail.rail", 1)])
    assert uphill("taskrail.store", [("taskrail.payloads", 1)])
    assert uphill("taskrail.rail.runs", [("taskrail.wire.app", 1)])
    assert not uphill("taskrail.wire.app", [("taskrail.rail.rail", 1), ("taskrail.wire.http", 2), ("json", 3)])
    with pytest.raises(LookupError, match="no floor"):
        uphill("taskrail.wire.app", [("taskrail.attic", 1)])


def test_no_circles() -> None:
    """Inside a package too, imports form no circle."""
    edges = {name: {target for target, _ in imports_of(path) if target in modules()} for name, path in OWN}
    done: set[str] = set()

    def walk(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " → ".join((*trail[trail.index(name) :], name))
        if name not in done:
            for target in sorted(edges[name] - {name}):
                walk(target, (*trail, name))
            done.add(name)

    for name in edges:
        walk(name, ())


def test_the_library_knows_neither_what_is_built_on_it_nor_the_tools() -> None:
    """`taskrail` stands alone: the floors above it are the user's, the machine's and the deployment's."""
    strangers = {"local", "infra", "tools", "jobs", "catalogue", "tests", "demo"}
    # A Lambda serves the catalogue of its own zip; the test harness does so unless it is given another.
    doors = ("handlers.", "taskrail.testing", "taskrail.pytest_plugin", "taskrail.worker.__main__")
    found = [
        f"{name} imports {target}"
        for name, path in LIBRARY
        for target, _ in imports_of(path)
        if target.partition(".")[0] in strangers and not (name.startswith(doors) and target == "catalogue")
    ]
    assert not found


@pytest.mark.parametrize(
    ("package", "allowed"),
    [
        ("taskrail.wire", set()),
        ("taskrail.rail", set()),
        ("taskrail.errors", set()),
        ("taskrail.clock", set()),
        ("taskrail.settings", set()),
        ("taskrail.task", set()),
        ("taskrail.compute", set()),
        ("taskrail.server", {"pydantic"}),
        ("taskrail.signature", {"pydantic", "pydantic_core", "annotated_types", "typing_extensions"}),
        ("taskrail.results", {"pydantic", "pydantic_core", "typing_extensions"}),
    ],
)
def test_brings_in_no_other_package(package: str, allowed: set[str]) -> None:
    """The wire is the standard library and us; what declares a tool knows nothing of AWS."""
    found = [
        f"{name}:{line} imports {target}"
        for name, path in OWN
        if name == package or name.startswith(package + ".")
        for target, line in imports_of(path)
        if (top := target.partition(".")[0]) not in sys.stdlib_module_names and top not in {"taskrail"} | allowed
    ]
    assert not found


def test_only_a_few_modules_speak_to_aws() -> None:
    """DynamoDB is the store's, S3 the payloads', each engine its own module's; `clients` makes their clients."""
    owners = ("taskrail.store", "taskrail.payloads", "taskrail.engines", "taskrail.clients", "taskrail.testing")
    found = [
        f"{name} imports {target}"
        for name, path in OWN
        if name.startswith(("taskrail.", "handlers.")) and not name.startswith(owners)
        for target, _ in imports_of(path)
        if target.partition(".")[0] in ("boto3", "botocore", "moto")
    ]
    assert not found


@pytest.mark.parametrize(("name", "path"), LIBRARY, ids=ids(LIBRARY))
def test_only_settings_reads_the_environment(name: str, path: Path) -> None:
    """A variable that is read elsewhere is one that nobody finds."""
    if name == "taskrail.settings":
        return
    names = {"environ", "environb", "getenv", "getenvb", "putenv"}
    found = [
        f"line {node.lineno}"
        for node in ast.walk(tree_of(path))
        if (isinstance(node, ast.Attribute) and node.attr in names)
        or (isinstance(node, ast.ImportFrom) and node.module == "os" and any(a.name in names for a in node.names))
    ]
    assert not found


@pytest.mark.parametrize(("name", "path"), LIBRARY, ids=ids(LIBRARY))
def test_only_the_clock_reads_the_time(name: str, path: Path) -> None:
    """Whoever needs the time is given a clock, so that a test can hold it still."""
    if name == "taskrail.clock":
        return
    found = [f"line {line}: import of {target}" for target, line in imports_of(path) if target == "time"]
    found += [
        f"line {node.lineno}: {node.attr}"
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Attribute)
        and node.attr in {"now", "utcnow", "today"}
        and isinstance(node.value, ast.Name | ast.Attribute)
        and (node.value.id if isinstance(node.value, ast.Name) else node.value.attr) in {"datetime", "date"}
    ]
    assert not found


EVERY = list(sources("functions", "local", "infra", "taskrail_client", "demo", "tests"))


def short(path: Path) -> str:
    """A file's name within the repository."""
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", EVERY, ids=short)
def test_no_file_is_over_500_lines(path: Path) -> None:
    """Tests included: what does not fit is two things."""
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= MAX_LINES


@pytest.mark.parametrize("path", EVERY, ids=short)
def test_no_relative_imports(path: Path) -> None:
    """A module is called by the same name everywhere: here, in the zip and on the laptop."""
    assert not [node.lineno for node in ast.walk(tree_of(path)) if isinstance(node, ast.ImportFrom) and node.level]


def undocumented(tree: ast.Module, module: str) -> Iterator[str]:
    """Public modules, classes, functions and methods without a docstring."""
    if not ast.get_docstring(tree):
        yield module

    def look(body: list[ast.stmt], inside: str) -> Iterator[str]:
        for node in body:
            if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) or node.name.startswith("_"):
                continue
            overload = any("overload" in ast.unparse(decorator) for decorator in node.decorator_list)
            if not ast.get_docstring(node) and not overload:
                yield f"{inside}.{node.name} (line {node.lineno})"
            if isinstance(node, ast.ClassDef):
                yield from look(node.body, f"{inside}.{node.name}")

    yield from look(tree.body, module)


DOCUMENTED = [
    (name, path)
    for name, path in OWN
    if name.partition(".")[0] in ("taskrail", "handlers", "local", "infra", "taskrail_client")
]


@pytest.mark.parametrize(("name", "path"), DOCUMENTED, ids=ids(DOCUMENTED))
def test_every_public_name_has_a_docstring(name: str, path: Path) -> None:
    """What is public says what it is for."""
    missing = list(undocumented(tree_of(path), name))
    assert not missing, "\n".join(missing)
