"""The deployment: what the catalogue names, as a CDK stack. One construct a file; `stack` only composes.

Importing it lets its modules find two things: ``functions/``, the import root of what is deployed, and the Node that
CDK runs on, which pip installed beside this Python. A Node of the system's is as good: jsii looks for it by itself.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

_functions = str(Path(__file__).resolve().parents[1] / "functions")
if _functions not in sys.path:
    sys.path.insert(0, _functions)

_node = Path(sys.executable).with_name("node")
if _node.exists():
    os.environ.setdefault("JSII_NODE", str(_node))
os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "1")
