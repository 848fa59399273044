"""What the kit costs, measured beside others: `python -m benchmarks`, or `make bench`.

Importing it lets its modules find ``functions/``, the import root of what is deployed.
"""

from __future__ import annotations

import sys
from pathlib import Path

_functions = str(Path(__file__).resolve().parents[1] / "functions")
if _functions not in sys.path:
    sys.path.insert(0, _functions)
