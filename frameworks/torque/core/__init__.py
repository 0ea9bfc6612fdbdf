"""What is decided: no IO, no clock."""
