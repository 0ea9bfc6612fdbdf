"""Where the master's registry is kept: memory, a file, or ZooKeeper."""
