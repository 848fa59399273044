"""The matrix of `docs/clients.md`: clients, all but one not written here, and every way in which a call can go.

Each client lives through its whole story once, as a program of its own against one local stack; each cell of the
matrix is then a look at that story. A cell that says "no" is tested too: the client still fails, and in that way.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.clients.faulty import Fault, Faulty, faulty
from tests.stack import ROOT

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]

HERE = Path(__file__).parent
MAIN = (sys.executable, "-m")
FASTMCP = (str(ROOT / ".venv-fastmcp" / "bin" / "python"), str(HERE / "fastmcp_driver.py"))
STRANDS = (str(ROOT / ".venv-strands" / "bin" / "python"), str(HERE / "strands_driver.py"))

FAULTS: tuple[Fault, ...] = ("502", "cut")
DONE = ["Two minutes have passed."]
TOOLS = ["add", "measure_words", "publish", "wait_long", "take_two_minutes", "break_down", "stumble", "guarded"]
TICKET_TOOLS = ["task_status", "task_answer", "task_cancel"]
UNASKABLE = "clients of this revision cannot be asked here"

WORKS: dict[str, Any] = {
    "inline": {"result": 5},
    "task": {"longest": "fourteen", "total": 16},
    "question": {"asked": ["Publish “Rails”?"], "texts": ["“Rails” is published."]},
    "before": {"asked": ["Start it?"], "texts": ["“Rails” was started."]},
    "cancel": "cancelled",
    "error": {"isError": True, "texts": ["The machine is out of paper."]},
    "long": DONE,
    "502": DONE,
    "cut": DONE,
}
"""What each cell comes to where it works, in the order of the document's columns."""


@dataclass(frozen=True)
class Client:
    """A row of the matrix.

    Parameters
    ----------
    row
        Its name there.
    command
        What runs its story.
    no
        The cells that do not work, and a piece of what the client says then.
    tickets
        Whether it knows no tasks, so that jobs are tickets to it.
    around
        Faults for which the story shows a way around.
    cancels
        Faults on which it sends `tasks/cancel`.
    """

    row: str
    command: tuple[str, ...]
    no: Mapping[str, str] = field(default_factory=dict)
    tickets: bool = False
    around: tuple[Fault, ...] = ()
    cancels: tuple[Fault, ...] = ()


CUT = "peer closed connection"
CLIENTS = {
    "mcp": Client("`mcp` 2.3.0", (*MAIN, "tests.clients.official"), {"cut": CUT}, around=("cut",)),
    "mcp-legacy": Client(
        '`mcp` 2.3.0, `mode="legacy"`',
        (*MAIN, "tests.clients.official_legacy"),
        {"before": UNASKABLE, "cut": CUT},
        tickets=True,
        around=("cut",),
    ),
    "fastmcp": Client(
        "FastMCP 4.1.4", FASTMCP, {"502": "Server returned an error response", "cut": CUT}, around=("502", "cut")
    ),
    "strands": Client(
        "Strands Agents 1.62.0",
        STRANDS,
        {"502": "Server returned an error response", "cut": "Connection to the MCP server was closed"},
        around=("502", "cut"),
        cancels=("502",),
    ),
    "inspector": Client(
        "MCP Inspector 2.12.0, `--cli`",
        (*MAIN, "tests.clients.inspector_driver", "legacy"),
        {"before": UNASKABLE},
        tickets=True,
    ),
    "inspector-modern": Client(
        "the same, `--protocol-era modern`",
        (*MAIN, "tests.clients.inspector_driver", "modern"),
        {
            "question": "did not declare elicitation",
            "before": "client capability that was not declared",
            "cancel": "Unsupported method: tasks/cancel",
            "502": "MCP client request failed",
            "cut": "MCP client request failed",
        },
    ),
    "curl": Client("`curl`", (*MAIN, "tests.clients.curl_driver")),
    "taskrail_client": Client("`taskrail_client`", (*MAIN, "tests.clients.taskrail_driver")),
}


@dataclass(frozen=True)
class Life:
    """What one client lived through, and what its two faulty proxies saw of it."""

    told: dict[str, Any]
    proxies: dict[Fault, Faulty]

    def cell(self, name: str) -> Any:
        """What a cell came to: the plain call of it, where there is a way around as well."""
        if name in FAULTS:
            fault = self.told["faults"][FAULTS.index(name)]
            return fault.get("plain", fault.get("failed"))
        return self.told[name]


