"""What brings executors: one module for each way."""
