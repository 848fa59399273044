"""Threads compete for one item: exactly one wins, and nothing is lost."""
