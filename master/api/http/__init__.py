"""The Mesos v1 API over HTTP: a second face of the same core."""
