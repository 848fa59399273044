"""Names and numbers of the protocol that more than one module of the wire needs."""

from __future__ import annotations

SUPPORTED_VERSIONS = ("2026-07-28",)
"""What `server/discover` gives and what an unsupported version is answered with (basic/versioning)."""

LEGACY_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Revisions that open with a handshake and carry no version in the request itself."""

SERVED_LEGACY = ("2025-11-25", "2025-06-18", "2025-03-26")
"""Those of them that are served."""

_CORE = "io.modelcontextprotocol/"

VERSION_KEY = _CORE + "protocolVersion"
CAPABILITIES_KEY = _CORE + "clientCapabilities"
CLIENT_KEY = _CORE + "clientInfo"
SERVER_KEY = _CORE + "serverInfo"
SUBSCRIPTION_KEY = _CORE + "subscriptionId"

MODERN_KEYS = frozenset({VERSION_KEY, CAPABILITIES_KEY, CLIENT_KEY})
"""Any of these in a request's ``_meta`` makes it a modern one, a faulty one perhaps."""

DISCOVER = "server/discover"
TOOLS_LIST = "tools/list"
TOOLS_CALL = "tools/call"
TASKS_GET = "tasks/get"
TASKS_UPDATE = "tasks/update"
TASKS_CANCEL = "tasks/cancel"
LISTEN = "subscriptions/listen"

TASKS_LIST = "tasks/list"
TASKS_RESULT = "tasks/result"

TASK_METHODS = frozenset({TASKS_GET, TASKS_UPDATE, TASKS_CANCEL})
METHODS = TASK_METHODS | {DISCOVER, TOOLS_LIST, TOOLS_CALL, LISTEN}

EXPERIMENTAL = "2025-11-25"
"""The one revision with experimental tasks."""
EXPERIMENTAL_METHODS = (TASKS_GET, TASKS_RESULT, TASKS_LIST, TASKS_CANCEL)

CACHE_MS = 300_000
"""How long a client may keep the catalogue, in milliseconds (server/utilities/caching)."""

PAGE_SIZE = 100
"""Tools on one page of `tools/list`."""
