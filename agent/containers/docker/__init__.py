"""Containers that dockerd runs: from a task's description to SDK calls, and back."""
