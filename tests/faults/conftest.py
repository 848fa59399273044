"""Counts the cells of the fault table in the terminal's summary."""

from __future__ import annotations

from typing import Any

CELL = "tests/faults/test_fault_table.py::test_cell["


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say how many cells were checked, and how many hold."""
    counts = {
        outcome: sum(report.nodeid.startswith(CELL) for report in terminalreporter.getreports(outcome))
        for outcome in ("passed", "failed")
    }
    if any(counts.values()):
        terminalreporter.write_line(f"fault table: {sum(counts.values())} cells, {counts['passed']} hold")
