"""Whatever ends a local stack with workflows and containers, nothing of it stays behind."""

from __future__ import annotations

import signal

import pytest

from tests.local_help import Rpc, launched, processes_of, wait_for


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGKILL])
def test_nothing_stays_behind(definitions: dict[str, str], signum: signal.Signals) -> None:
    """An execution waits, and a command has started something that hears no signal."""
    with launched("--port", "0", "--catalogue", "tests.workflows.catalogue", environ=definitions) as stack:
        rpc, marker = Rpc(stack.facts["url"]), stack.directory.parent.name
        deaf = f"trap '' TERM INT; while :; do sleep 0.1; : {marker}; done"
        rpc.start("shell", how=f'({deaf}) & setsid sh -c "{deaf}" & {deaf}')
        wait_for(lambda: len(processes_of(f": {marker};")) >= 3, what="the command's own children")
        rpc.until(rpc.start("run_migration", table="orders", rows=10), "input_required")
        stack.process.send_signal(signum)
        stack.process.communicate(timeout=20)
        wait_for(lambda: not stack.leftovers() and not processes_of(f": {marker};"), what="the end of everything")
