"""The JSON pages of an agent that dashboards and clients of Apache Mesos poll."""
