"""The command line: `python -m local --port 8321 --catalogue catalogue`."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import sys
from pathlib import Path

from local.stack import ROOT

# Until the launcher takes over, nothing exists that Ctrl-C would have to remove: no traceback for it.
signal.signal(signal.SIGINT, signal.SIG_DFL)

DEFAULT_PORT = 8321


def parser() -> argparse.ArgumentParser:
    """The command line's grammar."""
    made = argparse.ArgumentParser(prog="python -m local", description="Run the whole kit on this machine.")
    made.add_argument(
        "--port", type=_port, default=DEFAULT_PORT, help="port on 127.0.0.1; 0 for a free one (default: %(default)s)"
    )
    made.add_argument(
        "--catalogue",
        default="catalogue",
        help="module that has the server; functions/ is on the path (default: %(default)s)",
    )
    made.add_argument(
        "--ready-file",
        type=Path,
        metavar="PATH",
        help="file to write once the stack serves: JSON with url, endpoint, directory, pid, processes; gone at the end",
    )
    made.add_argument("--verbose", action="store_true", help="show each request and how each run ended")
    return made


def _port(text: str) -> int:
    number = int(text)
    if not 0 <= number <= 65535:
        raise argparse.ArgumentTypeError("a port is a number from 0 to 65535")
    return number


def main() -> int:
    """Run a stack until it is told to end; the exit code."""
    arguments = parser().parse_args()
    sys.path.insert(0, str(ROOT / "functions"))
    from local.launcher import Launcher, Options
    from local.text import start_up

    def say(text: str) -> None:
        # Who reads may have gone; the stack has not.
        with contextlib.suppress(BrokenPipeError):
            print(text, flush=True)

    options = Options(arguments.port, arguments.catalogue, arguments.ready_file, arguments.verbose)

    async def run() -> int:
        return await Launcher(options, say).run(start_up)

    return asyncio.run(run())


if __name__ == "__main__":
    sys.exit(main())
