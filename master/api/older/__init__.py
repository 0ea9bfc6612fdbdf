"""The JSON pages that dashboards and clients of Apache Mesos poll: /state and its siblings."""
