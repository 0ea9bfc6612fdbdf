"""Isolators: what keeps containers from each other."""
