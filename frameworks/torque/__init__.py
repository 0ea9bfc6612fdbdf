"""A batch system of the PBS kind, whose nodes come from the cluster and go back to it."""
