"""The master's shell: gRPC services and HTTP endpoints around the core."""
