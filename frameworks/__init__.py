"""Frameworks written on the SDK."""
