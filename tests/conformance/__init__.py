"""The official conformance suite against the local stack: `make conformance`."""
