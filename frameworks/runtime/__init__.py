"""What frameworks do in the world in the same way: processes, connections, files."""
