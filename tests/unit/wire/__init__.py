"""Tests of the wire over a hand-written rail: nothing here touches a table or an engine."""
