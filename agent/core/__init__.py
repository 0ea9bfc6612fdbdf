"""Decisions of the agent: pure, no IO, no clock."""
