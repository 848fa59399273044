"""Tests of the deployment: what is synthesized, bundled and checked."""
