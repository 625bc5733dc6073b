"""Runs the programs of examples/ over a proxy that loses responses, with short tokens."""
