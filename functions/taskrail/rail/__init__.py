"""The rail: the only code that changes tasks.

`taskrail.rail.rail` is what callers do, `taskrail.rail.runs` what happens to runs, and
`taskrail.rail.reports` what a worker tells. All of them change a task through `taskrail.rail.changes`.
"""
