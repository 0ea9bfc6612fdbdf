"""Decisions of the master: pure, no IO, no clock."""
