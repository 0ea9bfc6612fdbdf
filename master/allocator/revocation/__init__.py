"""What is owed to whom, and what is taken back from others to pay it (docs/allocation.md)."""
