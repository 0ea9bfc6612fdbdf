"""The agent: offers what its machine has and runs tasks there."""
