"""The fault table: every operation, every AWS call in it, every way in which that call can go wrong."""
