"""The SDK, and what the daemons share."""
