"""What the agent answers by HTTP: executors, sandboxes, metrics."""