@pytest.fixture(scope="module")
def lives(url: str) -> Iterator[dict[str, Future[Life]]]:
    """All the stories, some at a time; none that nobody asks for any more is begun."""

    def live(client: Client) -> Life:
        with faulty(url, "502") as bad_gateway, faulty(url, "cut") as cut:
            done = subprocess.run(
                [*client.command, url, bad_gateway.url, cut.url],
                capture_output=True,
                text=True,
                timeout=240,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": ""},
                check=False,
            )
        assert done.returncode == 0, done.stderr[-4000:]
        return Life(json.loads(done.stdout), {"502": bad_gateway, "cut": cut})

    with ThreadPoolExecutor(max_workers=4) as pool:
        # A process for each call takes longest, so those begin first.
        slow_first = sorted(CLIENTS, key=lambda name: not name.startswith("inspector"))
        yield {name: pool.submit(live, CLIENTS[name]) for name in slow_first}
        pool.shutdown(cancel_futures=True)


@pytest.fixture(params=list(CLIENTS))
def name(request: pytest.FixtureRequest) -> str:
    """One client's name."""
    return str(request.param)


@pytest.fixture
def client(name: str) -> Client:
    """One client."""
    if name == "curl" and shutil.which("curl") is None:
        pytest.skip("there is no curl on this machine")
    if not Path(CLIENTS[name].command[0]).exists():
        pytest.fail(f"{CLIENTS[name].command[0]} is missing: run the tests as `make test-clients`.")
    return CLIENTS[name]


@pytest.fixture
def life(name: str, client: Client, lives: dict[str, Future[Life]]) -> Life:
    """What it lived through."""
    return lives[name].result()


@pytest.mark.parametrize("cell", list(WORKS))
def test_cell(client: Client, life: Life, cell: str) -> None:
    """The cell comes to what the document says of it."""
    came = life.cell(cell)
    if cell in client.no:
        assert came != WORKS[cell], "it works by now: say so in docs/clients.md"
        assert client.no[cell] in json.dumps(came, ensure_ascii=False)
    else:
        assert came == WORKS[cell]


def test_lists_every_tool(client: Client, life: Life) -> None:
    """No client drops a tool for its schema, and only those without tasks see the tools for tickets."""
    assert life.told["tools"] == TOOLS + (TICKET_TOOLS if client.tickets else [])


@pytest.mark.parametrize("name", ["mcp", "fastmcp", "strands", "taskrail_client"])
def test_never_reads_a_trace(life: Life) -> None:
    """An exception that the tool did not mean for its caller is a neutral text."""
    assert life.told["trace"]["isError"] is True
    assert "hunter2" not in str(life.told["trace"]["texts"])
    assert life.told["trace"]["texts"]


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_was_met(life: Life, fault: Fault) -> None:
    """The proxy did spoil a poll."""
    assert life.proxies[fault].spoiled


@pytest.mark.parametrize("fault", FAULTS)
def test_the_way_around(client: Client, life: Life, fault: Fault) -> None:
    """Where a fault ends a call, the task goes on, and who kept its id gets the result."""
    around = life.told["faults"][FAULTS.index(fault)].get("around")
    assert around == (DONE if fault in client.around else None)


@pytest.mark.parametrize("fault", FAULTS)
def test_who_cancels_for_a_fault(client: Client, life: Life, fault: Fault) -> None:
    """Only the client that the document names gives the task up."""
    assert ("tasks/cancel" in life.proxies[fault].methods) == (fault in client.cancels)


def test_the_long_job_was_a_ticket(lives: dict[str, Future[Life]]) -> None:
    """The official client that knows no tasks was handed a ticket, and read the result by plain calls."""
    ticket = lives["mcp-legacy"].result().told["ticket"]
    assert ticket["status"] == "working" and re.fullmatch("[0-9a-f]{32}", ticket["taskId"])


def test_the_document_has_this_matrix() -> None:
    """Every row and every cell of the document's table is one of these."""
    lines = (ROOT / "docs" / "clients.md").read_text(encoding="utf-8").splitlines()
    table = [[part.strip() for part in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    start = next(number for number, row in enumerate(table) if row[0] == "client")
    told = {row[0]: row[1:] for row in table[start + 2 : start + 2 + len(CLIENTS)]}
    assert len(table[start]) == 1 + len(WORKS)
    for client in CLIENTS.values():
        marks = [mark.split(" ")[0] for mark in told[client.row]]
        assert marks == ["no" if cell in client.no else "yes" for cell in WORKS], client.row
