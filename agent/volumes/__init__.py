"""Where persistent volumes are on the disk, and what becomes of those that are destroyed."""
