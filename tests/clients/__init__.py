"""Real clients against the local stack: `make test-clients`."""
