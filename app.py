"""The CDK app: `make synth`, `make deploy`. What can be chosen stands in infra/configuration.py."""

from __future__ import annotations

from infra.app import main

main()
