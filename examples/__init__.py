"""Frameworks to learn from; each runs against a cluster, such as `mesos-py local`."""
