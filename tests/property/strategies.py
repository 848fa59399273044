"""What may come: plans of trouble, scripts of jobs, answers, ends of runs."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from taskrail.engines import RunReport, RunState
from tests.property.outside import Meanwhile, Plan, Trouble
from tests.property.world import ENDINGS, KEYS, STEPS

OWNERS = ("anna", "bert")
RIGHT = {"action": "accept", "content": {"number": 1}}
WRONG = ({"action": "accept", "content": {"number": "1"}}, {"action": "accept"}, {"action": "perhaps"}, "yes", None)
UNKNOWN_IDS = ("f" * 32, "F" * 32, "", "f" * 33, "\x00" * 32, None, 7)

owners = st.sampled_from(OWNERS)
own = st.sampled_from([True, True, True, False])
"""Whether it is the ticket's owner who calls."""
picks = st.integers(0, 5)
attempts = st.sampled_from(["next", "next", "next", "rival", "first", "late"])
"""Which attempt a worker is: the next one of a run that goes on, one as high as the last, or any."""


_quiet: st.SearchStrategy[Plan] = st.just({})
_happens = st.sampled_from(Trouble) | st.sampled_from(Meanwhile)
plans = _quiet | _quiet | st.dictionaries(st.sampled_from([0, 1, 0, 1, 2, 3]), _happens, min_size=1, max_size=2)

usable: st.SearchStrategy[Any] = st.sampled_from(
    [
        RIGHT,
        {"action": "accept", "content": {"number": 2, "more": "x" * 5_000}},
        {"action": "decline"},
        {"action": "cancel"},
    ]
)
responses = st.dictionaries(
    st.sampled_from([*KEYS, "unknown"]), usable | usable | st.sampled_from(WRONG), min_size=1, max_size=3
)

_lines = st.sampled_from(
    [f"step:{name}" for name in STEPS]
    + [f"ask:{keys}" for keys in ("a", "b", "a,b", "b,c")]
    + ["hold:a", "hold:c", "other:a", "progress:", "busy:1", "busy:3000"]
)
scripts = st.builds(
    lambda body, end: [*body, *end],
    st.lists(_lines, max_size=5),
    st.sampled_from([[], [], *([ending] for ending in ENDINGS)]),
)

ends = st.sampled_from(
    [
        RunReport(RunState.SUCCEEDED),
        RunReport(RunState.FAILED),
        RunReport(RunState.FAILED, "exit code 3"),
        RunReport(RunState.TIMED_OUT),
        RunReport(RunState.STOPPED),
        RunReport(RunState.SUCCEEDED, output='{"a": 1}'),
        RunReport(RunState.SUCCEEDED, whole=False),
        RunReport(RunState.FAILED, "ToolError", told="No."),
    ]
)
stages = st.sampled_from(
    ["unstarted", "new", "working", "working", "cancelling", "asking", "held", "orphaned", "answered", "answered"]
)
"""How far a task is when the rules begin to play with it."""
tools = st.sampled_from(["short", "short", "kept", "long", "brief", "brief", "box", "flow"])
lives = st.tuples(owners, tools, scripts, st.booleans(), st.booleans(), stages)
"""A task that is under way already: whose, of which tool, its script, whether sealed and lagging, and how far it is."""

# Milliseconds, or minus a number: to the moment of that number, of those to come that matter, or just beside it.
waits = st.sampled_from([1, 400, 3_000, 10_000, 15_000, 25_000]) | st.integers(-9, -1)
