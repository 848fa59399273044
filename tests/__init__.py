"""All tests: `make test`, `make test-clients`, `make conformance`."""
