"""The balancer haproxy: `text` is what is said to it and read of it, `process` has it run."""
