"""The agent's shell: link to the master, services for executors."""
